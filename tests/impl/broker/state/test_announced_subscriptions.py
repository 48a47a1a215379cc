"""The subscriptions that a broker records: each when it is new or changed, and when it ends."""

from mqproof.impl.broker.state.announced_subscriptions import AnnouncedSubscriptions
from mqproof.impl.remoting.bodies import Subscription
from mqproof.impl.runtime.clock import SystemClock
from mqproof.impl.runtime.event_log import EventLog
from mqproof.spec.events import Event, Kind


def recorded(events: list[Event]) -> list[tuple[str, ...]]:
    """Return the kind, topic, client, type and expression of the new events."""
    shown = [
        (
            str(event.kind),
            event.topic or "",
            event.client or "",
            *(event.attrs[name] for name in ("type", "expression") if name in event.attrs),
        )
        for event in events
    ]
    events.clear()
    return shown


def by_topic(*subscriptions: Subscription) -> dict[str, Subscription]:
    return {each.topic: each for each in subscriptions}


def test_a_new_and_a_changed_subscription_are_recorded_once() -> None:
    events: list[Event] = []
    announced = AnnouncedSubscriptions(EventLog(events.append, "b", SystemClock()))
    first = by_topic(Subscription("t", "A", sub_version=1), Subscription("u", None, expression_type=None))
    announced.update("g", first, "one")
    assert recorded(events) == [
        ("subscribe", "t", "one", "TAG", "A"),
        ("subscribe", "u", "one", "TAG", "*"),
    ]
    announced.update("g", first | by_topic(Subscription("t", "A", sub_version=2)), "two")
    assert recorded(events) == []
    announced.update("g", by_topic(Subscription("t", "a > 1", expression_type="SQL92")), "two")
    assert recorded(events) == [
        ("unsubscribe", "u", "two"),
        ("subscribe", "t", "two", "SQL92", "a > 1"),
    ]
    announced.update("g", by_topic(Subscription("t", "a > 1", class_filter_mode=True)), "two")
    assert recorded(events) == [("subscribe", "t", "two", "CLASS", "a > 1")]


def test_the_subscriptions_of_a_group_end_with_its_last_member() -> None:
    events: list[Event] = []
    announced = AnnouncedSubscriptions(EventLog(events.append, "b", SystemClock()))
    announced.update("g", by_topic(Subscription("t")), "one")
    recorded(events)
    announced.group_left("h")
    announced.group_left("g")
    announced.group_left("g")
    assert recorded(events) == [("unsubscribe", "t", "")]
    announced.update("g", by_topic(Subscription("t")), "one")
    assert recorded(events) == [("subscribe", "t", "one", "TAG", "*")]


def test_without_an_event_log_nothing_is_recorded() -> None:
    announced = AnnouncedSubscriptions(None)
    announced.update("g", by_topic(Subscription("t")), "one")
    announced.group_left("g")


def test_the_events_name_the_group() -> None:
    events: list[Event] = []
    announced = AnnouncedSubscriptions(EventLog(events.append, "b", SystemClock()))
    announced.update("g", by_topic(Subscription("t")), "one")
    announced.update("g", by_topic(Subscription("u")), "one")
    announced.group_left("g")
    assert [(event.kind, event.topic, event.group) for event in events] == [
        (Kind.SUBSCRIBE, "t", "g"),
        (Kind.UNSUBSCRIBE, "t", "g"),
        (Kind.SUBSCRIBE, "u", "g"),
        (Kind.UNSUBSCRIBE, "u", "g"),
    ]
