"""The shares of a group's members, action for action as in spec/tla/Rebalance.tla.

The order is the same: state, shares, members, brokers and operators, safety. What belongs to a member or a
broker is in tuples, in the order of the configuration. Queues count from 1, as in TLA+.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any, Final, NamedTuple

from mqproof.reference.liveness import PAIR, Finite, Obligations, settles, weak
from mqproof.reference.model import Action, Model, Parameters, by_name, each, named
from mqproof.reference.tlc_terms import configuration, operators
from mqproof.reference.updates import with_item


@dataclass(frozen=True)
class Config:
    members: tuple[int, ...] = (1, 2)
    """The client ids, as numbers."""
    brokers: tuple[str, ...] = ("a",)
    counts: tuple[int, ...] = (1, 2)
    """The numbers of queues that the topic may have."""
    strategy: str = "average"
    """ "average" or "circle"."""


# State


class Basis(NamedTuple):
    """What a share was computed from."""

    ids: frozenset[int] = frozenset()
    queues: int = 0


NO_BASIS: Final = Basis()
Queues = frozenset[int]
Strategy = Callable[[int, int, int], Queues]
"""Maps the place of a member, from 0, the number of members and the number of queues to its share."""

_NO_QUEUES: Final[Queues] = frozenset()


class State(NamedTuple):
    """The state of the model. A named tuple, because the explorer copies and hashes states most often."""

    queues: int  # the number of queues of the topic
    alive: frozenset[int]  # the members that run
    known: tuple[tuple[int, ...], ...]  # by broker: the members that it knows, as they registered
    route: tuple[int, ...]  # by member: the number of queues in its route
    share: tuple[Queues, ...]  # by member: the queues that it owns
    basis: tuple[Basis, ...]  # history, by member: what its share was computed from


def initial(config: Config) -> tuple[State, ...]:
    """Init: one initial state for each number of queues."""
    size = len(config.members)
    none: frozenset[int] = frozenset()
    known: tuple[tuple[int, ...], ...] = ((),) * len(config.brokers)
    return tuple(
        State(count, none, known, (count,) * size, (_NO_QUEUES,) * size, (NO_BASIS,) * size)
        for count in config.counts
    )


# Shares


def average(place: int, size: int, count: int) -> Queues:
    """Average: a block of queues; the first members have one queue more."""
    queues, rest = divmod(count, size)
    first = place * queues + min(place, rest)
    return frozenset(range(first + 1, first + queues + (place < rest) + 1))


def circle(place: int, size: int, count: int) -> Queues:
    """Circle: one queue after the other."""
    return frozenset(range(place + 1, count + 1, size))


def share_of(config: Config, ids: tuple[int, ...], member: int, count: int) -> Queues:
    """Share: the queues of a member; a member that the broker does not list has none."""
    if member not in ids:
        return _NO_QUEUES
    strategy: Strategy = average if config.strategy == "average" else circle
    return strategy(sorted(ids).index(member), len(ids), count)


# Members


def start(config: Config, state: State, member: int) -> State | None:
    """Start: the process of a member starts, and receives the route."""
    if member in state.alive:
        return None
    route = with_item(state.route, config.members.index(member), state.queues)
    return state._replace(alive=state.alive | {member}, route=route)


def die(config: Config, state: State, member: int) -> State | None:
    """Die: the process of a member ends, which no broker knows yet."""
    if member not in state.alive:
        return None
    m = config.members.index(member)
    return state._replace(
        alive=state.alive - {member},
        share=with_item(state.share, m, _NO_QUEUES),
        basis=with_item(state.basis, m, NO_BASIS),
    )


def heartbeat(config: Config, state: State, member: int, broker: str) -> State | None:
    """Heartbeat: a broker adds a member that it does not know."""
    b = config.brokers.index(broker)
    if member not in state.alive or member in state.known[b]:
        return None
    return state._replace(known=with_item(state.known, b, (*state.known[b], member)))


def poll(config: Config, state: State, member: int) -> State | None:
    """Poll: a member receives the present route of the topic."""
    m = config.members.index(member)
    if member not in state.alive or state.route[m] == state.queues:
        return None
    return state._replace(route=with_item(state.route, m, state.queues))


def rebalance(config: Config, state: State, member: int, broker: str) -> State | None:
    """Rebalance: a member asks a broker for the members, and computes its share."""
    m, ids = config.members.index(member), state.known[config.brokers.index(broker)]
    basis = Basis(frozenset(ids), state.route[m])
    if member not in state.alive or state.basis[m] == basis:
        return None
    share = share_of(config, ids, member, state.route[m])
    return state._replace(share=with_item(state.share, m, share), basis=with_item(state.basis, m, basis))


# Brokers and operators


def forget(config: Config, state: State, broker: str, member: int) -> State | None:
    """Forget: the connection of a member that ended closes, or its heartbeats are missing."""
    b = config.brokers.index(broker)
    if member in state.alive or member not in state.known[b]:
        return None
    return state._replace(known=with_item(state.known, b, tuple(n for n in state.known[b] if n != member)))


def restart(config: Config, state: State, broker: str) -> State | None:
    """Restart: a broker loses its table of members, which is only in memory."""
    b = config.brokers.index(broker)
    return state._replace(known=with_item(state.known, b, ())) if state.known[b] else None


def resize(_config: Config, state: State, count: int) -> State | None:
    """Resize: an operator changes the number of queues."""
    return state._replace(queues=count) if count != state.queues else None


# Actions


def _pairs(config: Config) -> Iterable[Parameters]:
    return product(config.members, config.brokers)


def _forgotten(config: Config) -> Iterable[Parameters]:
    return product(config.brokers, config.members)


ACTIONS: Final[dict[str, Action[Config, State]]] = by_name(
    Action("Start", start, each("members")),
    Action("Die", die, each("members")),
    Action("Heartbeat", heartbeat, _pairs),
    Action("Poll", poll, each("members")),
    Action("Rebalance", rebalance, _pairs),
    Action("Forget", forget, _forgotten),
    Action("Restart", restart, each("brokers")),
    Action("Resize", resize, each("counts")),
)


# Safety


def settled(config: Config, state: State) -> bool:
    """Settled: the members that run have computed their shares from themselves and the present queues."""
    now = Basis(state.alive, state.queues)
    return bool(state.alive) and all(
        basis == now
        for member, basis in zip(config.members, state.basis, strict=True)
        if member in state.alive
    )


def one_owner(config: Config, state: State) -> bool:
    """DELIV-6 OneOwner: members that agree share no queue; when all agree, each queue has one owner."""
    alive = [m for m, member in enumerate(config.members) if member in state.alive]
    for m, n in combinations(alive, 2):
        if state.basis[m] == state.basis[n] and state.share[m] & state.share[n]:
            return False
    if not settled(config, state):
        return True
    owned = sorted(queue for m in alive for queue in state.share[m])
    return owned == list(range(1, state.queues + 1))


# Liveness


def _changes(_config: Config, _before: State, action: str, _after: State) -> bool:
    return action in ("Start", "Die", "Restart", "Resize")


FAIRNESS: Final = (
    weak("Heartbeat", "Heartbeat"),
    weak("Poll", "Poll"),
    weak("Rebalance", "Rebalance", each=PAIR),
    weak("Forget", "Forget"),
    Finite("EndOfChanges", _changes),
)


def queues_owned(config: Config) -> Obligations[State]:
    """QueuesOwned: once members and brokers no longer change, each queue has one owner, and keeps it."""

    def owned(state: State) -> bool:
        shares = [
            share for member, share in zip(config.members, state.share, strict=True) if member in state.alive
        ]
        return not shares or all(
            sum(queue in share for share in shares) == 1 for queue in range(1, state.queues + 1)
        )

    return settles(owned)


# The model in TLC's terms


def from_tla(config: Config, variables: Mapping[str, Any]) -> State:
    """Return the state that TLC prints."""

    def by_member(name: str) -> tuple[Any, ...]:
        values = variables[name]
        if isinstance(values, tuple):  # TLC prints a function over 1..n as a sequence
            return values
        return tuple(values[member] for member in config.members)

    return State(
        queues=variables["queues"],
        alive=frozenset(variables["alive"]),
        known=tuple(tuple(variables["known"][broker]) for broker in config.brokers),
        route=by_member("route"),
        share=tuple(map(frozenset, by_member("share"))),
        basis=tuple(Basis(frozenset(b["ids"]), b["queues"]) for b in by_member("basis")),
    )


MODEL: Final = Model(
    name="Rebalance",
    initial=initial,
    actions=ACTIONS,
    invariants=named(one_owner),
    fairness=FAIRNESS,
    liveness=named(queues_owned),
    from_constants=configuration(
        Config, members="Members", brokers="Brokers", counts="Counts", strategy="Strategy"
    ),
    from_tla=from_tla,
    operator=operators(),
)
