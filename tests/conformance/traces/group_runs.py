"""Event logs of simulated DLedger groups: each run has a partition, a crash and a clock jump."""

from random import Random

from mqproof.fuzz.raft.event_log import record
from mqproof.fuzz.raft.program import fault
from mqproof.spec.events import Event

_PARTITIONS = ("isolate", "deafen", "mute", "cut_link")
_CRASHES = ("kill", "lose_power", "crash", "crash_all", "restart")
_OTHERS = ("pause", "slow_disk", "transfer")


def run(seed: int) -> list[Event]:
    """Run three members under faults, with one message per second."""
    chance = Random(seed)
    kinds = [chance.choice(_PARTITIONS), chance.choice(_CRASHES), "step_clock"]
    kinds += chance.sample(_OTHERS, chance.randint(0, 2))
    chance.shuffle(kinds)
    faults = [_fault(kind, chance) for kind in kinds]
    return record(seed.to_bytes(4, "little") + bytes((0, chance.randrange(256))) + b"".join(faults))


def _fault(kind: str, chance: Random) -> bytes:
    # A clock jumps by a quarter of the run's length.
    length = chance.randint(40, 79) if kind == "step_clock" else chance.randrange(12)
    return fault(kind, chance.randrange(256), chance.randint(4, 14), length)


def quiet_run() -> list[Event]:
    """Run without faults."""
    return record(bytes(6))
