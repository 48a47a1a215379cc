"""A member without a network: the core, its disk, and what it tells of itself.

Whoever runs it hands in what arrives, sends what `step` returns, runs the syncs of `begin_flush`, and calls
`step` at `deadline`. Real nodes and simulations do so alike.
"""

from collections.abc import Callable
from random import Random

from mqproof.impl.dledger import ballot_file
from mqproof.impl.dledger.changes import Appended, Ballot, Change, Cut, Written
from mqproof.impl.dledger.config import GroupConfig
from mqproof.impl.dledger.core import Core
from mqproof.impl.dledger.ledger import Flush, Ledger, LedgerConfig
from mqproof.impl.dledger.rpc_bodies import NO_INDEX, Entry, Request, Response
from mqproof.impl.runtime.disk import Disk
from mqproof.impl.store.errors import StoreError

Tell = Callable[[Change, Entry | None], None]
"""Told of each change right after it was carried out, with the entry of an Appended or Written."""
Messages = tuple[list[Request], list[tuple[Request, Response]]]


class Member:
    """A member that starts from what its directory has; `ledger` is not loaded yet.

    Raises:
        StoreError: the files cannot be used: no member may vote who forgot how it voted. OSError.
    """

    def __init__(
        self,
        config: GroupConfig,
        disk: Disk,
        directory: str,
        chance: Random,
        now: float,
        tell: Tell = lambda _change, _entry: None,
        ledger: Ledger | None = None,
    ) -> None:
        self._disk = disk
        self._ballot_path = f"{directory}/currterm"
        self._tell = tell
        self.ledger = ledger or Ledger(disk, directory, LedgerConfig())
        terms = self.ledger.load()
        ballot = ballot_file.load(disk, self._ballot_path)
        if ballot is None and terms.end == NO_INDEX:
            ballot = ballot_file.FIRST  # from now on a missing file is a lost one
        if ballot is None or ballot.term < terms.end_term:
            said = "is missing" if ballot is None else f"says term {ballot.term}"
            raise StoreError(f"{self._ballot_path} {said}: the ledger has entries of term {terms.end_term}")
        # Whoever wrote what was read may have died before its sync: until then a loss of power takes it back.
        self.persist(ballot)
        self.core = Core(config, ballot, terms, chance, now)

    def step(self, now: float) -> Messages:
        """Carry out what the last input changed; what may be sent now.

        Raises:
            OSError, StoreError: the disk failed. The member is not to be used any more: what it would say
                does not rest on what it keeps.
        """
        for change in self.core.take_changes():
            self.carry_out(change)
        return self.take_messages(now)

    def take_messages(self, now: float) -> Messages:
        """What may be sent now. Raises StoreError."""
        self.core.state.terms.begin = self.ledger.begin_index
        return self.core.take_messages(self.ledger.read, now)

    def carry_out(self, change: Change) -> None:
        """One change, in its turn; then it is told of."""
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
        self._tell(change, entry)

    def persist(self, ballot: Ballot) -> None:
        """Make term and vote durable, together."""
        ballot_file.write(self._disk, self._ballot_path, ballot)

    @property
    def has_unsynced(self) -> bool:
        return self.core.state.durable < self.ledger.end_index

    def begin_flush(self) -> Flush:
        """What is to be synced; give it to `end_flush` once its sync has returned."""
        return self.ledger.begin_flush()

    def end_flush(self, flush: Flush) -> None:
        """Its sync has returned: the core learns what is durable."""
        self.core.flushed(self.ledger.end_flush(flush))

    def close(self) -> None:
        self.ledger.close()
