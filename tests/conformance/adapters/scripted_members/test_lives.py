"""A DLedger member among scripted ones sends the expected messages, and another message is a difference."""

from mqproof.conformance.adapters.inspections.group_members import GROUP_MESSAGES
from mqproof.conformance.adapters.inspections.site import inspect
from mqproof.conformance.adapters.scripted_members.lives import EXPECTED, differences
from mqproof.conformance.mutants.member_inspections import MUTANTS
from mqproof.conformance.mutants.replacement import injected


def test_a_missing_field_is_a_difference() -> None:
    with injected(MUTANTS["conflict-not-named"]):
        wrong = inspect(GROUP_MESSAGES)
    assert wrong
    assert all('"xIndex"' in each.text for each in wrong)


def test_a_missing_message_is_a_difference() -> None:
    lines = EXPECTED.read_text(encoding="utf-8").splitlines()
    (text,) = differences(lines[:-1])
    assert "the member sends None; expected" in text
