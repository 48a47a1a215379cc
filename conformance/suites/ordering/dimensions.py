"""The dimensions of the suite of queue locks, and the scenario that meets a row of them."""

from typing import Final

from mqproof.conformance.engine.broker_faults import FAULT, NO_FAULT, BrokerFault, fault_dimension
from mqproof.conformance.engine.value_pairs import Dimension, Dimensions, Row, Value
from mqproof.conformance.suites.ordering.session import OrderingSession
from mqproof.conformance.suites.ordering.target import GROUPS, MEMBERS, QUEUES, Capability

UNHEARD_MAX: Final = 3
"""The maximum number of requests with a lost answer in one example.

Each one multiplies the states that the oracle keeps.
"""
_QUEUES: Final = {"one": {0}, "all": set(range(QUEUES))}
_PARTS: Final = {"none": 0.0, "trusted": 0.3, "no longer trusted": 0.6, "expired": 1.1}
_LEASE_ENDS: Final = frozenset({Capability.LEASE_ENDS})
# At the beginning and at the end, all members act in this order: c3, c2, c1.
_CONSUMES: Final = "(?s)c1 of g begins.*c3 of g locks"
_RENEWS: Final = "(?s)c1 of g locks.*c1 of g locks.*c1 of g locks"
_SECOND: Final = "(?s)c1 of g locks.*c2 of g {}.*c3 of g locks"
_UNLOCKS: Final = "(?s)c1 of g locks.*c1 of g unlocks"

DIMENSIONS: Final = Dimensions(
    (
        Dimension(
            "queues",
            (Value("one", r"c1 of g locks \[0\]"), Value("all", r"c1 of g locks \[0, 1\]")),
        ),
        Dimension("other group", (Value("idle", hides=" of h locks"), Value("locks", " of h locks"))),
        Dimension("holder", (Value("idle", hides=_CONSUMES), Value("consumes", _CONSUMES))),
        Dimension(
            "pause",
            (
                Value("none", hides="s pass$"),
                *(Value(name, "s pass$", needs=_LEASE_ENDS) for name, part in _PARTS.items() if part),
            ),
        ),
        Dimension("renewal", (Value("none", hides=_RENEWS), Value("after the pause", _RENEWS))),
        Dimension(
            "second member",
            (
                Value("none", hides=_SECOND.format("(?:locks|unlocks)")),
                Value("locks", _SECOND.format(r"locks [^\n]*: granted")),
                Value("locks without an answer", _SECOND.format(r"locks [^\n]*: the answer is lost")),
                Value("unlocks", _SECOND.format("unlocks")),
            ),
        ),
        Dimension("end", (Value("keeps", hides=_UNLOCKS), Value("unlocks", _UNLOCKS))),
        fault_dimension(),
    ),
)  # fmt: skip


def scenario(session: OrderingSession, row: Row) -> None:
    """Let one member lock, and another member, another group, time or a fault interfere."""
    group, other = GROUPS
    holder, second = MEMBERS[:2]
    queues = _QUEUES[row["queues"]]
    for member in reversed(MEMBERS):
        for queue in range(QUEUES):
            session.end(group, member, queue)
        session.unlock(group, member, set(range(QUEUES)))
    session.lock(group, holder, queues)
    if row["holder"] == "consumes":
        session.begin(group, holder, 0)
    if row["other group"] == "locks":
        session.lock(other, second, queues)
    if part := _PARTS[row["pause"]]:
        session.wait(round(part * session.target.lease_s, 3))
    if row["renewal"] != "none":
        session.lock(group, holder, queues)
    _interfere(session, group, second, row["second member"])
    if row["end"] == "unlocks":
        session.end(group, holder, 0)
        session.unlock(group, holder, queues)
    if row[FAULT] != NO_FAULT:
        session.inject(BrokerFault(row[FAULT]))
    for member in reversed(MEMBERS):
        session.lock(group, member, set(range(QUEUES)))
        session.begin(group, member, 0)


def _interfere(session: OrderingSession, group: str, member: str, how: str) -> None:
    everything = set(range(QUEUES))
    if how == "locks":
        session.lock(group, member, everything)
    elif how == "unlocks":
        session.unlock(group, member, everything)
    elif how != "none" and session.unheard < UNHEARD_MAX:
        session.lock_unheard(group, member, everything)
