"""A member without a network: the core, its disk, and its event reports.

The code that runs a member passes in what arrives, sends what `step` returns, runs the syncs of
`begin_flush`, and calls `step` at `deadline`. Real nodes and simulations use it in the same way.
"""

from collections.abc import Callable, Sequence
from random import Random

from mqproof.impl.dledger import ballot_file
from mqproof.impl.dledger.changes import Appended, Ballot, Change, Cut, Written
from mqproof.impl.dledger.config import GroupConfig
from mqproof.impl.dledger.core import Core
from mqproof.impl.dledger.entry_format import HEADER_BYTES
from mqproof.impl.dledger.ledger import Flush, Ledger, LedgerConfig
from mqproof.impl.dledger.rpc_bodies import NO_INDEX, Entry, Request, Response
from mqproof.impl.runtime.disk import Disk
from mqproof.impl.store.errors import StoreError

OnChange = Callable[[Change, Entry | None], None]
"""Called for each change right after it was carried out, with the entry of an Appended or Written."""
Messages = tuple[list[Request], list[tuple[Request, Response]]]


class Member:
    """A member that starts from the files in its directory. `ledger` must not be loaded yet.

    Raises:
        StoreError: the files cannot be used. A member that lost its vote must not vote again.
        OSError: the disk failed.
    """

    def __init__(
        self,
        config: GroupConfig,
        disk: Disk,
        directory: str,
        chance: Random,
        now: float,
        on_change: OnChange = lambda _change, _entry: None,
        ledger: Ledger | None = None,
    ) -> None:
        self._disk = disk
        self._ballot_path = f"{directory}/currterm"
        self._on_change = on_change
        self.ledger = ledger or Ledger(disk, directory, LedgerConfig())
        terms = self.ledger.load()
        ballot = ballot_file.load(disk, self._ballot_path)
        if ballot is None and terms.end == NO_INDEX:
            ballot = ballot_file.FIRST  # from now on, a missing file means that it was lost
        if ballot is None or ballot.term < terms.end_term:
            said = "is missing" if ballot is None else f"says term {ballot.term}"
            raise StoreError(f"{self._ballot_path} {said}: the ledger has entries of term {terms.end_term}")
        if ballot.term == 0:
            ballot = ballot_file.FIRST  # a released member stopped before its first election
        # The process that wrote this may have died before its sync, and then a power failure would undo it.
        self.persist(ballot)
        self.core = Core(config, ballot, terms, chance, now)
        self.core.state.misplaced = self._misplaced

    def step(self, now: float) -> Messages:
        """Carry out the changes caused by the last input. Returns the messages that may be sent now.

        Raises:
            OSError, StoreError: the disk failed. The member must not be used any more, because its messages
                would claim state that it may not have on disk.
        """
        for change in self.core.take_changes():
            self.carry_out(change)
        return self.take_messages(now)

    def take_messages(self, now: float) -> Messages:
        """Return the messages that may be sent now. Raises StoreError."""
        self.core.state.terms.begin = self.ledger.begin_index
        return self.core.take_messages(self.ledger.read, now)

    def carry_out(self, change: Change) -> None:
        """Carry out one change, in its turn, and then report it."""
        entry: Entry | None = None
        match change:
            case Appended(index, term, magic, body):
                entry = self.ledger.append(index, term, magic, body)
            case Written():
                entry = change.entry
                self.ledger.write(entry)
            case Cut(end):
                self.ledger.cut(end)
            case Ballot():
                self.persist(change)
            case _:
                pass  # in memory only
        self._on_change(change, entry)

    def _misplaced(self, entries: Sequence[Entry]) -> str | None:
        """Return why the leader's consecutive entries cannot be written as they are, or None."""
        end = self._end_of(entries[0].index - 1)
        for entry in entries:
            size = HEADER_BYTES + len(entry.body)
            if entry.size != size:
                return f"entry {entry.index} says {entry.size} bytes, it has {size}"
            place = self.ledger.place_after(end, size)
            if place is None:
                return f"entry {entry.index} of {size} bytes does not fit a segment"
            if place != entry.pos:
                return (
                    f"entry {entry.index} goes to {place}, its leader has it at {entry.pos}:"
                    f" do all members have segments of one size?"
                )
            end = place + size
        return None

    def _end_of(self, index: int) -> int:
        """Return the position after an entry that is in the ledger, or about to be written to it."""
        for change in reversed(self.core.state.changes):
            if isinstance(change, Written) and change.entry.index == index:
                return change.entry.pos + change.entry.size
        return self.ledger.end_of(index)

    def persist(self, ballot: Ballot) -> None:
        """Make term and vote durable, together."""
        ballot_file.write(self._disk, self._ballot_path, ballot)

    @property
    def has_unsynced(self) -> bool:
        return self.core.state.durable < self.ledger.end_index

    def begin_flush(self) -> Flush:
        """Return what must be synced. Pass it to `end_flush` once its sync has returned."""
        return self.ledger.begin_flush()

    def end_flush(self, flush: Flush) -> None:
        """Report to the core which entries are durable, after the sync of a flush has returned."""
        self.core.flushed(self.ledger.end_flush(flush))

    def close(self) -> None:
        self.ledger.close()
