"""Broken variants of the election model; spec/tla/mutants explains each bug."""

from functools import partial
from typing import Any, Final

from mqproof.reference import election
from mqproof.reference.election import NONE, Config, Message, State
from mqproof.reference.mutants.mutant import Mutant
from mqproof.reference.updates import replace


def _put(values: tuple[Any, ...], index: int, value: Any) -> tuple[Any, ...]:
    return (*values[:index], value, *values[index + 1 :])


def _pushed(state: State, *key: str | int) -> Message | None:
    return next((m for m in state.network if m[:5] == ("PUSH", *key)), None)


def _votes_twice(config: Config, state: State, source: str, target: str, term: int) -> State | None:
    free = replace(state, voted_for=_put(state.voted_for, config.number[target], NONE))
    after = election.handle_vote(config, free, source, target, term)
    return after and (after if after.voted_for != free.voted_for else None)


def _votes_of_a_minority(config: Config, state: State, node: str, heard: tuple[str, ...]) -> State | None:
    n = config.number[node]
    accepted = {config.number[p] for p in heard if state.answers[n][config.number[p]] == "ACCEPT"}
    if len(accepted) < 1 or not election.in_round(config, state, n):
        return None
    own = tuple("ACCEPT" if p in accepted else NONE for p in range(len(config.nodes)))
    granted = replace(state, answers=_put(state.answers, n, ("ACCEPT",) * len(own)))
    return election.end_round(config, granted, node, config.nodes)


def _log_not_compared(config: Config, state: State, source: str, target: str, term: int) -> State | None:
    n = config.number[target]
    forgetful = replace(state, log=_put(state.log, n, ()))
    after = election.handle_vote(config, forgetful, source, target, term)
    return after and replace(after, log=state.log)


def _appends_at_its_end(
    config: Config, state: State, source: str, target: str, term: int, index: int
) -> State | None:
    n = config.number[target]
    message = _pushed(state, source, target, term, index)
    if message is None or not election.follows(config, state, message) or len(state.log[n]) >= index:
        return election.handle_push(config, state, source, target, term, index)
    return replace(state, log=_put(state.log, n, (*state.log[n], message.entry)))


def _truncates_on_every_push(
    config: Config, state: State, source: str, target: str, term: int, index: int
) -> State | None:
    n = config.number[target]
    message = _pushed(state, source, target, term, index)
    after = election.handle_push(config, state, source, target, term, index)
    if message is None or not election.follows(config, state, message) or len(state.log[n]) <= index:
        return after
    if message.entry != state.log[n][index - 1]:
        return after
    cut = state.log[n][:index]
    return replace(
        state, log=_put(state.log, n, cut), durable=_put(state.durable, n, min(state.durable[n], index))
    )


def _timed_out_entry_removed(config: Config, state: State, message: str) -> State | None:
    after = election.fail(config, state, message)
    log = tuple(tuple(entry for entry in entries if entry.message != message) for entries in state.log)
    return after and replace(after, log=log, durable=tuple(map(len, log)))


def _term_never_raised(_config: Config, _state: State, _node: str) -> State | None:
    return None


def _never_pushed_again(config: Config, state: State, node: str) -> State | None:
    after = election.repeat(config, state, node)
    if after is None:
        return None
    sent = frozenset(m for m in after.network - state.network if m.kind != "PUSH")
    return replace(after, network=state.network | sent) if sent else None


_election = partial(Mutant, election.MODEL)

_TWO: Final = Config(messages=(), candidates=("n1", "n2"), terms_max=1, crashes_max=0)
_TWO_TERMS: Final = Config(messages=(), candidates=("n1", "n2"), terms_max=2, crashes_max=0)
_CALM: Final = Config(messages=(), nodes=("n1", "n2"), candidates=("n1", "n2"), crashes_max=0, calm_terms=2)
_CALM_LOSS: Final = Config(messages=(), nodes=("n1", "n2"), crashes_max=0, losses_max=1, calm_terms=2)

MUTANTS: Final[tuple[Mutant, ...]] = (
    _election("VotesOfAMinority", "ElectionSafety", "EndRound", _votes_of_a_minority, config=_TWO),
    _election("VotesTwice", "VoteOncePerTerm", "HandleVote", _votes_twice, config=_TWO),
    _election(
        "TimedOutEntryRemoved",
        "LeaderAppendOnly",
        "Fail",
        _timed_out_entry_removed,
        config=Config(crashes_max=0),
    ),
    _election(
        "AppendsAtItsEnd", "LogMatching", "HandlePush", _appends_at_its_end, config=Config(crashes_max=0)
    ),
    _election("LogNotCompared", "LeaderCompleteness", "HandleVote", _log_not_compared, config=_TWO_TERMS),
    _election(
        "TruncatesOnEveryPush",
        "CommittedStable",
        "HandlePush",
        _truncates_on_every_push,
        config=Config(crashes_max=0),
    ),
    _election("TermNeverRaised", "LeaderEventually", "NextTerm", _term_never_raised, config=_CALM),
    _election("NeverPushedAgain", "LogsConverge", "Repeat", _never_pushed_again, config=_CALM_LOSS),
)
