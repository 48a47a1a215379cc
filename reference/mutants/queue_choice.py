"""Broken variants of the queue choice; spec/tla/mutants explains each bug under the same name."""

from functools import partial
from typing import Final

from mqproof.reference import queue_choice
from mqproof.reference.mutants.mutant import Mutant
from mqproof.reference.queue_choice import Config, State


def _queue_avoided(config: Config, state: State) -> State | None:
    after = queue_choice.attempt(config, state._replace(tried=()))
    if after is None or len(state.tried) >= config.attempts_max:
        return None
    return after._replace(tried=state.tried + after.tried)


def _first_avoided(config: Config, state: State) -> State | None:
    after = queue_choice.attempt(config, state._replace(tried=state.tried[:1]))
    if after is None or len(state.tried) >= config.attempts_max:
        return None
    return after._replace(tried=(*state.tried, after.tried[-1]))


def _retry_forgets_penalty(config: Config, state: State) -> State | None:
    forgetful = state._replace(strategy=False) if state.tried else state
    after = queue_choice.attempt(config, forgetful)
    return after and after._replace(strategy=state.strategy)


def _errors_not_penalised(config: Config, state: State) -> State | None:
    after = queue_choice.failed(config, state)
    return after and after._replace(penalty=state.penalty)


def _short_penalty(config: Config, state: State) -> State | None:
    after = queue_choice.tick(config, state)
    return after and after._replace(penalty=tuple(max(ticks - 1, 0) for ticks in after.penalty))


def _retries_forever(config: Config, state: State) -> State | None:
    after = queue_choice.failed(config, state)
    return after and after._replace(tried=state.tried[-1:])


_choice = partial(Mutant, queue_choice.MODEL, config=Config())

MUTANTS: Final[tuple[Mutant, ...]] = (
    _choice("QueueAvoided", "RetryAvoidsLastBroker", "Attempt", _queue_avoided, config=Config(queue_count=2)),
    _choice("FirstAvoided", "RetryAvoidsLastBroker", "Attempt", _first_avoided, config=Config(queue_count=2)),
    _choice("RetryForgetsPenalty", "FaultyBrokerRested", "Attempt", _retry_forgets_penalty),
    _choice("ErrorsNotPenalised", "FaultyBrokerRested", "Failed", _errors_not_penalised),
    _choice("ShortPenalty", "FaultyBrokerRested", "Tick", _short_penalty),
    _choice("RetriesForever", "SendEnds", "Failed", _retries_forever, config=Config(broker_count=2)),
)
