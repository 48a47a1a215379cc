"""A DLedger member among scripted ones sends the expected messages, and another message is a difference."""

from mqproof.conformance.adapters.scripted_members.lives import EXPECTED, differences
from mqproof.conformance.mutants import dledger
from mqproof.conformance.mutants.replacement import injected
from mqproof.conformance.subjects import own_group


def test_our_member_sends_the_expected_messages() -> None:
    scripted = own_group.messages()
    assert scripted.messages > 200
    assert scripted.wrong == ()


def test_a_missing_field_is_a_difference() -> None:
    with injected(dledger.OBSERVED["conflict-not-named"]):
        wrong = own_group.messages().wrong
    assert wrong
    assert all('"xIndex"' in each for each in wrong)


def test_a_missing_message_is_a_difference() -> None:
    lines = EXPECTED.read_text(encoding="utf-8").splitlines()
    (text,) = differences(lines[:-1])
    assert "the member sends None; expected" in text
