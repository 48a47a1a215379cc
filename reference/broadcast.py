"""Broadcast mode, action for action as in spec/tla/Broadcast.tla.

The order is the same: state, the topic, the members, safety. What belongs to a member and a queue is in
tuples of tuples, in the order of the configuration. Messages of a queue count from 1, as in TLA+.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any, Final, NamedTuple

from mqproof.reference.liveness import PAIR, Finite, Obligations, leads_to, weak
from mqproof.reference.model import Action, Model, Parameters, by_name, each, named
from mqproof.reference.tlc_terms import configuration, operators
from mqproof.reference.updates import with_item


@dataclass(frozen=True)
class Config:
    members: tuple[str, ...] = ("c1",)
    queues: tuple[str, ...] = ("q0",)
    """The queues that the topic may have."""
    initial: tuple[str, ...] = ("q0",)
    """The queues that it has from the beginning."""
    length_max: int = 1
    """The most messages in a queue."""


# State

Table = tuple[tuple[Any, ...], ...]
"""Values by member and queue."""


class State(NamedTuple):
    """The state of the model. A named tuple, because the explorer copies and hashes states most often."""

    exists: frozenset[str]  # the queues of the topic
    stored: tuple[int, ...]  # by queue: the number of its messages
    alive: frozenset[str]  # the members that run
    old: tuple[frozenset[str], ...]  # by member: the queues that the topic had when the member started
    next: Table  # the place of the next message to pull; 0 if the member does not read the queue
    held: Table  # the messages that were pulled and are not consumed
    file: Table  # the place in the file of the member; 0 if there is none
    first: Table  # history: where the member began to read for the first time; 0 if it did not
    got: Table  # history: the messages that the member consumed


def initial(config: Config) -> tuple[State, ...]:
    """Init: the one initial state."""
    members, queues = len(config.members), len(config.queues)
    none: frozenset[str] = frozenset()
    no_messages: frozenset[int] = frozenset()
    places, sets = ((0,) * queues,) * members, ((no_messages,) * queues,) * members
    exists = frozenset(config.initial)
    return (State(exists, (0,) * queues, none, (none,) * members, places, sets, places, places, sets),)


def _at(config: Config, member: str, queue: str) -> tuple[int, int]:
    return config.members.index(member), config.queues.index(queue)


def with_cell(table: Table, m: int, q: int, value: Any) -> Table:
    """Return the table with another value for one member and queue."""
    return with_item(table, m, with_item(table[m], q, value))


# The topic


def create(_config: Config, state: State, queue: str) -> State | None:
    """Create: the topic gets a queue."""
    return state._replace(exists=state.exists | {queue}) if queue not in state.exists else None


def store(config: Config, state: State, queue: str) -> State | None:
    """Store: a message is stored."""
    q = config.queues.index(queue)
    if queue not in state.exists or state.stored[q] >= config.length_max:
        return None
    return state._replace(stored=with_item(state.stored, q, state.stored[q] + 1))


# The members


def start(config: Config, state: State, member: str) -> State | None:
    """Start: the process of a member starts, and receives the route."""
    if member in state.alive:
        return None
    old = with_item(state.old, config.members.index(member), state.exists)
    return state._replace(alive=state.alive | {member}, old=old)


def start_place(config: Config, state: State, member: str, queue: str) -> int:
    """StartPlace: the place in the file, else the end; of a queue that is new, the beginning."""
    m, q = _at(config, member, queue)
    place: int = state.file[m][q]
    if place:
        return place
    return state.stored[q] + 1 if queue in state.old[m] else 1


def begin_at(config: Config, state: State, member: str, queue: str, place: int) -> State | None:
    """Begin at a place, which the member writes to its file even if no message arrives."""
    m, q = _at(config, member, queue)
    if member not in state.alive or queue not in state.exists or state.next[m][q]:
        return None
    return state._replace(
        next=with_cell(state.next, m, q, place),
        file=with_cell(state.file, m, q, place),
        first=with_cell(state.first, m, q, state.first[m][q] or place),
    )


def begin(config: Config, state: State, member: str, queue: str) -> State | None:
    """Begin: a member begins to read a queue."""
    return begin_at(config, state, member, queue, start_place(config, state, member, queue))


def pull(config: Config, state: State, member: str, queue: str) -> State | None:
    """Pull: the next message is in the memory of the member."""
    m, q = _at(config, member, queue)
    place = state.next[m][q]
    if not place or place > state.stored[q]:
        return None
    return state._replace(
        held=with_cell(state.held, m, q, state.held[m][q] | {place}),
        next=with_cell(state.next, m, q, place + 1),
    )


def consume(config: Config, state: State, member: str, queue: str, place: int) -> State | None:
    """Consume: a call of the listener ends. Several calls may run at once."""
    m, q = _at(config, member, queue)
    if place not in state.held[m][q]:
        return None
    return state._replace(
        held=with_cell(state.held, m, q, state.held[m][q] - {place}),
        got=with_cell(state.got, m, q, state.got[m][q] | {place}),
    )


def offset(config: Config, state: State, member: str, queue: str) -> int:
    """Offset: the first message that is not consumed."""
    m, q = _at(config, member, queue)
    place: int = min(state.held[m][q], default=state.next[m][q])
    return place


def persist(config: Config, state: State, member: str, queue: str) -> State | None:
    """Persist: a member writes its offset to its file."""
    m, q = _at(config, member, queue)
    place = offset(config, state, member, queue)
    if not state.next[m][q] or state.file[m][q] == place:
        return None
    return state._replace(file=with_cell(state.file, m, q, place))


def die(config: Config, state: State, member: str) -> State | None:
    """Die: the process of a member ends. Only its file remains."""
    if member not in state.alive:
        return None
    m, queues = config.members.index(member), len(config.queues)
    return state._replace(
        alive=state.alive - {member},
        old=with_item(state.old, m, frozenset()),
        next=with_item(state.next, m, (0,) * queues),
        held=with_item(state.held, m, (frozenset(),) * queues),
    )


# Actions


def _pairs(config: Config) -> Iterable[Parameters]:
    return product(config.members, config.queues)


def _messages(config: Config) -> Iterable[Parameters]:
    return product(config.members, config.queues, range(1, config.length_max + 1))


ACTIONS: Final[dict[str, Action[Config, State]]] = by_name(
    Action("Create", create, each("queues")),
    Action("Store", store, each("queues")),
    Action("Start", start, each("members")),
    Action("Die", die, each("members")),
    Action("Begin", begin, _pairs),
    Action("Pull", pull, _pairs),
    Action("Persist", persist, _pairs),
    Action("Consume", consume, _messages),
)


# Safety


def broadcast_to_all(config: Config, state: State) -> bool:
    """DELIV-11 BroadcastToAll: a member passes no message that it has not consumed.

    This holds from the place where the member began for the first time. A queue that is created while it runs
    is read from its beginning.
    """
    for (m, member), (q, queue) in product(enumerate(config.members), enumerate(config.queues)):
        first, got, held = state.first[m][q], state.got[m][q], state.held[m][q]
        if first:
            if not got.issuperset(range(first, state.file[m][q])):
                return False
            if not (got | held).issuperset(range(first, state.next[m][q])):
                return False
        if member in state.alive and state.next[m][q] and queue not in state.old[m] and first != 1:
            return False
    return True


# Liveness


FAIRNESS: Final = (
    weak("Start", "Start"),
    weak("Begin", "Begin"),
    weak("Pull", "Pull", each=PAIR),
    weak("Consume", "Consume", each=PAIR),
    Finite("EndOfDeaths", lambda _config, _before, action, _after: action == "Die"),
)


def each_gets_all(config: Config) -> Obligations[State]:
    """EachGetsAll: each member consumes each message from where it began."""

    def passed(state: State, member: str, queue: str, place: int) -> bool:
        m, q = config.members.index(member), config.queues.index(queue)
        return place in state.got[m][q] or state.first[m][q] > place

    return leads_to(
        lambda s, _member, queue, place: s.stored[config.queues.index(queue)] >= place,
        passed,
        of=product(config.members, config.queues, range(1, config.length_max + 1)),
    )


# The model in TLC's terms


def from_tla(config: Config, variables: Mapping[str, Any]) -> State:
    """Return the state that TLC prints."""

    def table(name: str, kind: Any = int) -> Table:
        rows = (variables[name][member] for member in config.members)
        return tuple(tuple(kind(row[queue]) for queue in config.queues) for row in rows)

    return State(
        exists=frozenset(variables["exists"]),
        stored=tuple(variables["stored"][queue] for queue in config.queues),
        alive=frozenset(variables["alive"]),
        old=tuple(frozenset(variables["old"][member]) for member in config.members),
        next=table("next"),
        held=table("held", frozenset),
        file=table("file"),
        first=table("first"),
        got=table("got", frozenset),
    )


MODEL: Final = Model(
    name="Broadcast",
    initial=initial,
    actions=ACTIONS,
    invariants=named(broadcast_to_all),
    fairness=FAIRNESS,
    liveness=named(each_gets_all),
    from_constants=configuration(
        Config, members="Members", queues="Queues", initial="Initial", length_max="LengthMax"
    ),
    from_tla=from_tla,
    operator=operators(("Store",)),
)
