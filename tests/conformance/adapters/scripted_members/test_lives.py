"""A DLedger member among scripted ones sends the expected messages, and another message is a difference."""

from mqproof.conformance.adapters import own_checks
from mqproof.conformance.adapters.scripted_members.lives import EXPECTED, differences
from mqproof.conformance.mutants import dledger
from mqproof.conformance.mutants.replacement import injected


def test_our_member_sends_the_expected_messages() -> None:
    messages, wrong = own_checks.wrong_messages()
    assert messages > 200
    assert wrong == ()


def test_a_missing_field_is_a_difference() -> None:
    with injected(dledger.OBSERVED["conflict-not-named"]):
        _, wrong = own_checks.wrong_messages()
    assert wrong
    assert all('"xIndex"' in each for each in wrong)


def test_a_missing_message_is_a_difference() -> None:
    lines = EXPECTED.read_text(encoding="utf-8").splitlines()
    (text,) = differences(lines[:-1])
    assert text.startswith(
        "a leader that stands still is asked for a vote of a later term: the member sends None"
    )
