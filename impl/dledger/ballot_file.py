"""Stores term and vote in one file, which is replaced as a whole and synced before any message mentions them.

The file is DLedger's `currterm`: Java properties text with the keys currTerm and voteLeader. Released members
replace it by delete and rename without a sync, so a crash may undo the vote.
"""

from typing import Final

from mqproof.impl.dledger.changes import Ballot
from mqproof.impl.dledger.limits import NAME_CHARACTERS_MAX, TERM_MAX
from mqproof.impl.runtime.disk import Disk, read_whole, write_durably
from mqproof.impl.store.errors import StoreError

_DIGITS_MAX: Final = len(str(TERM_MAX))

FIRST = Ballot(1, None)
"""The ballot of a member that has never voted."""


def write(disk: Disk, path: str, ballot: Ballot) -> None:
    """Write the ballot durably. Raises OSError; the file then has either the old or the new ballot."""
    text = f"currTerm={ballot.term}\nvoteLeader={ballot.voted_for or ''}\n"
    write_durably(disk, path, text.encode())


def load(disk: Disk, path: str) -> Ballot | None:
    """Return the term and vote, or None when there is no such file.

    Raises:
        StoreError: the file has no valid term, or a vote that is not a member's name.
        OSError: the file cannot be read.
    """
    if not disk.exists(path):
        return None
    values: dict[str, str] = {}
    for line in read_whole(disk, path).decode("latin-1").splitlines():
        name, equals, value = line.partition("=")
        if equals and not line.startswith(("#", "!")):
            values[name.strip()] = value.strip()
    term = values.get("currTerm", "")
    # The length comes first: Python refuses to convert numbers of thousands of digits.
    is_number = term.isascii() and term.isdecimal() and len(term) <= _DIGITS_MAX
    if not (is_number and int(term) <= TERM_MAX):
        raise StoreError(f"{path}: currTerm is {term[:40]!r}, a number up to {TERM_MAX} expected")
    vote = values.get("voteLeader", "")
    if len(vote) > NAME_CHARACTERS_MAX:
        raise StoreError(
            f"{path}: voteLeader has {len(vote)} characters, {NAME_CHARACTERS_MAX} at most expected"
        )
    return Ballot(int(term), vote or None)
