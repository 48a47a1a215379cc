"""Tests the file of term and vote."""

import pytest

from mqproof.impl.dledger import ballot_file
from mqproof.impl.dledger.changes import Ballot
from mqproof.impl.dledger.limits import TERM_MAX
from mqproof.impl.runtime.disk import write_durably
from mqproof.impl.runtime.simulated_disk import SimulatedDisk
from mqproof.impl.store.errors import StoreError


@pytest.mark.parametrize("ballot", [Ballot(1, None), Ballot(7, "n1")])
def test_a_written_ballot_is_read_back(ballot: Ballot) -> None:
    disk = SimulatedDisk()
    assert ballot_file.load(disk, "currterm") is None
    ballot_file.write(disk, "currterm", ballot)
    assert ballot_file.load(disk, "currterm") == ballot


def test_the_file_of_a_released_member_is_read() -> None:
    disk = SimulatedDisk()
    write_durably(disk, "currterm", b"#Tue Nov 24\n! comment\nvoteLeader=n2\ncurrTerm=12\n")
    assert ballot_file.load(disk, "currterm") == Ballot(12, "n2")


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"voteLeader=n1\n",
        b"currTerm=x\n",
        b"currTerm=-1\n",
        b"currTerm=%d\n" % (TERM_MAX + 1),
        b"currTerm=%d\n" % (1 << 70),
        b"currTerm=" + b"9" * 5000,
    ],
)
def test_a_file_without_a_term_is_refused(text: bytes) -> None:
    disk = SimulatedDisk()
    write_durably(disk, "currterm", text)
    with pytest.raises(StoreError, match="currTerm is"):
        ballot_file.load(disk, "currterm")


def test_a_vote_longer_than_a_name_is_refused() -> None:
    disk = SimulatedDisk()
    write_durably(disk, "currterm", b"currTerm=1\nvoteLeader=" + b"n" * 256)
    with pytest.raises(StoreError, match="voteLeader has 256 characters"):
        ballot_file.load(disk, "currterm")


def test_only_lines_with_a_value_that_are_no_comments_count() -> None:
    disk = SimulatedDisk()
    text = b"currTerm=3\n#currTerm=4\n!currTerm=5\ncurrTerm\nvoteLeader = n1 \n# voteLeader=n2\n"
    write_durably(disk, "currterm", text)
    assert ballot_file.load(disk, "currterm") == Ballot(3, "n1")


def test_the_largest_term_and_the_longest_name_are_read() -> None:
    disk = SimulatedDisk()
    write_durably(disk, "currterm", b"currTerm=%d\nvoteLeader=%s\n" % (TERM_MAX, b"n" * 255))
    assert ballot_file.load(disk, "currterm") == Ballot(TERM_MAX, "n" * 255)
