"""The dimensions of the suite of transactions, and the scenario that meets a row of them."""

from typing import Final

from mqproof.conformance.engine.broker_faults import ANY_FAULT, FAULT, NO_FAULT, BrokerFault, fault_dimension
from mqproof.conformance.engine.value_pairs import Dimension, Dimensions, Infeasible, Row, Value
from mqproof.conformance.suites.transactions.session import TransactionsSession
from mqproof.conformance.suites.transactions.target import Capability, End

_CHECKS: Final = frozenset({Capability.CHECKS})
_ROUNDS: Final = {"none": 0, "one": 1, "four": 4}
_HALVES: Final = {"one": 1, "three": 3}
_COPY: Final = "the last copy"
_NEVER: Final = "never"
_END: Final = r"^at [^\n]* s {} of [^\n]*t\d+:"
_REPORT: Final = _END.format("(?:commit|rollback)")
_LATE: Final = f"(?s){ANY_FAULT}.*{_REPORT}"
_WAITED: Final = r"(?s)\A(?:(?:(?!visible:).)*? s pass$){{{}}}"
"""This number of waits before the first read."""

DIMENSIONS: Final = Dimensions(
    (
        Dimension(
            "half messages",
            tuple(Value(name, rf"(?:^at .* half message t\d+ .*\n){{{n}}}") for name, n in _HALVES.items()),
        ),
        Dimension(
            "rounds of checks",
            (
                Value("none", hides=_WAITED.format(1)),
                Value("one", _WAITED.format(1), _WAITED.format(2), needs=_CHECKS),
                Value("four", _WAITED.format(4), needs=_CHECKS),
            ),
        ),
        Dimension(
            "end",
            (Value(_NEVER, hides=_REPORT), *(Value(end, _END.format(end)) for end in End)),
        ),
        Dimension(
            "named by",
            (Value("the original", r" of t\d+: "), Value(_COPY, r"of copy \d+ of t\d+", needs=_CHECKS)),
        ),
        Dimension(
            "second report",
            (
                Value(_NEVER, hides=f"(?s){_REPORT}.*{_REPORT}"),
                *(Value(end, f"(?s){_REPORT}.*{_END.format(end)}") for end in End),
            ),
        ),
        Dimension("report", (Value("before the fault", hides=_LATE), Value("after the fault", _LATE))),
        fault_dimension(),
    ),
    (
        *(Infeasible(("named by", name), ("end", _NEVER), "a transaction that never ends has no report")
          for name in ("the original", _COPY)),
        *(Infeasible(("second report", end), ("end", _NEVER), "a second report follows a first one")
          for end in End),
        Infeasible(("named by", _COPY), ("rounds of checks", "none"), "a copy arrives with a check"),
        Infeasible(("report", "after the fault"), (FAULT, NO_FAULT), "there is no fault"),
        Infeasible(("report", "after the fault"), ("end", _NEVER),
                   "a transaction that never ends has no report"),
    ),
)  # fmt: skip


def scenario(session: TransactionsSession, row: Row) -> None:
    """Send half messages, let the broker check them, and report their ends around a fault."""
    first = len(session.halves)
    for _ in range(_HALVES[row["half messages"]]):
        session.send()
    for _ in range(_ROUNDS[row["rounds of checks"]]):
        session.wait(session.target.round_s + 1)
    late = row["report"] == "after the fault"
    if not late:
        _report(session, row, first)
    if row[FAULT] != NO_FAULT:
        session.inject(BrokerFault(row[FAULT]))
    if late:
        _report(session, row, first)
    session.read()
    if Capability.CHECKS in session.target.capabilities:
        session.wait(2 * session.target.round_s)
        session.read()


def _report(session: TransactionsSession, row: Row, first: int) -> None:
    copy = -1 if row.get("named by") == _COPY else 0
    for name in ("end", "second report"):
        if row.get(name, _NEVER) != _NEVER:
            session.report(first, End(row[name]), copy)
    session.read()
