"""The faults that a suite injects into the broker under test, and the broker state that survives each one.

A fault is injected between two requests and has ended when the broker serves again. One-way requests, which
the suite does not wait for, may be in progress at that time. A target lists the faults that it can inject
among its capabilities.
"""

import re
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TypeVar

from mqproof.conformance.engine.value_pairs import Dimension, Value

T = TypeVar("T", bound=Hashable)


class BrokerFault(StrEnum):
    KILL = "kill"  # SIGKILL, then a start
    RESTART = "clean_restart"  # a clean exit, then a start
    POWER_LOSS = "power_loss"  # the machine crashes and keeps exactly the synced data; then a start
    FREEZE = "freeze"  # SIGSTOP, then SIGCONT after a while
    CUT = "cut"  # all connections to the broker break


ENDS: Final = frozenset({BrokerFault.KILL, BrokerFault.RESTART, BrokerFault.POWER_LOSS})
"""Faults that end the broker process: data that is only in memory and requests in progress are lost."""
CRASHES: Final = frozenset({BrokerFault.KILL, BrokerFault.POWER_LOSS})
FAULT: Final = "fault"
"""The name of the dimension of faults, and NO_FAULT one of its values."""
NO_FAULT: Final = "none"
FAULTS_MAX: Final = 2
"""The maximum number of faults in one example, because a broker restart takes time.

The faults are drawn at the beginning of the example and injected at its end at the latest. A rule that draws
a fault would be chosen too rarely, because it would be only one of about ten rules.
"""
_DESCRIPTIONS: Final = {
    BrokerFault.KILL: "the broker is killed and restarted",
    BrokerFault.RESTART: "the broker is stopped and restarted",
    BrokerFault.POWER_LOSS: "the broker's machine loses its power, and the broker is restarted",
    BrokerFault.FREEZE: "the broker is frozen for a while",
    BrokerFault.CUT: "all connections to the broker break",
}


@dataclass(frozen=True, slots=True)
class InjectFault:
    """The step of a run in which a fault is injected."""

    fault: BrokerFault
    over_s: float = 0.0
    """The time at which the fault had ended, for suites that check times."""

    def __str__(self) -> str:
        return _DESCRIPTIONS[self.fault]


def found_after(fault: BrokerFault, now: T, written: frozenset[T]) -> frozenset[T]:
    """Return the contents that a table may have after the fault.

    The broker keeps such a table in memory and writes it as a whole from time to time, and when it stops.
    `written` contains every value that may have been written last.
    """
    return written if fault in CRASHES else frozenset({now})


ANY_FAULT: Final = "^(?:" + "|".join(re.escape(text) for text in _DESCRIPTIONS.values()) + ")$"
"""A regular expression for the line of a fault in a script."""


def fault_dimension(faults: Iterable[BrokerFault] = BrokerFault) -> Dimension:
    """Return the dimension of a scenario's fault: none, or one of the faults."""
    texts = {fault: f"^{re.escape(_DESCRIPTIONS[fault])}$" for fault in faults}
    none = Value(NO_FAULT, hides="|".join(texts.values()))
    return Dimension(
        FAULT, (none, *(Value(fault, text, needs=frozenset({fault})) for fault, text in texts.items()))
    )
