"""Tests sending messages back: the request to the broker, and the copy that is sent when it fails."""
# ruff: noqa: ARG002  # fakes have the signatures of what they stand for

import pytest

from mqproof.impl.client.consuming.consumer_events import ConsumerEvents
from mqproof.impl.client.consuming.group_requests import GroupRequests
from mqproof.impl.client.consuming.redelivery import Redelivery
from mqproof.impl.client.model import (
    ClientError,
    MessageQueue,
    Outcome,
    ReceivedMessage,
    Refused,
    Sent,
    Unknown,
)
from mqproof.impl.client.producing.producer import Producer
from mqproof.impl.remoting.message import Message, StoredMessage
from mqproof.impl.runtime.event_log import EventLog
from mqproof.impl.runtime.simulated_loop import ManualClock, run_simulated
from mqproof.spec.events import Event, Kind

QUEUE = MessageQueue("%RETRY%G", "b", 0)


class FakeCalls(GroupRequests):
    def __init__(self, *, works: bool) -> None:
        self.group = "G"
        self.works = works
        self.asked: list[tuple[int, int]] = []

    async def send_back(self, message: ReceivedMessage, delay_level: int, reconsume_max: int) -> None:
        self.asked.append((delay_level, reconsume_max))
        if not self.works:
            raise ClientError("away")


class FakeProducer(Producer):
    def __init__(self, outcome: Outcome) -> None:
        self.outcome = outcome
        self.sent: list[Message] = []

    async def send(self, message: Message, *_: object, **__: object) -> Outcome:
        self.sent.append(message)
        return self.outcome


STORED = Sent("SEND_OK", "K", QUEUE, 0, "", 1)


def received(times: int, **properties: str) -> ReceivedMessage:
    message = Message(
        "%RETRY%G", b"body", {"UNIQ_KEY": "K", **properties}, sys_flag=0x301, store_host=("127.0.0.1", 10911)
    )
    return ReceivedMessage(StoredMessage(message, 7, 1024, 0, 0, 0), QUEUE, times)


def give_back(
    times: int = 1, level: int = 0, *, works: bool = False, outcome: Outcome = STORED, **properties: str
) -> tuple[bool, FakeCalls, list[Message], list[Kind]]:
    """A message that was redelivered `times` times and may be redelivered 3 times."""
    calls, producer = FakeCalls(works=works), FakeProducer(outcome)
    reported: list[Event] = []
    events = ConsumerEvents(EventLog(reported.append, "c", ManualClock()), "G", "c")
    taken = run_simulated(
        Redelivery(calls, producer, 3, events).send_back(received(times, **properties), level)
    )
    return taken, calls, producer.sent, [event.kind for event in reported]


@pytest.mark.parametrize(
    ("times", "level", "kind"),
    [(0, 0, Kind.RETRY), (2, 5, Kind.RETRY), (3, 0, Kind.DEAD_LETTER), (0, -1, Kind.DEAD_LETTER)],
)
def test_the_broker_is_tried_first_and_the_result_is_logged(times: int, level: int, kind: Kind) -> None:
    taken, calls, sent, kinds = give_back(times, level, works=True)
    assert (taken, calls.asked, sent, kinds) == (True, [(level, 3)], [], [kind])


def test_a_copy_is_equal_to_the_one_the_broker_would_have_made() -> None:
    taken, _, (copy,), kinds = give_back(1)
    assert taken
    assert (copy.topic, copy.body, copy.reconsume_times, copy.sys_flag) == ("%RETRY%G", b"body", 2, 0)
    assert copy.properties == {
        "UNIQ_KEY": "K",
        "RETRY_TOPIC": "%RETRY%G",
        "ORIGIN_MESSAGE_ID": "7F00000100002A9F0000000000000400",
        "RECONSUME_TIME": "2",
        "MAX_RECONSUME_TIMES": "4",
        "DELAY": "4",
    }
    assert kinds == [Kind.RETRY]


def test_a_copy_keeps_the_origin_of_its_message_and_the_requested_level() -> None:
    _, _, (copy,), _ = give_back(1, 9, RETRY_TOPIC="T", ORIGIN_MESSAGE_ID="first")
    assert (copy.properties["RETRY_TOPIC"], copy.properties["ORIGIN_MESSAGE_ID"]) == ("T", "first")
    assert copy.properties["DELAY"] == "9"


@pytest.mark.parametrize(("times", "level"), [(3, 0), (0, -1)])
def test_a_copy_that_must_become_a_dead_letter_allows_no_more_redelivery(times: int, level: int) -> None:
    _, _, (copy,), kinds = give_back(times, level)
    assert copy.properties["MAX_RECONSUME_TIMES"] == "0"
    assert kinds == [Kind.DEAD_LETTER]


@pytest.mark.parametrize("outcome", [Refused("K", "NO_ROUTE", "", 0), Unknown("K", "", 1)])
def test_deliv_7_a_message_that_is_not_certainly_stored_stays_with_the_consumer(outcome: Outcome) -> None:
    """DELIV-7 RetryThenDeadLetter"""
    taken, _, _, kinds = give_back(outcome=outcome)
    assert (taken, kinds) == (False, [])


def test_a_message_can_be_made_a_dead_letter_at_once() -> None:
    calls = FakeCalls(works=True)
    redelivery = Redelivery(calls, FakeProducer(STORED), 3, ConsumerEvents(None, "G", "c"))
    assert run_simulated(redelivery.bury(received(0)))
    assert run_simulated(redelivery.send_back(received(0)))
    assert calls.asked == [(-1, 3), (0, 3)]


def test_a_broker_that_does_not_take_a_message_back_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    give_back()
    assert caplog.messages == ["a message was not sent back, a copy is sent: away"]
