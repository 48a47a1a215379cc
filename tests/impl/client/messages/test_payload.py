"""Tests that a message is completed, bounded and compressed before it is sent."""

import pytest

from mqproof.impl.client.messages.payload import PayloadBuilder, unique_key
from mqproof.impl.client.model import MessageError
from mqproof.impl.remoting.message import SYS_COMPRESSED, UNIQUE_KEY, WAIT, Message, encode_properties
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


def test_the_largest_body_and_batch_are_accepted_and_one_byte_more_is_not() -> None:
    assert len(BUILD.single(Message("T", b"x" * 1000)).first.properties[UNIQUE_KEY]) == 32
    empty = len(BUILD.batch([Message("T", b"x")]).body) - 1
    assert len(BUILD.batch([Message("T", b"x" * (1000 - empty))]).body) == 1000
    with pytest.raises(MessageError, match="the batch has 1001 bytes, at most 1000 are allowed"):
        BUILD.batch([Message("T", b"x" * (1001 - empty))])


@pytest.mark.parametrize(("character", "bytes_each"), [("x", 1), ("\u00e9", 2)])
def test_the_properties_have_at_most_32767_bytes(character: str, bytes_each: int) -> None:
    fixed = {UNIQUE_KEY: "m", WAIT: "true", "b": ""}
    room = 32_767 - len(encode_properties({**fixed, "a": ""}).encode())
    fixed["b"] = "x" * (room % bytes_each)
    BUILD.single(Message("T", b"x", {**fixed, "a": character * (room // bytes_each)}))
    with pytest.raises(MessageError, match="the properties have 32768 bytes, at most 32767 are allowed"):
        BUILD.single(
            Message("T", b"x", {**fixed, "b": fixed["b"] + "x", "a": character * (room // bytes_each)})
        )


def test_a_compressed_body_is_not_compressed_again_and_a_given_birth_stays() -> None:
    message = Message("T", b"x" * 600, sys_flag=SYS_COMPRESSED, born_timestamp_ms=7)
    sent = BUILD.single(message).first
    assert (sent.body, sent.born_timestamp_ms) == (message.body, 7)


def test_a_property_that_is_no_text_is_refused() -> None:
    with pytest.raises(MessageError, match="property 'a' is 1: name and value must be texts, such as '1'"):
        BUILD.single(Message("T", b"x", {"a": 1}))  # type: ignore[dict-item]  # what is tested


def test_a_batch_shares_whether_its_messages_wait() -> None:
    messages = [Message("T", b"a", {WAIT: "false"}), Message("T", b"b", {WAIT: "false"})]
    assert BUILD.batch(messages).properties == encode_properties({WAIT: "false"})
    assert BUILD.batch(messages).topic == "T"
