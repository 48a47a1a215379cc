"""The kinds of faults that a scoreboard counts.

They are independent of the names of faults in suites, targets and histories.
"""

from enum import StrEnum
from typing import Final


class FaultKind(StrEnum):
    KILL = "SIGKILL"
    FREEZE = "SIGSTOP"
    RESTART = "restart"  # a clean exit, then a start
    LOSE_WRITES = "lost unsynced writes"  # the machine crashes, or its power fails
    LOSE_DISK = "lost disk"
    FAIL_SYNCS = "failed fsync"
    SLOW_DISK = "slow disk"
    FULL_DISK = "full disk"
    CLOCK = "clock set back"
    CUT = "connection cut"
    DELAY = "delay"
    PARTITION = "partition"
    ONE_WAY = "one-way partition"  # in either direction
    NAME_SERVER = "name server killed"
    NAME_SERVER_AWAY = "name server cut off"
    CLIENT = "client died"
    SILENCE = "silence"  # a peer sends nothing for a long time
    UNHEARD = "answer not received"  # no client waits for the answer
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
    "clock_back": FaultKind.CLOCK,
    "cut": FaultKind.CUT,
    "delay": FaultKind.DELAY,
    "isolate": FaultKind.PARTITION,
    "lose_requests": FaultKind.ONE_WAY,
    "lose_answers": FaultKind.ONE_WAY,
}
"""The kind for each fault name used by a target or a history."""
