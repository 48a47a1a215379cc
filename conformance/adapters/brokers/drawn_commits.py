"""A group's committed offsets in the reference, with random arrival of one-way commits and random writes."""

import random
from dataclasses import dataclass, field

from mqproof.conformance.engine.broker_faults import CRASHES, ENDS, BrokerFault


@dataclass(slots=True)
class DrawnCommits:
    """The committed offset of each queue; None if there was no commit."""

    chance: random.Random
    queues: int
    _committed: list[int | None] = field(init=False)
    _written: tuple[int | None, ...] = field(init=False)
    _unknown: list[tuple[int, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._committed = [None] * self.queues
        self._written = tuple(self._committed)

    def __getitem__(self, queue_id: int) -> int | None:
        return self._committed[queue_id]

    def commit(self, queue_id: int, offset: int) -> None:
        self.arrive()
        self._committed[queue_id] = offset

    def commit_oneway(self, queue_id: int, offset: int) -> None:
        self._unknown.append((queue_id, offset))

    def arrive(self) -> None:
        """Let some of the one-way commits arrive, in any order."""
        self.chance.shuffle(self._unknown)
        while self._unknown and self.chance.random() < 0.5:
            queue_id, offset = self._unknown.pop()
            self._committed[queue_id] = offset
        if self.chance.random() < 0.2:
            self._write()

    def write(self) -> None:
        """Write the current offsets to the disk, after some one-way commits have arrived."""
        self.arrive()
        self._write()

    def inject(self, fault: BrokerFault) -> None:
        """Apply the fault: after a crash the written offsets remain; a clean stop writes the current ones."""
        self.arrive()
        if fault in ENDS:
            self._unknown.clear()
        if fault in CRASHES:
            self._committed = list(self._written)
        elif fault in ENDS:
            self._write()

    def _write(self) -> None:
        self._written = tuple(self._committed)
