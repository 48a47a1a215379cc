"""Broken variants of rebalancing; spec/tla/mutants explains each bug under the same name."""

from functools import partial
from typing import Final

from mqproof.reference import rebalance
from mqproof.reference.mutants.mutant import Mutant
from mqproof.reference.rebalance import Config, Queues, State
from mqproof.reference.updates import with_item


def _with_share(config: Config, state: State, member: int, broker: str, share: Queues) -> State | None:
    """Rebalance, with another share."""
    after = rebalance.rebalance(config, state, member, broker)
    return after and after._replace(
        share=with_item(after.share, config.members.index(member), share),
    )


def _ids(config: Config, state: State, broker: str) -> tuple[int, ...]:
    return state.known[config.brokers.index(broker)]


def _route(config: Config, state: State, member: int) -> int:
    return state.route[config.members.index(member)]


def _ids_not_sorted(config: Config, state: State, member: int, broker: str) -> State | None:
    ids = _ids(config, state, broker)
    if member not in ids:
        return rebalance.rebalance(config, state, member, broker)
    share = rebalance.average(ids.index(member), len(ids), _route(config, state, member))
    return _with_share(config, state, member, broker, share)


def _unlisted_takes_first(config: Config, state: State, member: int, broker: str) -> State | None:
    ids = _ids(config, state, broker)
    if not ids or member in ids:
        return rebalance.rebalance(config, state, member, broker)
    share = rebalance.average(0, len(ids), _route(config, state, member))
    return _with_share(config, state, member, broker, share)


def _rest_not_assigned(config: Config, state: State, member: int, broker: str) -> State | None:
    ids, count = _ids(config, state, broker), _route(config, state, member)
    if member not in ids:
        return rebalance.rebalance(config, state, member, broker)
    equal = count // len(ids) * len(ids)
    share = rebalance.average(sorted(ids).index(member), len(ids), equal)
    return _with_share(config, state, member, broker, share)


def _one_queue_at_least(config: Config, state: State, member: int, broker: str) -> State | None:
    after = rebalance.rebalance(config, state, member, broker)
    if (
        after is None
        or after.share[config.members.index(member)]
        or member not in _ids(config, state, broker)
    ):
        return after
    return _with_share(config, state, member, broker, frozenset({_route(config, state, member)}))


def _everybody_owns_all(config: Config, state: State, member: int, broker: str) -> State | None:
    queues = frozenset(range(1, _route(config, state, member) + 1))
    listed = member in _ids(config, state, broker)
    return _with_share(config, state, member, broker, queues if listed else frozenset())


def _nothing_given_up(config: Config, state: State, member: int, broker: str) -> State | None:
    after = rebalance.rebalance(config, state, member, broker)
    if after is None:
        return None
    m = config.members.index(member)
    return after._replace(share=with_item(after.share, m, after.share[m] | state.share[m]))


def _route_not_refreshed(_config: Config, _state: State, _member: int) -> State | None:
    return None


def _dead_member_stays(_config: Config, _state: State, _broker: str, _member: int) -> State | None:
    return None


def _not_registered_again(config: Config, state: State, member: int, broker: str) -> State | None:
    known = state.basis[config.members.index(member)] != rebalance.NO_BASIS
    return None if known else rebalance.heartbeat(config, state, member, broker)


_share = partial(Mutant, rebalance.MODEL, invariant="OneOwner", action="Rebalance", config=Config())
_lives = partial(Mutant, rebalance.MODEL, invariant="QueuesOwned", config=Config())

MUTANTS: Final[tuple[Mutant, ...]] = (
    _share("EverybodyOwnsAll", apply=_everybody_owns_all),
    Mutant(
        rebalance.MODEL,
        "IdsNotSorted",
        invariant="OneOwner",
        action="Rebalance",
        apply=_ids_not_sorted,
        config=Config(brokers=("a", "b"), counts=(2,)),
    ),
    _share("NothingGivenUp", apply=_nothing_given_up),
    Mutant(
        rebalance.MODEL,
        "OneQueueAtLeast",
        invariant="OneOwner",
        action="Rebalance",
        apply=_one_queue_at_least,
        config=Config(members=(1, 2, 3), counts=(2,)),
    ),
    _share("RestNotAssigned", apply=_rest_not_assigned),
    _share("UnlistedTakesFirst", apply=_unlisted_takes_first),
    _lives("DeadMemberStays", action="Forget", apply=_dead_member_stays),
    _lives("NotRegisteredAgain", action="Heartbeat", apply=_not_registered_again),
    _lives("RouteNotRefreshed", action="Poll", apply=_route_not_refreshed),
)
