"""NeverSilentlyWrong, DamageSettled: a broker that shares its log with others repairs a damaged record from a
peer that has it, and reports it otherwise.

An input is one damage of one record, in a master, a slave or a member of a group
(conformance/subjects/damaged_peers.py).
"""

import random
from collections import Counter
from collections.abc import Iterable
from typing import ClassVar, Final

from mqproof.conformance.damage import checkers
from mqproof.conformance.damage.checkers import PeersSeen
from mqproof.conformance.subjects.damaged_peers import PeerPoint, live
from mqproof.fuzz.target import Finding

_SEEDS: Final = 16


class RecordRepairTarget:
    name: ClassVar = "record-repair"
    invariants: ClassVar = {
        "NeverSilentlyWrong": "no altered record is delivered as good, where a checksum or a rule covers it",
        "DamageSettled": "a damaged record is repaired if a peer has it, and reported otherwise",
    }
    watched: ClassVar = ("mqproof.impl.replication.record_repair", "mqproof.impl.store.entry_repair")
    input_bytes_max: ClassVar = 4

    def __init__(self) -> None:
        self.checked: Counter[str] = Counter()

    def seeds(self) -> Iterable[bytes]:
        yield bytes([12, 0, 3, 20])  # the last record of a master, while its slave is away
        chance = random.Random("record-repair")
        for number in range(_SEEDS):
            yield bytes([number % 8, *chance.randbytes(3)])

    def run(self, data: bytes) -> None:
        seen = live(PeerPoint.decode(data))
        if seen.is_wrong:
            raise Finding("NeverSilentlyWrong", f"{seen.node} delivers an altered record")
        damage_settled(seen)
        self.checked.update([*self.invariants])


def damage_settled(seen: PeersSeen) -> None:
    """Check that the record is repaired if a peer has it, and reported otherwise."""
    if problems := checkers.damage_settled(seen):
        raise Finding("DamageSettled", problems[0])


TARGET = RecordRepairTarget
