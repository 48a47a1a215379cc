"""The dimensions of the suite of requests and replies, and the scenario that meets a row of them."""

from typing import Final

from mqproof.conformance.engine.broker_faults import ANY_FAULT, FAULT, NO_FAULT, BrokerFault, fault_dimension
from mqproof.conformance.engine.value_pairs import Dimension, Dimensions, Infeasible, Row, Value
from mqproof.conformance.suites.request_reply.session import RequestReplySession
from mqproof.conformance.suites.request_reply.target import Capability

_LIMITS_S: Final = {"1 s": 1.0, "20 s": 20.0}
_WAITING: Final = {"one": ("c1",), "two of one client": ("c1", "c1"), "of two clients": ("c1", "c2")}
_NEVER, _LATE = "never", "after the time limit"
_TWICE: Final = "(?s)the reply to.*the reply to"
_REPLIES: Final = {"in time": 1, "twice in time": 2}
_ENDS: Final = "ends"
_RESTARTS: Final = "ends, and its next process requests"
_EARLY: Final = f"(?s){ANY_FAULT}.*the reply to"
_SIMULATED: Final = frozenset({Capability.SIMULATED_TIME})

DIMENSIONS: Final = Dimensions(
    (
        Dimension(
            "time limit",
            (Value("1 s", ", for 1 s,"), Value("20 s", ", for 20 s,", needs=_SIMULATED)),
        ),
        Dimension(
            "requests",
            (
                Value("one", r"^at .* request r\d+ of c1"),
                Value("two of one client", r"(?s)request r\d+ of c1.*request r\d+ of c1"),
                Value("of two clients", r"(?s)request r\d+ of c1.*request r\d+ of c2"),
            ),
        ),
        Dimension(
            "client",
            (
                Value("stays", hides="the process of c1 ends"),
                Value(_ENDS, "the process of c1 ends"),
                Value(_RESTARTS, r"(?s)the process of c1 ends.*request r\d+ of c1"),
            ),
        ),
        Dimension(
            "reply",
            (
                Value(_NEVER, hides="the reply to"),
                Value("in time", "the reply to", _TWICE),
                Value("twice in time", _TWICE),
                Value(_LATE, "(?s)s pass.*the reply to"),
            ),
        ),
        Dimension("fault comes", (Value("before the reply", _EARLY), Value("after the reply", hides=_EARLY))),
        fault_dimension(),
    ),
    (
        Infeasible(("fault comes", "before the reply"), ("reply", _NEVER), "there is no reply"),
        Infeasible(("fault comes", "before the reply"), (FAULT, NO_FAULT), "there is no fault"),
    ),
)  # fmt: skip


def scenario(session: RequestReplySession, row: Row) -> None:
    """Request, end a client, inject a fault, and reply."""
    limit_s, known = _LIMITS_S[row["time limit"]], len(session.calls)
    for client in _WAITING[row["requests"]]:
        session.request(client, limit_s)
    if row["client"] != "stays":
        session.lose("c1")
    if row["client"] == _RESTARTS:
        session.request("c1", limit_s)
    early = row["fault comes"] == "before the reply"
    if early:
        _inject(session, row[FAULT])
    if row["reply"] == _LATE:
        session.wait(limit_s + 1.0)
    for _ in range(_REPLIES.get(row["reply"], int(row["reply"] == _LATE))):
        if len(session.calls) > known:
            session.reply(known)
    if not early:
        _inject(session, row[FAULT])
    session.wait(limit_s + 1.0)


def _inject(session: RequestReplySession, fault: str) -> None:
    if fault != NO_FAULT:
        session.inject(BrokerFault(fault))
