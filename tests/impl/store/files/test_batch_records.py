"""Tests that the records of a batch have the bytes of the records of its messages alone.

Source: docs/reference/protocol/storing.md, "Commit log record".
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from mqproof.impl.remoting.message import Batch, Message
from mqproof.impl.store.files import record
from mqproof.impl.store.files.batch_records import BatchRecords
from tests.impl.store.files.test_record import MESSAGE, int32, messages, texts
from tests.impl.store.site import batch_of

parts = st.lists(
    st.tuples(st.binary(max_size=9), st.dictionaries(texts, texts, max_size=2), int32), max_size=3
)
offsets = st.integers(0, 2**40)


def drawn(message: Message, others: list[tuple[bytes, dict[str, str], int]]) -> Batch:
    """Return a batch of the message and of others with these bodies, properties and flags."""
    return batch_of(
        message,
        *(structs.replace(message, body=body, properties=own, flag=flag) for body, own, flag in others),
    )


@given(messages, parts, offsets, offsets, offsets)
def test_the_messages_of_a_batch_have_the_records_of_each_alone(
    message: Message,
    others: list[tuple[bytes, dict[str, str], int]],
    queue_offset: int,
    commit_offset: int,
    stored_ms: int,
) -> None:
    batch = drawn(message, others)
    records = BatchRecords(batch)
    alone = [record.encode(each) for each in batch]
    at = commit_offset
    for number, data in enumerate(alone, queue_offset):
        record.place(data, number, at, stored_ms)
        at += len(data)
    assert records.sizes == [len(data) for data in alone]
    assert records.placed(queue_offset, commit_offset, stored_ms) == b"".join(alone)


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"topic": "a/b"}, "1 to 255 letters"),
        ({"properties": {"k": "v" * 32767}}, "properties have 32769 bytes, at most 32767 expected"),
        ({"properties": {"k": "v\0"}}, "end in a zero byte"),
        ({"properties": {"k": "\x01"}}, "0x01 or 0x02"),
        ({"queue_id": 2**31}, "out of range"),
        ({"flag": 2**31}, "out of range: the flag is 2147483648"),
        ({"flag": -(2**31) - 1}, "out of range: the flag is -2147483649"),
    ],
)
def test_a_batch_with_a_message_that_cannot_be_stored_is_refused(
    changes: dict[str, object], complaint: str
) -> None:
    wrong = structs.replace(MESSAGE, **changes)
    batch = batch_of(structs.replace(wrong, properties={}, flag=0), wrong)
    with pytest.raises(ValueError, match=complaint):
        BatchRecords(batch)


def test_a_zero_byte_within_the_properties_of_a_batch_is_stored() -> None:
    batch = batch_of(structs.replace(MESSAGE, properties={"k": "\0v"}))
    stored = record.decode(BatchRecords(batch).placed(0, 0, 0))
    assert stored.message.properties == {"k": "\0v"}
