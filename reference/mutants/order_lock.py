"""Broken variants of the orderly lock; spec/tla/mutants explains each bug under the same name."""

from functools import partial
from typing import Final

from mqproof.reference import order_lock
from mqproof.reference.mutants.mutant import Mutant
from mqproof.reference.order_lock import NO_MEMBER, Config, State


def _granted_to_all(config: Config, state: State, member: str) -> State | None:
    return order_lock.lock_queue(config, state._replace(holder=member), member)


def _lease_shorter_than_trust(config: Config, state: State, member: str) -> State | None:
    over = state.held >= config.renew_every
    return order_lock.lock_queue(config, state._replace(holder=NO_MEMBER) if over else state, member)


def _trusted_unlocked(config: Config, state: State, member: str) -> State | None:
    new = state.asked[config.members.index(member)] == config.renew_every
    trust = (0,) * len(config.members) if new else state.trust
    after = order_lock.begin(config, state._replace(trust=trust), member)
    return after and after._replace(trust=state.trust)


def _unlocked_by_others(config: Config, state: State, member: str) -> State | None:
    return order_lock.unlock_queue(config, state._replace(holder=member), member)


def _unlocked_in_call(config: Config, state: State, member: str) -> State | None:
    after = order_lock.unlock_queue(config, state._replace(calls=state.calls - {member}), member)
    return after and after._replace(calls=state.calls)


def _not_renewed(config: Config, state: State, member: str) -> State | None:
    after = order_lock.ask(config, state, member)
    return after._replace(asking=state.asking) if after and state.holder == member else after


_lock = partial(Mutant, order_lock.MODEL, config=Config(faults=False), invariant="NeverOverlaps")

MUTANTS: Final[tuple[Mutant, ...]] = (
    _lock(name="GrantedToAll", action="LockQueue", apply=_granted_to_all),
    _lock(name="LeaseShorterThanTrust", action="LockQueue", apply=_lease_shorter_than_trust),
    _lock(name="TrustedUnlocked", action="Begin", apply=_trusted_unlocked),
    _lock(name="UnlockedByOthers", action="UnlockQueue", apply=_unlocked_by_others),
    _lock(name="UnlockedInCall", action="UnlockQueue", apply=_unlocked_in_call),
    _lock(name="NotRenewed", invariant="OwnerConsumes", action="Ask", apply=_not_renewed),
)
