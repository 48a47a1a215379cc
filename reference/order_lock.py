"""Orderly consumption under a lock, action for action as in spec/tla/OrderLock.tla.

The order is the same: state, rebalancing, the lock, consuming, time and faults, safety. Members have names;
their counters are in tuples, in the order of the configuration.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from mqproof.reference.liveness import FIRST, Obligations, recurs, strong, weak
from mqproof.reference.model import Action, Model, by_name, each, named, once
from mqproof.reference.tlc_terms import configuration, operators
from mqproof.reference.updates import with_item

NO_MEMBER: Final = "none"


@dataclass(frozen=True)
class Config:
    members: tuple[str, ...] = ("c1", "c2")
    lock_lease: int = 3
    """The time the broker keeps a lock that is not renewed, in ticks."""
    lock_trust: int = 2
    """The time a member trusts a lock that it was granted, in ticks."""
    renew_every: int = 1
    faults: bool = True
    """Whether locks are lost by restarts and stalls. It is a bound of MCOrderLock."""


class State(NamedTuple):
    """The state of the model. A named tuple, because the explorer copies and hashes states most often."""

    assigned: frozenset[str]  # the members that got the queue in their last rebalance
    leaving: frozenset[str]  # the members that dropped it and have not unlocked it yet
    holder: str  # the broker's lock table: the owner of the queue
    held: int  # the ticks since the lock was last granted
    asking: tuple[str, ...]  # by member: the lock request: "no", "asked", "granted", "refused"
    asked: tuple[int, ...]  # by member: ticks since it last asked
    trust: tuple[int, ...]  # by member: ticks since it last received a grant of the lock
    calls: frozenset[str]  # the members whose listener is processing a message of the queue
    lost_lock: frozenset[str]  # history: the members that lost the lock by a fault, until granted again


def initial(config: Config) -> tuple[State, ...]:
    """Init: the one initial state."""
    size = len(config.members)
    asked, trust = (config.renew_every,) * size, (config.lock_trust,) * size
    no_members: frozenset[str] = frozenset()
    return (
        State(no_members, no_members, NO_MEMBER, 0, ("no",) * size, asked, trust, no_members, no_members),
    )


def trusts(config: Config, state: State, member: str) -> bool:
    """Trusts: whether a member still relies on the lock that it was granted."""
    return state.trust[config.members.index(member)] < config.lock_trust


# Rebalancing


def gain(_config: Config, state: State, member: str) -> State | None:
    """Gain: a member that still has to unlock the queue does not take it again before that."""
    if member in state.assigned or member in state.leaving:
        return None
    return state._replace(assigned=state.assigned | {member})


def drop(_config: Config, state: State, member: str) -> State | None:
    """Drop: a rebalance takes the queue from a member, which must still unlock it."""
    if member not in state.assigned:
        return None
    return state._replace(assigned=state.assigned - {member}, leaving=state.leaving | {member})


# The lock


def ask(config: Config, state: State, member: str) -> State | None:
    """Ask: a member requests the lock for the first time, or requests its renewal."""
    m = config.members.index(member)
    if member not in state.assigned or state.asking[m] != "no" or state.asked[m] != config.renew_every:
        return None
    return state._replace(asking=with_item(state.asking, m, "asked"), asked=with_item(state.asked, m, 0))


def lock_queue(config: Config, state: State, member: str) -> State | None:
    """LockQueue: the broker answers."""
    m = config.members.index(member)
    if state.asking[m] != "asked":
        return None
    if state.holder not in (member, NO_MEMBER) and state.held < config.lock_lease:
        return state._replace(asking=with_item(state.asking, m, "refused"))
    return state._replace(
        asking=with_item(state.asking, m, "granted"),
        holder=member,
        held=0,
        lost_lock=state.lost_lock - {member},
    )


def hear(config: Config, state: State, member: str) -> State | None:
    """Hear: a member receives the answer to its lock request."""
    m = config.members.index(member)
    if state.asking[m] not in ("granted", "refused"):
        return None
    trust = 0 if state.asking[m] == "granted" else config.lock_trust
    return state._replace(trust=with_item(state.trust, m, trust), asking=with_item(state.asking, m, "no"))


def lose(config: Config, state: State, member: str) -> State | None:
    """Lose: the request or its answer is lost, and times out."""
    m = config.members.index(member)
    return None if state.asking[m] == "no" else state._replace(asking=with_item(state.asking, m, "no"))


def lose_unlock(config: Config, state: State, member: str) -> State | None:
    """LoseUnlock: an unlock request is lost.

    A member sends it only after its listener has returned, and while no lock request is in progress.
    """
    m = config.members.index(member)
    if member not in state.leaving or member in state.calls or state.asking[m] != "no":
        return None
    return state._replace(
        leaving=state.leaving - {member}, trust=with_item(state.trust, m, config.lock_trust)
    )


def unlock_queue(config: Config, state: State, member: str) -> State | None:
    """UnlockQueue: as LoseUnlock, but the broker receives the request."""
    after = lose_unlock(config, state, member)
    return after._replace(holder=NO_MEMBER, held=0) if after and after.holder == member else after


# Consuming


def begin(config: Config, state: State, member: str) -> State | None:
    """Begin: a member that trusts its lock calls its listener with a message."""
    if member not in state.assigned or member in state.calls or not trusts(config, state, member):
        return None
    return state._replace(calls=state.calls | {member})


def end(_config: Config, state: State, member: str) -> State | None:
    """End: the listener of a member returns."""
    return state._replace(calls=state.calls - {member}) if member in state.calls else None


# Time and faults


def tick(config: Config, state: State) -> State | None:
    """Tick: a listener returns before the lock's lease is over; one that does not is stalled."""
    if any(asking != "no" for asking in state.asking):
        return None
    due = (m for m, asked in zip(config.members, state.asked, strict=True) if asked == config.renew_every)
    if not state.assigned.isdisjoint(due):
        return None
    if state.holder in state.calls - state.lost_lock and state.held + 1 >= config.lock_lease:
        return None
    after = state._replace(
        held=0 if state.holder == NO_MEMBER else min(state.held + 1, config.lock_lease),
        asked=tuple(min(ticks + 1, config.renew_every) for ticks in state.asked),
        trust=tuple(min(ticks + 1, config.lock_trust) for ticks in state.trust),
    )
    return None if after == state else after


