"""Tests the types that applications receive."""

from mqproof.impl.client.model import STORED_STATUSES, MessageQueue, ReceivedMessage
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
