"""Tests the types that applications receive."""

import pytest

from mqproof.impl.client.model import (
    STORED_STATUSES,
    MessageQueue,
    NoReplyError,
    Outcome,
    ReceivedMessage,
    RefusalError,
    Refused,
    SendError,
    Sent,
    Unknown,
)
from mqproof.impl.remoting.codes import ResponseCode
from mqproof.impl.remoting.message import KEYS, RETRY_TOPIC, TAGS, UNIQUE_KEY, Message, StoredMessage


def received(**properties: str) -> ReceivedMessage:
    message = Message("T", b"body", properties, 0)
    stored = StoredMessage.__new__(StoredMessage)
    object.__setattr__(stored, "message", message)
    return ReceivedMessage(stored, MessageQueue("%RETRY%G", "broker-a", 2), 1)


def test_a_queue_is_shown_with_its_topic_and_broker() -> None:
    assert str(MessageQueue("T", "broker-a", 2)) == "T@broker-a:2"


def test_a_redelivered_message_has_the_topic_that_it_was_sent_to() -> None:
    assert received(**{RETRY_TOPIC: "T"}).topic == "T"
    assert received().topic == "%RETRY%G"


def test_a_message_has_its_tag_and_its_keys_and_may_lack_both() -> None:
    full = received(**{TAGS: "a", KEYS: "k1 k2", UNIQUE_KEY: "m1"})
    assert (full.tag, full.keys, full.body) == ("a", ["k1", "k2"], b"body")
    assert (received().tag, received().keys) == (None, [])


def test_only_four_statuses_mean_that_a_message_is_stored() -> None:
    assert set(STORED_STATUSES.values()) == {
        *("SEND_OK", "FLUSH_DISK_TIMEOUT", "SLAVE_NOT_AVAILABLE", "FLUSH_SLAVE_TIMEOUT")
    }
    assert ResponseCode.SYSTEM_ERROR not in STORED_STATUSES


SENT = Sent("SEND_OK", "id", MessageQueue("T", "b", 0), 0, "", 1)


@pytest.mark.parametrize("outcome", [SENT, Refused("id", "NO_ROUTE", "", 0), Unknown("id", "", 1)])
def test_an_outcome_has_no_truth_value(outcome: Outcome) -> None:
    kind = type(outcome).__name__
    with pytest.raises(TypeError, match=rf"{kind} has no truth value: test isinstance\(outcome, Sent\)"):
        bool(outcome)


@pytest.mark.parametrize(
    ("outcome", "text"),
    [
        (Refused("id", "NO_ROUTE", "", 0), "message id is not stored: NO_ROUTE: no remark"),
        (Refused("id", "NO_PERMISSION", "no", 1), "message id is not stored: NO_PERMISSION: no"),
        (Unknown("id", "lost", 1), "message id may be stored: lost"),
    ],
)
def test_the_error_of_a_send_says_whether_the_message_is_stored(
    outcome: Refused | Unknown, text: str
) -> None:
    assert str(SendError(outcome)) == text
    assert SendError(outcome).outcome is outcome


@pytest.mark.parametrize(
    ("outcome", "text"),
    [
        (None, "its send has not ended"),
        (SENT, "message id is stored"),
        (Unknown("id", "lost", 1), "it may be stored"),
    ],
)
def test_a_request_without_a_reply_says_what_is_known(outcome: Sent | Unknown | None, text: str) -> None:
    error = NoReplyError(7, outcome)
    assert str(error) == f"no reply to the request within 7 ms; {text}"
    assert error.outcome is outcome


def test_a_refusal_has_its_code() -> None:
    error = RefusalError("no", 16)
    assert (str(error), error.code) == ("no", 16)


def test_queues_are_ordered_by_topic_broker_and_number() -> None:
    names = [("S", "z", 9), ("T", "a", 9), ("T", "b", 1), ("T", "b", 2)]
    queues = [MessageQueue(*each) for each in names]
    assert sorted(set(queues)) == queues


def test_the_range_of_the_queue_is_unknown_for_a_message_that_was_not_pulled() -> None:
    assert (received().min_offset, received().max_offset) == (-1, -1)
