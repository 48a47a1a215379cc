"""The dimensions of the routing suite, and the scenario that meets a row of them."""

from typing import Final

from mqproof.conformance.engine.value_pairs import Dimension, Dimensions, Infeasible, Row, Value
from mqproof.conformance.suites.routing.session import RoutingSession
from mqproof.conformance.suites.routing.target import MASTER, TOPICS, Broker, Capability

_MASTER, _SLAVE = Broker("a", MASTER), Broker("a", 1)
_OTHER: Final = Broker("b", MASTER)
_WHO: Final = {
    "a master": (_MASTER,),
    "a slave": (_SLAVE,),
    "a master and its slave": (_MASTER, _SLAVE),
    "two masters": (_MASTER, _OTHER),
    "two masters and a slave": (_MASTER, _SLAVE, _OTHER),
}
_TOPICS: Final = {"both": TOPICS, "one": TOPICS[1:]}
_WAIT: Final = frozenset({Capability.WAIT})
_NONE, _SHARED, _UNREGISTERS, _CLOSED, _SILENT = (
    "none",
    "shared",
    "unregisters",
    "connection closes",
    "silence",
)
_ISOLATED, _RESTARTED, _WIPED, _SHORT = "isolated", "restarted", "a permission is wiped", "a short silence"
_SINGLE: Final = ("a master", "a slave")
_LAST: Final = r"^\w+ {} registers with .*\n(?:(?:route of|known brokers|a client sends).*(?:\n|\Z))+\Z"
"""A registration after which only answers of the name server follow."""

DIMENSIONS: Final = Dimensions(
    (
        Dimension("brokers", tuple(
            Value(name, rf"(?:^\w+ \w registers with .*\n){{{len(who)}}}") for name, who in _WHO.items()
        )),
        Dimension("topics", (
            Value("both", "registers with topic, other"), Value("one", "registers with other"),
        )),
        Dimension("connections", (
            Value("own", hides="over the connection of"),
            Value(_SHARED, "over the connection of", needs=frozenset({Capability.SHARE})),
        )),
        Dimension("name server", (
            Value(_NONE, hides="write permission|is killed|is isolated"),
            Value(_WIPED, "the write permission of a is removed"),
            Value(_SHORT, "s pass$", needs=_WAIT),
            Value(_RESTARTED, "is killed and restarted", needs=frozenset({Capability.RESTART})),
            Value(_ISOLATED, "the name server is isolated", needs=frozenset({Capability.ISOLATE})),
        )),
        Dimension("end", (
            Value(_NONE, hides="unregisters$|^the connection of"),
            Value(_UNREGISTERS, r"^\w+ a unregisters"),
            Value(_CLOSED, r"^the connection of \w+ a closes"),
            Value(_SILENT, "s pass$", needs=_WAIT),
        )),
        Dimension("afterwards", (
            Value("nothing", hides=_LAST.format(r"\w")),
            Value("the broker registers again", _LAST.format("a")),
            Value("another broker registers", _LAST.format("b")),
        )),
    ),
    tuple(
        Infeasible(("connections", _SHARED), ("brokers", who), "one broker has nothing to share")
        for who in _SINGLE
    ),
)  # fmt: skip


def scenario(session: RoutingSession, row: Row) -> None:
    """Register brokers, disturb the name server, let a broker end, and register again."""
    who, topics, times = _WHO[row["brokers"]], _TOPICS[row["topics"]], session.target.times
    first = who[0]
    for broker in who:
        shares = row["connections"] == _SHARED and broker != first
        session.register(broker, topics, first if shares else None)
    session.look()
    match row["name server"]:
        case "a permission is wiped":
            session.wipe("a")
        case "a short silence":
            session.wait(round(0.5 * times.expiry_s, 1))
        case "restarted":
            session.restart()
        case "isolated":
            session.register_isolated(first, topics)
    session.look()
    match row["end"]:
        case "unregisters":
            session.unregister(first)
        case "connection closes":
            session.hang_up(first)
        case "silence":
            session.wait(round(1.04 * (times.expiry_s + times.scan_s), 1))
    session.look()
    if row["afterwards"] != "nothing":
        again = row["afterwards"] == "the broker registers again"
        session.register(first if again else _OTHER, topics)
        session.look()
