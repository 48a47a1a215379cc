"""Expands a crash of a DLedger member into many disk images of its ballot file and its ledger.

The files are written as in the member's steps before the crash. From any image, a start must find the term
and vote of the last ballot; while a ballot is being written, the previous one is allowed too. The entries
found must be a prefix of the ledger that contains all durable entries.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from mqproof.conformance.behaviours.corpus import Script
from mqproof.conformance.behaviours.subject import DeviationError
from mqproof.conformance.crash_images.store_images import Recovered, first_crash, images, recover_each
from mqproof.impl.dledger import ballot_file
from mqproof.impl.dledger.changes import Ballot
from mqproof.impl.dledger.ledger import Ledger, LedgerConfig
from mqproof.impl.dledger.rpc_bodies import NO_OP, NORMAL
from mqproof.impl.runtime.simulated_disk import Image, SimulatedDisk, Step

CRASH: Final = "Crash"
_BALLOT: Final = "member/currterm"
_LEDGER: Final = "member"
_CONFIG: Final = LedgerConfig(data_segment_bytes=1 << 10, index_segment_bytes=32 * 16)

Entries = Sequence[Mapping[str, Any]]


class _Files:
    """The files of one member, written according to its states."""

    def __init__(self, found: Recovered, every: int) -> None:
        self.disk = SimulatedDisk()
        self._found = found
        self._every = every
        self._ledger = Ledger(self.disk, _LEDGER, _CONFIG)
        self._ledger.load()
        ballot_file.write(self.disk, _BALLOT, ballot_file.FIRST)
        self._ballot = ballot_file.FIRST
        self._log: Entries = ()
        self._durable = 0

    def become(self, ballot: Ballot, log: Entries, durable: int) -> None:
        """Write this state of the member to the disk, in place of the previous one."""
        if ballot != self._ballot:
            self.disk.on_step = lambda step: self._in_between(step, ballot)
            ballot_file.write(self.disk, _BALLOT, ballot)
            self.disk.on_step = None
            self._ballot = ballot
        same = next((n for n, (old, new) in enumerate(zip(self._log, log, strict=False)) if old != new), None)
        if (end := min(len(self._log), len(log)) if same is None else same) < len(self._log):
            self._ledger.cut(end - 1)
        for index in range(end, len(log)):
            text = log[index]["message"]
            self._ledger.append(index, log[index]["term"], NO_OP if text == "noop" else NORMAL, text.encode())
        self._log, before = log, min(self._durable, end)
        if durable > before:
            flush = self._ledger.begin_flush()
            flush.sync()
            self._ledger.end_flush(flush)
        self._durable = durable

    def recover(self, image: Image) -> int:
        """Return the number of entries that a start finds in the image."""
        ballot, log = self._started_from(image)
        if ballot != self._ballot:
            raise DeviationError(f"a start recovers {ballot}, {self._ballot} expected")
        if list(self._log[: len(log)]) != log:
            raise DeviationError(f"a start recovers {log}, a prefix of {self._log} expected")
        return len(log)

    def _in_between(self, step: Step, ballot: Ballot) -> None:
        del step
        for image in list(images(self.disk))[:: self._every]:
            self._found.images += 1
            found, _ = self._started_from(image)
            if found not in (self._ballot, ballot):
                raise DeviationError(f"a start recovers {found}, {self._ballot} or {ballot} expected")

    def _started_from(self, image: Image) -> tuple[Ballot | None, list[Mapping[str, Any]]]:
        disk = self.disk.copy()
        disk.crash_os(image)
        ledger = Ledger(disk, _LEDGER, _CONFIG)
        entries = [ledger.read(index) for index in range(ledger.load().end + 1)]
        shown: list[Mapping[str, Any]] = [
            {"term": one.term, "message": "noop" if one.magic == NO_OP else one.body.decode()}
            for one in entries
        ]
        return ballot_file.load(disk, _BALLOT), shown


def expand(script: Script, nodes: Sequence[str], found: Recovered, every: int = 1) -> None:
    """Check the images of the first crash of a script, and of the ballots before it.

    Without a crash, nothing is checked.
    """
    if (at := first_crash(script, (CRASH,))) is None:
        return
    n = nodes.index(script.steps[at].parameters[0])
    files = _Files(found, every)
    states = list(script.states())[: at + 1]
    log, durable = states[-1]["log"][n], states[-1]["durable"][n]

    def reach() -> SimulatedDisk:
        for state in states:
            vote = None if state["voted_for"][n] == "none" else state["voted_for"][n]
            files.become(Ballot(state["term"][n], vote), state["log"][n], state["durable"][n])
        return files.disk

    allowed = range(durable, len(log) + 1)
    recover_each(found, script, at, allowed, reach, files.recover, every)
