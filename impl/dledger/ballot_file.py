"""Term and vote on disk, in one file that is replaced as a whole and synced before anybody hears of them.

It is DLedger's `currterm`, Java properties text with the keys currTerm and voteLeader. Released members
replace it by delete and rename without a sync, so that a crash can take the vote back.
"""

from mqproof.impl.dledger.changes import Ballot
from mqproof.impl.runtime.disk import Disk, read_whole, write_durably
from mqproof.impl.store.errors import StoreError

FIRST = Ballot(1, None)
"""Of a member that never voted."""


def write(disk: Disk, path: str, ballot: Ballot) -> None:
    """Durable when it returns. Raises OSError; then the old one or the new one is there, nothing else."""
    text = f"currTerm={ballot.term}\nvoteLeader={ballot.voted_for or ''}\n"
    write_durably(disk, path, text.encode())


def load(disk: Disk, path: str) -> Ballot | None:
    """The term and vote, None when there is no such file.

    Raises:
        StoreError: the file does not tell them. OSError: it cannot be read.
    """
    if not disk.exists(path):
        return None
    values: dict[str, str] = {}
    for line in read_whole(disk, path).decode("latin-1").splitlines():
        name, equals, value = line.partition("=")
        if equals and not line.startswith(("#", "!")):
            values[name.strip()] = value.strip()
    term = values.get("currTerm", "")
    if not (term.isascii() and term.isdecimal()):
        raise StoreError(f"{path}: currTerm is {term!r}, a number expected")
    return Ballot(int(term), values.get("voteLeader") or None)
