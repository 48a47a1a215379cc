"""NeverSilentlyWrong, NeverSilentlyLost, OffsetsNotReused, RefusedByName: they hold after any single fault
of a block or a file of a store that was durable.

An input is one fault (fuzz/store/single_fault.py).
"""

import random
from collections import Counter
from collections.abc import Iterable
from typing import ClassVar, Final

from mqproof.fuzz.store.damaged_files import kind_of
from mqproof.fuzz.store.fault_judge import FaultVerdict, judge
from mqproof.fuzz.store.single_fault import FAULTS, MOMENTS, Point

_SEEDS: Final = 400


class StoreRot:
    name: ClassVar = "store-rot"
    invariants: ClassVar = {
        "NeverSilentlyWrong": "no altered record is delivered as good, where a checksum or a rule covers it",
        "NeverSilentlyLost": "a durable message is delivered, its loss is reported, or the start is refused",
        "OffsetsNotReused": "a new message never gets the queue offset of a lost one",
        "RefusedByName": "a start that damage prevents is refused with an error that names a file",
    }
    watched: ClassVar = ("mqproof.impl.store",)
    input_bytes_max: ClassVar = 8

    def __init__(self) -> None:
        self.checked: Counter[str] = Counter()
        self.last = "", FaultVerdict.HARMLESS
        """The type of file and the verdict of the last point that broke no invariant."""

    def seeds(self) -> Iterable[bytes]:
        # A flipped bit of a queue offset in a record, and of a tag code in an entry: few points are such.
        yield bytes.fromhex("01046a00a4f9983c")
        yield bytes.fromhex("00bdf300d5a46db7")
        yield bytes.fromhex("03b44501d9156e0e")  # zero bytes in place of the last record
        chance = random.Random("store-rot")
        for number in range(_SEEDS):
            moment, fault = MOMENTS[number % len(MOMENTS)], FAULTS[number % len(FAULTS)]
            point = Point(moment, number, chance.randrange(256), fault, chance.randrange(1 << 32))
            yield point.encode()

    def run(self, data: bytes) -> None:
        path, verdict = judge(Point.decode(data))
        self.last = kind_of(path), verdict
        refused = verdict is FaultVerdict.REFUSED
        self.checked.update(["RefusedByName"] if refused else [*self.invariants][:3])


TARGET = StoreRot
