"""Tests what becomes of messages about which a function decides, or at which it fails.

Source: docs/reference/protocol/filters.md, "Filter servers".
"""

from collections.abc import Iterable

import pytest

from mqproof.impl.filter_server import decisions
from mqproof.impl.filter_server.decisions import RunError, Text, decided, selected
from mqproof.impl.remoting.message import Message
from mqproof.impl.store.files.record import encode, place


def matches(text: Text) -> bool:
    if text.body == b"fails":
        raise RunError("it fails")
    return text.body.startswith(b"a")


def select(messages: Iterable[Text]) -> list[bool]:
    return decided(messages, matches)


def response(*bodies: bytes) -> bytes:
    """Return the body of a response whose messages begin at offset 7."""
    records = []
    for offset, body in enumerate(bodies, 7):
        record = encode(Message("T", body, {"color": "red"}))
        place(record, offset, 1000 * offset, 1)
        records.append(bytes(record))
    return b"".join(records)


def test_the_decisions_end_before_a_message_at_which_the_function_fails() -> None:
    assert select([Text(b"", body) for body in (b"apple", b"berry", b"fails", b"avocado")]) == [True, False]
    assert select([]) == []
    with pytest.raises(RunError, match="it fails"):
        select([Text(b"", b"fails")])


def test_a_response_ends_before_the_first_message_that_was_not_examined() -> None:
    assert selected(response(b"berry", b"apple"), select) == (
        [response(b"berry", b"apple")[-len(response(b"apple")) :]],
        None,
    )
    kept, failed_at = selected(response(b"apple", b"berry", b"fails", b"avocado"), select)
    assert (kept, failed_at) == ([response(b"apple")], 9)


def test_a_function_sees_the_properties_of_a_message() -> None:
    seen: list[Text] = []

    def all_of_them(messages: Iterable[Text]) -> list[bool]:
        seen.extend(messages)
        return [True] * len(seen)

    selected(response(b"apple"), all_of_them)
    assert seen == [Text(b"color\x01red", b"apple")]


def test_bodies_that_are_too_large_together_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decisions, "_BODIES_BYTES_MAX", 9)
    assert selected(response(b"appl", b"berry"), select)[1] is None
    with pytest.raises(ValueError, match="more than 9 bytes"):
        selected(response(b"apple", b"berry"), select)
