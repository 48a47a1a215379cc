"""NeverSilentlyWrong, NeverSilentlyLost, OffsetsNotReused, RefusedByName, DamageSettled: they hold after any single
fault of a block or a file of a broker that shares its log with others.

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
        # The first segment of a ledger is missing; the end of a ledger is damaged, and a member is behind.
        yield bytes.fromhex("01d8013dad06f43be436")
        yield bytes.fromhex("010003260904000030c1")
        chance = random.Random("cluster-rot")
        for number in range(_SEEDS):
            moment, fault = MOMENTS[number // 2 % len(MOMENTS)], FAULTS[number % len(FAULTS)]
            point = Point(moment, chance.randrange(256), chance.randrange(256), fault, chance.randrange(1 << 32))
            yield ClusterPoint(KINDS[number % 2], number, point).encode()

    def run(self, data: bytes) -> None:
        path, verdict = judge(ClusterPoint.decode(data))
        self.last = kind_of(path), verdict
        refused = verdict is FaultVerdict.REFUSED
        self.checked.update(["RefusedByName"] if refused else self.invariants.keys() - {"RefusedByName"})


TARGET = ClusterRot
