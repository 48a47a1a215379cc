"""The dimensions of the suite of timers, and the scenario that meets a row of them."""

from typing import Final

from mqproof.conformance.engine.broker_faults import FAULT, NO_FAULT, BrokerFault, fault_dimension
from mqproof.conformance.engine.value_pairs import Dimension, Dimensions, Infeasible, Row, Value
from mqproof.conformance.suites.timers.session import TimersSession
from mqproof.conformance.suites.timers.target import DELAY_MAX_S, Capability

_DELAYS_S: Final = {"0.3 s": 0.3, "2 s": 2.0, "20 s": 20.0, "120 s": 120.0, "too long": DELAY_MAX_S + 1}
_COUNTS: Final = {"one": 1, "three for the same time": 3}
_PAUSES_S: Final = {"none": 0.0, "1.7 s": 1.7, "25 s": 25.0}
_NEVER: Final = "never"
_RECALLS: Final = {"before the fault": 1, "twice before the fault": 2}
_AFTER: Final = "after the time"
_OLD_S: Final = 70.0
"""After this time, a segment may be deleted."""


def _needs(seconds: float) -> frozenset[str]:
    """Return the capabilities to wait for this time; a delay that is too long is refused at once."""
    return frozenset({Capability.LONG_WAITS}) if 2 < seconds <= DELAY_MAX_S else frozenset()


DIMENSIONS: Final = Dimensions(
    (
        Dimension(
            "delay",
            tuple(
                Value(name, rf" is sent for {seconds} s later", needs=_needs(seconds))
                for name, seconds in _DELAYS_S.items()
            ),
        ),
        Dimension(
            "messages",
            tuple(Value(name, rf"(?:^at .* is sent for .*\n){{{count}}}") for name, count in _COUNTS.items()),
        ),
        Dimension(
            "recall",
            (
                Value(_NEVER, hides="recall of"),
                *(Value(name, rf"(?s)\A(?:(?:(?!visible:).)*?recall of){{{count}}}")
                  for name, count in _RECALLS.items()),
                Value(_AFTER, "(?s)visible:.*recall of"),
            ),
        ),
        Dimension(
            "pause before the fault",
            tuple(
                Value(name, rf"^{seconds:g} s pass$", needs=_needs(seconds))
                if seconds
                else Value(name, hides=r"^(?:1\.7|25) s pass$")
                for name, seconds in _PAUSES_S.items()
            ),
        ),
        Dimension(
            "old segments",
            (
                Value("kept", hides="are deleted"),
                Value("deleted", "^old segments of the log", needs=frozenset({Capability.DELETION})),
            ),
        ),
        fault_dimension(),
    ),
    tuple(
        Infeasible(("delay", "too long"), ("recall", recall), "a refused message cannot be recalled")
        for recall in (*_RECALLS, _AFTER)
    ),
)  # fmt: skip


def scenario(session: TimersSession, row: Row) -> None:
    """Send for a time, recall, and inject a fault or delete segments while messages wait."""
    delay_s, recall = _DELAYS_S[row["delay"]], row["recall"]
    for _ in range(_COUNTS[row["messages"]]):
        session.send(delay_s)
    for _ in range(_RECALLS.get(recall, 0)):
        session.recall(len(session.sent) - 1)
    if pause_s := _PAUSES_S[row["pause before the fault"]]:
        session.wait(pause_s)
        session.read()
    if row["old segments"] == "deleted":
        for pause_s in (_OLD_S, 2.0):
            session.wait(pause_s)
            session.read()  # a message that was delivered may be deleted, too
            session.delete_old()
    if row[FAULT] != NO_FAULT:
        session.inject(BrokerFault(row[FAULT]))
    session.read()
    accepted_s = delay_s if delay_s <= DELAY_MAX_S else 0.0
    session.wait(accepted_s + 4.0)
    session.read()
    if recall == _AFTER:
        session.recall(len(session.sent) - 1)
        session.wait(2.0)
        session.read()
