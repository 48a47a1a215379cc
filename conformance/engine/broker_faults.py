"""What may befall the broker of a suite that asks it request by request, and what of it outlives that.

Each fault comes between two requests, and is over when the broker serves again; requests whose answers nobody
waited for may be under way. A target that can do one to its broker has it among its capabilities.
"""

from collections.abc import Hashable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TypeVar

T = TypeVar("T", bound=Hashable)


class BrokerFault(StrEnum):
    KILL = "kill"  # SIGKILL, and a start
    RESTART = "clean_restart"  # a clean exit, and a start
    POWER_LOSS = "power_loss"  # the machine dies and keeps exactly what was synced; then a start
    FREEZE = "freeze"  # SIGSTOP, and SIGCONT a while later
    CUT = "cut"  # all connections to it break


ENDS: Final = frozenset({BrokerFault.KILL, BrokerFault.RESTART, BrokerFault.POWER_LOSS})
"""What is only in memory is gone, and so are requests that were under way."""
CRASHES: Final = frozenset({BrokerFault.KILL, BrokerFault.POWER_LOSS})
FAULTS_MAX: Final = 2
"""In one example: brokers take their time to start. They are drawn at its beginning and come before its end
at the latest; a rule that is one of ten would seldom be drawn."""
_TOLD: Final = {
    BrokerFault.KILL: "the broker is killed, and starts again",
    BrokerFault.RESTART: "the broker is stopped, and starts again",
    BrokerFault.POWER_LOSS: "the broker's machine loses its power, and the broker starts again",
    BrokerFault.FREEZE: "the broker is frozen for a while",
    BrokerFault.CUT: "all connections to the broker break",
}


@dataclass(frozen=True, slots=True)
class Befall:
    """The step of a suite."""

    fault: BrokerFault
    over_s: float = 0.0
    """When it was over, where a suite looks at the clock."""

    def __str__(self) -> str:
        return _TOLD[self.fault]


def found_after(fault: BrokerFault, now: T, written: frozenset[T]) -> frozenset[T]:
    """What a table can be found to be that the broker has in memory, writes as a whole now and then, and when
    it stops. `written` is all that may have been written last."""
    return written if fault in CRASHES else frozenset({now})