def restart(config: Config, state: State) -> State | None:
    """Restart: the broker restarts and loses its lock table, which is in memory only."""
    if not config.faults or state.holder == NO_MEMBER:
        return None
    believers = {m for m in config.members if m in state.calls or trusts(config, state, m)}
    asking = ("no",) * len(config.members)
    return state._replace(holder=NO_MEMBER, held=0, asking=asking, lost_lock=state.lost_lock | believers)


def stall(config: Config, state: State, member: str) -> State | None:
    """Stall: a listener, or the whole process, stops while time continues."""
    if not config.faults or member not in state.calls or member in state.lost_lock:
        return None
    return state._replace(lost_lock=state.lost_lock | {member})


# Actions


ACTIONS: Final[dict[str, Action[Config, State]]] = by_name(
    Action("Gain", gain, each("members")),
    Action("Drop", drop, each("members")),
    Action("Ask", ask, each("members")),
    Action("LockQueue", lock_queue, each("members")),
    Action("Hear", hear, each("members")),
    Action("Lose", lose, each("members")),
    Action("UnlockQueue", unlock_queue, each("members")),
    Action("LoseUnlock", lose_unlock, each("members")),
    Action("Begin", begin, each("members")),
    Action("End", end, each("members")),
    Action("Tick", tick, once),
    Action("Restart", restart, once),
    Action("Stall", stall, each("members")),
)


# Safety


def never_overlaps(_config: Config, state: State) -> bool:
    """DELIV-13 NeverOverlaps: at most one member's listener runs, unless a fault has taken its lock."""
    return len(state.calls - state.lost_lock) < 2


# Liveness


FAIRNESS: Final = (
    weak("Tick", "Tick"),
    weak("Ask", "Ask", each=FIRST),
    strong("Lock", "LockQueue", each=FIRST),
    strong("Receive", "Hear", each=FIRST),
    strong("Begin", "Begin", each=FIRST),
    weak("End", "End", each=FIRST),
)


def owner_consumes(config: Config) -> Obligations[State]:
    """OwnerConsumes: a member that remains the only owner of the queue continues to consume it."""
    return recurs(
        lambda s, member: member in s.calls,
        given=lambda s, member: s.assigned == {member},
        of=((member,) for member in config.members),
    )


# The model in TLC's terms


def from_tla(config: Config, variables: Mapping[str, Any]) -> State:
    """Return the state that TLC prints."""

    def by_member(name: str) -> tuple[Any, ...]:
        return tuple(variables[name][member] for member in config.members)

    return State(
        assigned=frozenset(variables["assigned"]),
        leaving=frozenset(variables["leaving"]),
        holder=variables["holder"],
        held=variables["held"],
        asking=by_member("asking"),
        asked=by_member("asked"),
        trust=by_member("trust"),
        calls=frozenset(variables["calls"]),
        lost_lock=frozenset(variables["lostLock"]),
    )


MODEL: Final = Model(
    name="OrderLock",
    initial=initial,
    actions=ACTIONS,
    invariants=named(never_overlaps),
    fairness=FAIRNESS,
    liveness=named(owner_consumes),
    from_constants=configuration(
        Config,
        members="Members",
        lock_lease="LockLease",
        lock_trust="LockTrust",
        renew_every="RenewEvery",
        faults="Faults",
    ),
    from_tla=from_tla,
    operator=operators(("Restart", "Stall")),
)
