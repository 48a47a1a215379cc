"""Tests encoding and decoding batches, and bytes that are not a batch.

Source: docs/reference/protocol/sending.md, "Batches".
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqproof.impl.remoting.batch import Part, decode_batch, encode_batch

_text = st.text(st.characters(codec="utf-8", exclude_characters="\x01\x02"), min_size=1, max_size=5)
_parts = st.lists(
    st.builds(
        Part,
        st.binary(max_size=20),
        st.dictionaries(_text, _text, max_size=3),
        st.integers(-(2**31), 2**31 - 1),
    ),
    min_size=1,
    max_size=5,
)


def test_a_batch_has_the_expected_bytes() -> None:
    expected = "0000001d000000000000000000000007000000036162630004" + b"a\x011b".hex()
    assert encode_batch([Part(b"abc", {"a": "1b"}, 7)]).hex() == expected


@given(_parts)
def test_a_batch_is_read_back_unchanged(parts: list[Part]) -> None:
    assert decode_batch(encode_batch(parts), len(parts)) == parts


@given(_parts, st.data())
def test_a_truncated_batch_is_refused_or_has_fewer_messages(parts: list[Part], data: st.DataObject) -> None:
    whole = encode_batch(parts)
    cut = data.draw(st.integers(0, len(whole) - 1))
    try:
        found = decode_batch(whole[:cut], len(parts))
    except ValueError:
        return
    assert found == parts[: len(found)]
    assert len(found) < len(parts)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "empty"),
        (b"x", "no whole message at byte 0"),
        (bytes.fromhex("00000017 00000000 00000000 00000000 00000000 0000"), "its size says 23"),
        (bytes.fromhex("00000016 00000000 00000000 00000000 ffffffff 0000"), "no whole message"),
        (bytes.fromhex("00000018 00000000 00000000 00000000 00000000 0002 ffff"), "no whole message"),
        (encode_batch([Part(b"")] * 4), "more than 3"),
    ],
)
def test_bytes_that_are_not_a_batch_are_refused(data: bytes, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        decode_batch(data, 3)
