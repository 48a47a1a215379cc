"""The dimensions of the suite of pulls and offsets, and the scenario that meets a row of them."""

import re
from typing import Final

from mqproof.conformance.engine.broker_faults import FAULT, NO_FAULT, BrokerFault, fault_dimension
from mqproof.conformance.engine.value_pairs import Dimension, Dimensions, Infeasible, Row, Value
from mqproof.conformance.suites.offsets.session import OffsetsSession
from mqproof.conformance.suites.offsets.target import Capability

UNKNOWN_MAX: Final = 3
"""The maximum number of ambiguous commits in one example.

Each one multiplies the states that the oracle keeps.
"""
_BATCHES: Final = {"two": 2, "five": 5, "nine": 9}
_SEND: Final = r"^send to queue 0.*\n"
_BEYOND: Final = 1000
_AT_END: Final = r"^queue 0 has \d+\.\.(\d+)\n(?:.*\n){0,2}?.*commit(?:ting)? \1\b"
_EXPRESSIONS: Final = ("*", "A", "A || BB", "absent")
_SQL: Final = "sql:NOT (TAGS = 'A')"
_WRITTEN: Final = "written before the fault"

DIMENSIONS: Final = Dimensions(
    (
        Dimension(
            "batch",
            tuple(
                Value(name, rf"(?:{_SEND}){{{count}}}", rf"(?:{_SEND}){{{count + 1}}}")
                for name, count in _BATCHES.items()
            ),
        ),
        Dimension(
            "expression",
            (
                *(Value(text, rf"^pull \d+ of {re.escape(text)} from") for text in _EXPRESSIONS),
                Value(_SQL, re.escape(_SQL), needs=frozenset({Capability.SQL92})),
            ),
        ),
        Dimension(
            "waiting pull",
            (
                Value("none", hides="and wait; then send"),
                Value("of a message that comes", r"and wait; then send m\d+ \(A\)"),
                Value("of a message that does not come", r"and wait; then send m\d+ \(BB\)",
                      needs=frozenset({Capability.CLOCK})),
            ),
        ),
        Dimension(
            "committed place",
            (
                Value("begin", r"commit(?:ting)? 0\b"),
                Value("middle", r"commit(?:ting)? (?!0\b|1\d{3}\b)\d+", _AT_END),
                Value("end", _AT_END),
                Value("beyond the end", r"commit(?:ting)? 1\d{3}\b"),
            ),
        ),
        Dimension(
            "commit",
            (
                Value("awaited", r"^commit \d+ of queue 0$"),
                Value("without waiting", "without waiting for the answer"),
                Value("with a pull", ", committing "),
            ),
        ),
        Dimension(
            "expiry",
            (
                Value("none", hides="^old messages expire"),
                Value("before the commit", "^old messages expire", needs=frozenset({Capability.EXPIRE})),
            ),
        ),
        Dimension(
            "offsets",
            (
                Value("not written", hides="offsets are written"),
                Value(_WRITTEN, "offsets are written", needs=frozenset({Capability.WRITE})),
            ),
        ),
        fault_dimension(),
    ),
    (Infeasible(("offsets", _WRITTEN), (FAULT, NO_FAULT), "offsets are only written ahead of a fault"),),
)  # fmt: skip


def scenario(session: OffsetsSession, row: Row) -> None:
    """Send a batch, pull, wait, commit, and inject a fault."""
    for number in range(_BATCHES[row["batch"]]):
        session.send(0, ("A", "Aa", "BB", "")[number % 4])
    if row["expiry"] != "none":
        session.expire()
    session.pull(0, 0, 2, row["expression"])
    if row["waiting pull"] != "none":
        session.hold(0, 2, "A", ("A",) if row["waiting pull"] == "of a message that comes" else ("BB",))
    session.bounds(0)
    end = session.ends[0]
    places = {"begin": 0, "middle": end // 2, "end": end, "beyond the end": end + _BEYOND}
    _commit(session, row["commit"], places[row["committed place"]])
    session.query(0)
    if row[FAULT] != NO_FAULT:
        session.inject(BrokerFault(row[FAULT]), late=row["offsets"] == _WRITTEN)
    session.look()
    session.drain()


def _commit(session: OffsetsSession, how: str, offset: int) -> None:
    if how == "with a pull":
        session.pull(0, offset, 1, commit=offset)
    else:
        oneway = how == "without waiting" and session.unknown < UNKNOWN_MAX
        session.commit(0, offset, oneway=oneway)
