"""The dimensions of the administration suite, and the scenario that meets a row of them."""

from typing import Final

from mqproof.conformance.engine.broker_faults import ANY_FAULT, FAULT, NO_FAULT, BrokerFault, fault_dimension
from mqproof.conformance.engine.value_pairs import Dimension, Dimensions, Infeasible, Row, Value
from mqproof.conformance.suites.admin.session import AdminSession
from mqproof.conformance.suites.admin.target import GROUPS, TOPICS
from mqproof.reference.rules.administration import READ, WRITE, Group, Topic

_TOPIC, _GROUP, _OTHER = TOPICS[0], GROUPS[0], GROUPS[1]
_BURSTS: Final = {"one": 1, "five": 5, "so many that the index has two files": 24}
_KEYS: Final = {"none": "", "one": "k", "two with one hash": "Aa BB"}
_KEPT, _CHANGED, _DELETED, _RECREATED = "kept", "changed", "deleted", "recreated"
_NONE: Final = "none"
_OFFSETS: Final = {"within the queue": 1, "beyond the end": 99}
_CLONED: Final = "cloned to another group"
_LATE: Final = f"(?s){ANY_FAULT}.*^(?:create|delete) "
_NEW_TOPIC: Final = Topic(3, 3, READ | WRITE)
_NEW_GROUP: Final = Group(consumes=True, retries_max=16)


def _life(what: str) -> Dimension:
    """Return the dimension of the life of a topic or a group, which the scenario creates first."""
    created, deleted = f"^create {what}:", f"^delete {what}"
    again = f"(?s){created}.*{created}"
    after = f"(?s){deleted}.*{created}"
    return Dimension(
        f"{what.split()[0]} life",
        (
            Value(_KEPT, created, f"{again}|{deleted}"),
            Value(_CHANGED, again, deleted),
            Value(_DELETED, deleted, after),
            Value(_RECREATED, after),
        ),
    )


DIMENSIONS: Final = Dimensions(
    (
        Dimension(
            "messages",
            tuple(Value(name, rf"(?:^send m\d+ .*\n){{{count}}}") for name, count in _BURSTS.items()),
        ),
        Dimension(
            "keys", tuple(Value(name, f"^send .* with keys {key!r} to") for name, key in _KEYS.items())
        ),
        _life(f"topic {_TOPIC}"),
        _life(f"group {_GROUP}"),
        Dimension(
            "offset",
            (
                Value(_NONE, hides=f"^{_GROUP} commits"),
                *(Value(name, f"^{_GROUP} commits {offset} of") for name, offset in _OFFSETS.items()),
                Value(_CLONED, f"^{_OTHER} gets the offsets of {_GROUP}"),
            ),
        ),
        Dimension(
            "changes",
            (Value("before the fault", hides=_LATE), Value("after the fault", _LATE)),
        ),
        fault_dimension(),
    ),
    (Infeasible(("changes", "after the fault"), (FAULT, NO_FAULT), "there is no fault"),),
)


def scenario(session: AdminSession, row: Row) -> None:
    """Send, commit, change or delete a topic and a group, and inject a fault."""
    session.make_topic(_TOPIC, _NEW_TOPIC)
    session.make_group(_GROUP, _NEW_GROUP)
    session.make_group(_OTHER, _NEW_GROUP)
    session.look()
    for _ in range(_BURSTS[row["messages"]]):
        session.send(_TOPIC, 0, _KEYS[row["keys"]])
    session.read(_GROUP, _TOPIC, 0)
    if row["offset"] != _NONE:
        session.commit(_GROUP, _TOPIC, 0, _OFFSETS.get(row["offset"], 1))
    if row["offset"] == _CLONED:
        session.clone(_GROUP, _OTHER, _TOPIC)
    early = row["changes"] == "after the fault"
    if early:
        _inject(session, row[FAULT])
    _change(session, row)
    if not early:
        _inject(session, row[FAULT])
    session.look()
    for key in ("Aa", "BB", "k"):
        session.by_key(_TOPIC, key)
    for group in GROUPS if row["group life"] != _DELETED else (_OTHER,):
        session.query(group, _TOPIC, 0)


def _inject(session: AdminSession, fault: str) -> None:
    if fault != NO_FAULT:
        session.inject(BrokerFault(fault))


def _change(session: AdminSession, row: Row) -> None:
    topic, group = row["topic life"], row["group life"]
    if topic in (_DELETED, _RECREATED):
        session.delete_topic(_TOPIC)
        session.look()
    if topic in (_CHANGED, _RECREATED):
        session.make_topic(_TOPIC, Topic(2, 2, READ | WRITE))
    if group in (_DELETED, _RECREATED):
        session.delete_group(_GROUP)
        session.look()
    if group in (_CHANGED, _RECREATED):
        session.make_group(_GROUP, Group(consumes=True, retries_max=3))
