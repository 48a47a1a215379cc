"""NeverSilentlyWrong, NeverSilentlyLost, OffsetsNotReused, RefusedByName, DamageSettled: they hold after any
single fault of a block or a file of a broker that shares its log with others.

An input is one fault of one machine (fuzz/cluster/damaged_cluster.py).
"""

import random
from collections import Counter
from collections.abc import Iterable
from typing import ClassVar, Final

from mqproof.fuzz.cluster.damaged_cluster import KINDS, ClusterPoint, judge
from mqproof.fuzz.store.damaged_files import kind_of
from mqproof.fuzz.store.fault_judge import FaultVerdict
from mqproof.fuzz.store.single_fault import FAULTS, MOMENTS, Point
from mqproof.fuzz.targets.record_repair import RecordRepairTarget
from mqproof.fuzz.targets.store_rot import StoreRot

_SEEDS: Final = 168
_CHOSEN: Final = (
    "01010105000600003039",  # the first segment of a member's ledger is missing
    "0100031e000100003039",  # the end of the leader's ledger is zero, and another member is behind
    "000000020300000000a0",  # a bit of a body in a running master
    "00010103000300003039",  # a queue file of a slave is cut
    "01010006010100003039",  # a record of a running member is zero
    "01000213000000003039",  # a bit of a table of the leader
)
"""Points of which a random choice has few."""


class ClusterRot:
    name: ClassVar = "cluster-rot"
    invariants: ClassVar = {**StoreRot.invariants, **RecordRepairTarget.invariants}
    watched: ClassVar = ("mqproof.impl.store", "mqproof.impl.replication", "mqproof.impl.dledger")
    input_bytes_max: ClassVar = 10

    def __init__(self) -> None:
        self.checked: Counter[str] = Counter()
        self.last = "", FaultVerdict.HARMLESS
        """The type of file and the verdict of the last point that broke no invariant."""

    def seeds(self) -> Iterable[bytes]:
        yield from map(bytes.fromhex, _CHOSEN)
        chance = random.Random("cluster-rot")
        for number in range(_SEEDS):
            moment, fault = MOMENTS[number // 2 % len(MOMENTS)], FAULTS[number % len(FAULTS)]
            point = Point(
                moment, chance.randrange(256), chance.randrange(256), fault, chance.randrange(1 << 32)
            )
            yield ClusterPoint(KINDS[number % 2], number, point).encode()

    def run(self, data: bytes) -> None:
        path, verdict = judge(ClusterPoint.decode(data))
        self.last = kind_of(path), verdict
        refused = verdict is FaultVerdict.REFUSED
        self.checked.update(["RefusedByName"] if refused else self.invariants.keys() - {"RefusedByName"})


TARGET = ClusterRot
