"""Broken variants of the lease of a leader; spec/tla/mutants explains each bug under the same name."""

from functools import partial
from typing import Final

from mqproof.reference import leader_lease
from mqproof.reference.leader_lease import NONE, Config, State
from mqproof.reference.mutants.mutant import Mutant
from mqproof.reference.updates import with_item


def _asks_twice(config: Config, state: State, node: str, peer: str) -> State | None:
    n = config.nodes.index(node)
    if state.role[n] != "LEADER" or state.term[n] >= config.terms_max:
        return None
    return leader_lease.asked(config, state, node, peer)


def _serves_in_transfer(config: Config, state: State, node: str, peer: str) -> State | None:
    after = leader_lease.transfer(config, state, node, peer)
    return after and after._replace(successor=state.successor)


def _voter_does_not_wait(config: Config, state: State, node: str, voters: tuple[str, ...]) -> State | None:
    term = state.term[config.nodes.index(node)]
    later = all(state.term[config.nodes.index(voter)] < term for voter in voters)
    return leader_lease.elected(config, state, node, voters) if later else None


def _goes_on(config: Config, state: State, node: str) -> State | None:
    n = config.nodes.index(node)
    if state.successor[n] == NONE:
        return None
    return state._replace(successor=with_item(state.successor, n, NONE))


def _goes_on_in_later_term(config: Config, state: State, source: str, target: str, term: int) -> State | None:
    request = leader_lease.find(state, source, target, term)
    if request is None:
        return None
    n = config.nodes.index(source)
    after = state._replace(network=state.network - {request})
    leads = state.role[n] == "LEADER" and state.term[n] == term
    return after._replace(successor=with_item(state.successor, n, NONE)) if leads else after


def _votes_confirm(config: Config, state: State, node: str, voters: tuple[str, ...]) -> State | None:
    after = leader_lease.elect(config, state, node, voters)
    n = config.nodes.index(node)
    return after and after._replace(answered=with_item(after.answered, n, frozenset(voters)))


def _never(_config: Config, _state: State, _node: str) -> State | None:
    return None


_lease = partial(Mutant, leader_lease.MODEL, invariant="ReadsCurrent", config=Config())

MUTANTS: Final[tuple[Mutant, ...]] = (
    _lease("AsksTwice", action="Transfer", apply=_asks_twice),
    _lease("ServesInTransfer", action="Transfer", apply=_serves_in_transfer),
    _lease("VoterDoesNotWait", action="Elect", apply=_voter_does_not_wait),
    _lease("GoesOnUnanswered", action="HandOver", apply=_goes_on),
    _lease("GoesOnInLaterTerm", action="Refuse", apply=_goes_on_in_later_term),
    _lease("VotesConfirm", action="Elect", apply=_votes_confirm),
    _lease("NeverHandsOver", invariant="TransferEventuallyEnds", action="HandOver", apply=_never),
)
