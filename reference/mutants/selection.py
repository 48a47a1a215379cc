"""Broken variants of filters; spec/tla/mutants explains each bug under the same name."""

from collections.abc import Callable
from functools import partial
from typing import Final

from mqproof.reference import selection
from mqproof.reference.mutants.mutant import Mutant
from mqproof.reference.selection import NO_ANSWER, NO_PULL, Answer, Config, Expression, Places, State

Filter = Callable[[str, Expression], bool]


def _received(config: Config, state: State, taken: Places) -> State | None:
    """Receive these messages of the answer."""
    after = selection.receive(config, state)
    return after and after._replace(received=state.received | taken)


def _hash_only(config: Config, state: State) -> State | None:
    return _received(config, state, state.answer.found)


def _latest_compared(config: Config, state: State) -> State | None:
    found = state.answer.found
    return _received(config, state, frozenset(p for p in found if state.queue[p - 1] in state.wanted))


def _answered(config: Config, state: State, last: int, passes: Filter) -> State | None:
    """Answer with another filter."""
    pull = state.pull
    if pull == NO_PULL or state.answer != NO_ANSWER or not pull.start <= last <= len(state.queue):
        return None
    places = (place for place in range(pull.start, last + 1) if passes(state.queue[place - 1], pull.by))
    found = frozenset(places)
    return state._replace(answer=Answer(last + 1, found)) if len(found) <= config.batch_max else None


def _collision_dropped(config: Config, state: State, last: int) -> State | None:
    def passes(tag: str, expression: Expression) -> bool:
        return expression == frozenset(config.tags) or tag in expression - set(config.colliding)

    return _answered(config, state, last, passes)


def _first_tag_only(config: Config, state: State, last: int) -> State | None:
    return _answered(config, state, last, lambda tag, expression: tag == min(expression))


def _rest_passed_over(config: Config, state: State, last: int) -> State | None:
    after = selection.give_answer(config, state, last)
    return after and after._replace(answer=Answer(len(state.queue) + 1, after.answer.found))


def _failure_rejects(config: Config, state: State, last: int) -> State | None:
    """The function fails at each message that it should select, and the filter server goes on."""
    after = selection.give_answer(config, state, last)
    return after and after._replace(answer=Answer(last + 1))


def _nothing_passed(config: Config, state: State, last: int) -> State | None:
    after = selection.give_answer(config, state, last)
    return after if after and after.answer.found else None


_filter = partial(Mutant, selection.MODEL, invariant="FilterSound")
_colliding = partial(_filter, config=Config())

MUTANTS: Final[tuple[Mutant, ...]] = (
    _colliding("CollisionDropped", action="Answer", apply=_collision_dropped),
    _filter(
        "FirstTagOnly",
        action="Answer",
        apply=_first_tag_only,
        config=Config(tags=("a", "b", "c"), colliding=(), expressions=(frozenset({"a", "b"}),)),
    ),
    _filter("FailureRejects", action="Answer", apply=_failure_rejects, config=Config(colliding=())),
    _colliding("HashOnly", action="Receive", apply=_hash_only),
    _colliding("LatestCompared", action="Receive", apply=_latest_compared),
    _colliding("RestPassedOver", action="Answer", apply=_rest_passed_over),
    _filter(
        "NothingPassed",
        invariant="AllPassed",
        action="Answer",
        apply=_nothing_passed,
        config=Config(colliding=()),
    ),
)
