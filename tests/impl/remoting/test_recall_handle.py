"""Tests the handle of a recall: its text as released brokers write it, and texts that are no handles."""

import base64

import pytest

from mqproof.impl.remoting.recall_handle import RecallHandle, parse_handle

OF_550 = "djEgVCBhcGFjaGUtYSAxNzk1NjU1NzAzMDAxIFNFQzMwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAw"
"""A handle that a broker of 5.5.0 returned."""


def test_a_handle_of_a_released_broker_is_read_and_written() -> None:
    handle = parse_handle(OF_550)
    assert handle == RecallHandle("T", "apache-a", 1795655703001, "SEC3".ljust(32, "0"))
    assert handle.encode() == OF_550


@pytest.mark.parametrize(
    "text",
    [
        "",
        "garbage",
        "\u00e4",
        "A" * 2000,
        *(
            base64.urlsafe_b64encode(words.encode()).decode()
            for words in (
                "v2 T b 1 K",
                "v1 T b 1",
                "v1 T b 1 K more",
                "v1 T b abc K",
                "v1 T b -1 K",
                "v1  b 1 K",
                "v1 T b 1 ",
            )
        ),
        base64.urlsafe_b64encode(b"v1 T b 1 \xff").decode(),
    ],
)
def test_any_other_text_is_no_handle(text: str) -> None:
    with pytest.raises(ValueError, match="the recall handle is invalid"):
        parse_handle(text)
