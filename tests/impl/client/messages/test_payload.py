"""Tests that a message is completed, bounded and compressed before it is sent."""

import pytest

from mqproof.impl.client.messages.payload import PayloadBuilder, unique_key
from mqproof.impl.client.model import MessageError
from mqproof.impl.remoting.message import SYS_COMPRESSED, UNIQUE_KEY, WAIT, Message
from mqproof.impl.runtime.network import AsyncioNetwork
from mqproof.impl.runtime.runtime import production

BUILD = PayloadBuilder(production(AsyncioNetwork(), None), 1000, 500)


def test_a_message_gets_an_id_and_waits_for_the_slave() -> None:
    first, second = (BUILD.single(Message("T", b"x", {}, 0)) for _ in range(2))
    assert first.first.properties[WAIT] == "true"
    assert unique_key(first.first) != unique_key(second.first)
    assert first.first.born_timestamp_ms > 0


def test_given_properties_stay() -> None:
    sent = BUILD.single(Message("T", b"x", {UNIQUE_KEY: "m1", WAIT: "false"}, 0)).first
    assert sent.properties == {UNIQUE_KEY: "m1", WAIT: "false"}


def test_a_large_body_is_compressed_and_a_small_one_is_not() -> None:
    large = BUILD.single(Message("T", b"x" * 500, {}, 0))
    assert len(large.body) < 100
    assert large.first.sys_flag & SYS_COMPRESSED
    assert BUILD.single(Message("T", b"x" * 499, {}, 0)).body == b"x" * 499


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (Message("T", b"", {}, 0), "the body is empty"),
        (Message("T", b"x" * 1001, {}, 0), "the body has 1001 bytes, at most 1000 are allowed"),
        (Message("T", b"x", {"a": "x" * 40_000}, 0), "the properties have "),
        (Message("\udcff", b"x", {}, 0), "character other than"),
        (Message("T", b"x", {"a": "\udcff"}, 0), "surrogates not allowed"),
    ],
)
def test_a_message_that_cannot_be_sent_is_refused(message: Message, reason: str) -> None:
    with pytest.raises(MessageError, match=reason):
        BUILD.single(message)


def test_a_batch_is_one_body_with_shared_properties() -> None:
    batch = BUILD.batch([Message("T", b"a", {}, 0), Message("T", b"b", {}, 0)])
    assert batch.is_batch
    assert [each.body for each in batch.messages] == [b"a", b"b"]
    assert UNIQUE_KEY not in batch.properties


@pytest.mark.parametrize(
    ("topic", "text", "maximum"), [("%RETRY%G", "3", 3), ("T", "3", None), ("%RETRY%G", "x", None)]
)
def test_the_maximum_of_redeliveries_counts_for_retry_topics(
    topic: str, text: str, maximum: int | None
) -> None:
    assert BUILD.single(Message(topic, b"x", {"MAX_RECONSUME_TIMES": text}, 0)).reconsume_max == maximum
