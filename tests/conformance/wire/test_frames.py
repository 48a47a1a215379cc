"""The suite's own codec of frames reads JSON headers strictly."""

import pytest

from mqproof.conformance.wire.frames import Frame, MalformedError, encode, framed, take


def test_a_frame_is_read_as_it_was_written() -> None:
    frame = Frame(10, 7, 1, {"topic": "T"}, b"body", "why")
    assert take(bytearray(encode(frame))) == frame


@pytest.mark.parametrize(
    "members",
    [
        '"code":1.5,"opaque":1,"flag":1',
        '"code":1,"flag":1',
        '"code":1,"opaque":1,"flag":1,"extFields":{"a":1}',
        '"code":1,"opaque":1,"flag":1,"remark":NaN',
    ],
)
def test_an_invalid_header_is_refused(members: str) -> None:
    with pytest.raises(MalformedError):
        take(bytearray(framed(b"{%s}" % members.encode())))
