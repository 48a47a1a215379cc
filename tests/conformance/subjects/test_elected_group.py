"""Brokers that elect their master show every acknowledged message; no member lacks an expired entry."""

from mqproof.conformance.mutants import dledger
from mqproof.conformance.mutants.replacement import injected
from mqproof.conformance.subjects import own_group


def test_each_master_shows_every_message() -> None:
    assert own_group.reads().wrong == ()


def test_a_member_that_lacks_deleted_entries_never_leads() -> None:
    with injected(dledger.OBSERVED["expired-before-copied"]):
        assert any("n2 does not lead" in each for each in own_group.reads().wrong)
