"""The kinds of faults that a scoreboard counts, whatever a suite, a target or a history calls them."""

from enum import StrEnum
from typing import Final


class FaultKind(StrEnum):
    KILL = "SIGKILL"
    FREEZE = "SIGSTOP"
    RESTART = "restart"  # a clean exit, and a start
    LOSE_WRITES = "lost unsynced writes"  # the machine dies, or its power fails
    LOSE_DISK = "lost disk"
    FAIL_SYNCS = "failed fsync"
    SLOW_DISK = "slow disk"
    FULL_DISK = "full disk"
    CUT = "connection cut"
    DELAY = "delay"
    PARTITION = "partition"
    ONE_WAY = "one-way partition"  # either way
    NAME_SERVER = "name server killed"
    NAME_SERVER_AWAY = "name server cut off"
    CLIENT = "client died"
    SILENCE = "silence"  # a peer says nothing for long
    UNHEARD = "answer not heard"  # nobody waits for it
    REFUSAL = "refusal"


KINDS: Final = {
    "kill": FaultKind.KILL,
    "freeze": FaultKind.FREEZE,
    "pause": FaultKind.FREEZE,
    "clean_restart": FaultKind.RESTART,
    "shutdown": FaultKind.RESTART,
    "crash_os": FaultKind.LOSE_WRITES,
    "lose_power": FaultKind.LOSE_WRITES,
    "power_loss": FaultKind.LOSE_WRITES,
    "lose_disk": FaultKind.LOSE_DISK,
    "slow_disk": FaultKind.SLOW_DISK,
    "full_disk": FaultKind.FULL_DISK,
    "cut": FaultKind.CUT,
    "delay": FaultKind.DELAY,
    "isolate": FaultKind.PARTITION,
    "lose_requests": FaultKind.ONE_WAY,
    "lose_answers": FaultKind.ONE_WAY,
}
"""By the name in a target or a history."""
