"""The dimensions of the suite of delivery and rebalance, and the scenario that meets a row of them."""

from typing import Final

from mqproof.conformance.engine.broker_faults import FAULT, NO_FAULT, BrokerFault, fault_dimension
from mqproof.conformance.engine.value_pairs import Dimension, Dimensions, Infeasible, Row, Value
from mqproof.conformance.suites.delivery.session import DeliverySession
from mqproof.conformance.suites.delivery.steps import Change
from mqproof.conformance.suites.delivery.target import MEMBERS, QUEUES, Capability

UNKNOWN_MAX: Final = 3
"""The maximum number of ambiguous commits in one example.

Each one multiplies the states that the oracle keeps.
"""
_MEMBERS: Final = {
    "fewer than queues": QUEUES - 1,
    "as many as queues": QUEUES,
    "more than queues": QUEUES + 1,
}
_BURSTS: Final = {"in one queue": (0, 0), "in all queues": (0, 1, 2), "many in all queues": (0, 1, 2) * 4}
_COUNTS: Final = {"one message": 1, "all messages": 32}

_COMMITTED: Final = r"at \d+\ncommitted in queue .*\nc\d commits"
"""A commit directly after messages were read; the members of a settled group have read nothing before."""
_AT_ONCE: Final = (
    r"(?s)reads queue.*^c\d (?:joins|leaves|dies|falls silent)[^\n]*\n"
    r"(?:committed[^\n]*\n|c\d commits[^\n]*\n)*c\d sees"
)
"""A rebalance directly after the last change; a member commits the queues that it releases."""

DIMENSIONS: Final = Dimensions(
    (
        Dimension(
            "members",
            tuple(
                Value(name, rf"sees members \['c\d'(?:, 'c\d'){{{count - 1}}}\]")
                for name, count in _MEMBERS.items()
            ),
        ),
        Dimension(
            "burst",
            tuple(
                Value(name, rf"(?:^send to queue .*\n){{{len(burst)}}}") for name, burst in _BURSTS.items()
            ),
        ),
        Dimension("read", (Value("one message", r"reads queue \d from \d+: m\d+ at \d+$"),
                           Value("all messages", r"reads queue \d from \d+: m\d+ at \d+"))),
        Dimension(
            "commit",
            (
                Value("none", hides=_COMMITTED),
                Value("awaited", rf"{_COMMITTED} \d+ of queue \d$"),
                Value("without waiting", f"{_COMMITTED} .*without waiting for the answer"),
            ),
        ),
        Dimension(
            "change",
            (
                *(Value(each, f"^c. {each};") for each in (Change.JOINS, Change.LEAVES, Change.DIES)),
                Value(Change.SILENT, f"^c. {Change.SILENT};", needs=frozenset({Capability.SILENCE})),
            ),
        ),
        Dimension(
            "rebalance",
            (Value("directly after the change", _AT_ONCE), Value("after the fault", hides=_AT_ONCE)),
        ),
        fault_dimension(),
    ),
    (
        Infeasible(("members", "more than queues"), ("change", Change.JOINS), "there is no other member"),
        Infeasible(("rebalance", "after the fault"), (FAULT, NO_FAULT), "there is no fault"),
    ),
)  # fmt: skip


def scenario(session: DeliverySession, row: Row) -> None:
    """Bring the group to a size, let it read and commit, and change it around a fault."""
    present = MEMBERS[: _MEMBERS[row["members"]]]
    for member in MEMBERS:
        if member in present and member not in session.positions:
            session.change(member, Change.JOINS)
    for member in sorted(session.positions.keys() - set(present)):
        session.change(member, Change.LEAVES)
    for member in present * 2:
        session.rebalance(member)
    for queue in _BURSTS[row["burst"]]:
        session.send(queue)
    for member in present:
        _read(session, member, _COUNTS[row["read"]], row["commit"])
    change = Change(row["change"])
    member = MEMBERS[len(present)] if change is Change.JOINS else present[0]
    session.change(member, change)
    if row["rebalance"] == "directly after the change":
        for each in sorted(session.positions):
            session.rebalance(each)
    if row[FAULT] != NO_FAULT:
        session.inject(BrokerFault(row[FAULT]))
    session.settle()


def _read(session: DeliverySession, member: str, count: int, commit: str) -> None:
    for queue in sorted(session.positions[member]):
        session.read(member, queue, count)
        if commit != "none":
            oneway = commit == "without waiting" and session.unknown < UNKNOWN_MAX
            session.commit(member, queue, oneway=oneway)
