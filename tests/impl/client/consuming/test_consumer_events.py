"""Tests the events of a consumer. Source: docs/reference/protocol/event-log.md, "Events of a client"."""

import pytest

from mqproof.impl.client.consuming.consumer_events import ConsumerEvents
from mqproof.impl.client.message_selector import MessageSelector
from mqproof.impl.client.model import MessageQueue
from mqproof.impl.remoting.message import KEYS, TAGS, UNIQUE_KEY, Message, StoredMessage
from mqproof.impl.runtime.event_log import EventLog
from mqproof.impl.runtime.simulated_loop import EPOCH_US, ManualClock
from mqproof.spec.events import Event, Kind

QUEUE = MessageQueue("%RETRY%G", "b", 7)
ALL, PRICE = MessageSelector("*"), MessageSelector.sql("price > 5")


def recording(*, orderly: bool = False) -> tuple[ConsumerEvents, list[Event]]:
    found: list[Event] = []
    log = EventLog(found.append, "n", ManualClock())
    log.seq_next = 1  # the first event has the schema, too
    return ConsumerEvents(log, "G", "c", orderly=orderly), found


def event(kind: Kind, seq: int = 1, **fields: object) -> Event:
    return Event(EPOCH_US, seq, "n", kind, group="G", client="c", **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize("orderly", [False, True])
def test_a_rebalance_has_the_number_of_queues_and_whether_they_are_orderly(orderly: bool) -> None:
    events, found = recording(orderly=orderly)
    events.rebalanced("T", 3)
    attrs = {"queues": "3", "orderly": "true"} if orderly else {"queues": "3"}
    assert found == [event(Kind.REBALANCE, topic="T", attrs=attrs)]


@pytest.mark.parametrize(("kind", "tags"), [(Kind.DELIVER, "A"), (Kind.CONSUME_OK, None), (Kind.RETRY, None)])
@pytest.mark.parametrize("tag", ["A", None])
def test_an_event_of_a_message_has_its_identity_and_the_broker(
    kind: Kind, tags: str, tag: str | None
) -> None:
    properties = {UNIQUE_KEY: "m", KEYS: "k1 k2", **({TAGS: tag} if tag else {})}
    message = Message("T", b"x", properties, queue_id=2, born_timestamp_ms=5)
    stored = StoredMessage(message, 11, 12, 0, 0, 0)
    events, found = recording()
    if kind is Kind.DELIVER:
        events.delivered(QUEUE, [stored])
    else:
        events.of_message(kind, QUEUE, stored)
    assert found == [
        event(
            kind, msg_id="m", topic="T", queue_id=2, queue_offset=11, commit_offset=12, keys="k1 k2",
            tags=(tag or "") if tags else None, born_ts=5000, attrs={"broker": "b"},
        )
    ]  # fmt: skip


@pytest.mark.parametrize("reset", [False, True])
def test_a_commit_has_the_queue_that_was_read_and_whether_it_is_a_reset(reset: bool) -> None:
    events, found = recording()
    events.committed(QUEUE, 9, reset=reset)
    attrs = {"broker": "b", "reset": "true"} if reset else {"broker": "b"}
    assert found == [event(Kind.OFFSET_COMMIT, topic="%RETRY%G", queue_id=7, queue_offset=9, attrs=attrs)]


def test_only_changes_of_subscriptions_are_recorded() -> None:
    events, found = recording()
    events.selects("T", ALL)
    events.selects("T", ALL)
    events.subscribes({"T": PRICE, "U": ALL, "S": ALL})
    events.subscribes({"T": PRICE})
    events.left()
    events.left()
    events.selects("T", PRICE)
    every, price = {"type": "TAG", "expression": "*"}, {"type": "SQL92", "expression": "price > 5"}
    assert found == [
        event(Kind.SUBSCRIBE, 1, topic="T", attrs=every),
        event(Kind.SUBSCRIBE, 2, topic="T", attrs=price),
        event(Kind.SUBSCRIBE, 3, topic="U", attrs=every),
        event(Kind.SUBSCRIBE, 4, topic="S", attrs=every),
        event(Kind.UNSUBSCRIBE, 5, topic="S"),
        event(Kind.UNSUBSCRIBE, 6, topic="U"),
        event(Kind.UNSUBSCRIBE, 7, topic="T"),
        event(Kind.SUBSCRIBE, 8, topic="T", attrs=price),
    ]


def test_without_an_event_log_nothing_happens() -> None:
    events = ConsumerEvents(None, "G", "c")
    events.rebalanced("T", 1)
    events.subscribes({"T": ALL})
    events.left()
    events.committed(QUEUE, 1, reset=True)
    events.delivered(QUEUE, [StoredMessage(Message("T", b"x"), 0, 0, 0, 0, 0)])
    assert events._selected == {}
