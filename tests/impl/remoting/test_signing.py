"""Tests signatures of requests. Source: docs/reference/protocol/access-control.md, "Signatures"."""

import pytest

from mqproof.impl.remoting.command import Command, new_request
from mqproof.impl.remoting.signing import Credentials, is_signed_with, signature

SECRET = "12345678"


def test_the_signature_equals_the_published_example() -> None:
    fields = {"topic": "T1", "AccessKey": "ak1", "queueId": "3"}
    assert signature(fields, b"body", SECRET) == "z6z4GTnoFsDnuPISGMCVfJ2U4m8="
    assert signature({**fields, "Signature": "x"}, b"body", SECRET) == signature(fields, b"body", SECRET)


def test_names_are_sorted_as_java_sorts_them() -> None:
    # In UTF-16, a character beyond 16 bits begins with a surrogate, which sorts before U+FF21.
    fields = {"\U00010000": "a", "\uff21": "b", "B": "c", "a": "d"}
    ordered = {"1": "c", "2": "d", "3": "a", "4": "b"}
    assert signature(fields, b"", SECRET) == signature(ordered, b"", SECRET)


def signed(**fields: str) -> Command:
    return Credentials("ak1", SECRET).signed(new_request(11, fields, b"body"))


def test_a_signature_is_valid_only_for_its_account() -> None:
    request = signed(topic="T1", queueId="3")
    assert request.fields["Signature"] == "z6z4GTnoFsDnuPISGMCVfJ2U4m8="
    assert is_signed_with(SECRET, request)
    assert not is_signed_with("87654321", request)


@pytest.mark.parametrize(
    "change",
    [
        {"body": b"bodz"},
        {"fields": {**signed(topic="T1").fields, "topic": "T2"}},
        {"fields": {**signed(topic="T1").fields, "more": "x"}},
        {"fields": {"topic": "T1", "AccessKey": "ak1"}},
        {"fields": {**signed(topic="T1").fields, "Signature": "é"}},
    ],
)
def test_a_changed_request_has_no_valid_signature(change: dict[str, object]) -> None:
    request = signed(topic="T1")
    parts = {"code": 11, "opaque": 1, "fields": request.fields, "body": request.body, **change}
    assert not is_signed_with(SECRET, Command(**parts))  # type: ignore[arg-type]  # as named


def test_a_token_is_sent_and_signed() -> None:
    request = Credentials("ak1", SECRET, "token").signed(new_request(11))
    assert request.fields["SecurityToken"] == "token"
    assert is_signed_with(SECRET, request)
    assert not is_signed_with(SECRET, request, "SecurityToken")


def test_a_secret_is_not_shown() -> None:
    assert SECRET not in repr(Credentials("ak1", SECRET, "token"))
