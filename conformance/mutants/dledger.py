"""Mutants of a DLedger member: each replaces one rule of its core by a wrong one.

For each mutant, `stepped_group` replays behaviours of the model Election on a group. `mqproof mutants --layer
impl` runs these mutants together with those of the other parts. A mutant that only crashes or several terms
reveal belongs to the simulation: `mqproof mutants --layer simulation`.
"""

from collections.abc import Collection, Iterable
from typing import Any, Final

from mqproof.conformance.mutants.mutant import Mutant
from mqproof.impl.dledger import rules
from mqproof.impl.dledger.changes import Written
from mqproof.impl.dledger.codes import RoundResult, Vote
from mqproof.impl.dledger.rpc_bodies import Entry
from mqproof.impl.dledger.state import State

_vote_result, _round_result = rules.vote_result, rules.round_result
_append = State.append


def _vote_for_any_candidate(
    candidate: str, term: int, end: Any, mine: Any, voter_state: tuple[int, str | None, str | None]
) -> Vote:
    my_term, _, leader = voter_state
    return _vote_result(candidate, term, end, mine, (my_term, None, leader))


def _majority_of_answers(results: Collection[Vote], _members: int) -> RoundResult:
    return _round_result(results, len(results))


def _whatever_the_leader(results: Collection[Vote], members: int) -> RoundResult:
    led = Vote.REJECT_ALREADY_HAS_LEADER
    return _round_result([Vote.REJECT_ALREADY_VOTED if one is led else one for one in results], members)


def _durable_when_written(state: State, entry: Entry) -> None:
    state.terms.append(entry.term)
    state.durable = state.terms.end
    state.changes.append(Written(entry))


def _durable_when_appended(state: State, magic: int, body: object) -> int:
    state.durable = _append(state, magic, body)
    return state.durable


def _most_advanced(kept: Iterable[int]) -> int:
    return max(kept)


def _nothing(*_: object) -> None:
    return None


_RULES: Final = "mqproof.impl.dledger.rules"
_STATE: Final = "mqproof.impl.dledger.state:State"

MUTANTS: Final = {
    mutant.name: mutant
    for mutant in (
        Mutant(
            "votes-again", "a voter accepts every candidate", "SPEC-1",
            f"{_RULES}:vote_result", _vote_for_any_candidate,
        ),
        Mutant(
            "majority-of-those-heard", "a majority of the received answers is enough to lead", "SPEC-1",
            f"{_RULES}:round_result", _majority_of_answers,
        ),
        Mutant(
            "leader-not-waited-for", "a candidate that hears from a leader requests the next term", "SPEC-1",
            f"{_RULES}:round_result", _whatever_the_leader,
        ),
        Mutant(
            "push-answered-before-sync", "a follower's entry counts as durable in the page cache", "SPEC-1",
            f"{_STATE}.write", _durable_when_written,
        ),
        Mutant(
            "own-entry-before-sync", "a leader counts its own entry before it is durable", "SPEC-1",
            f"{_STATE}.append", _durable_when_appended,
        ),
        Mutant(
            "one-copy-committed", "the entries of the most advanced member count as committed", "SPEC-1",
            f"{_RULES}:majority_index", _most_advanced,
        ),
        Mutant(
            "commit-not-learned", "a follower never receives the committed index", "SPEC-1",
            "mqproof.impl.dledger.log_replication:Following._learn_commit", _nothing,
        ),
    )
}  # fmt: skip
"""The mutants by name."""
