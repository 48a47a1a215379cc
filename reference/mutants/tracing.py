"""Broken variants of traces; spec/tla/mutants explains each bug under the same name."""

from functools import partial
from typing import Final

from mqproof.reference import tracing
from mqproof.reference.mutants.mutant import Mutant
from mqproof.reference.tracing import Config, State, Trace
from mqproof.reference.updates import with_item


def _waits_for_room(config: Config, state: State, operation: str, how: str) -> State | None:
    if how != "refused" and state.phase == "running" and not tracing.has_room(config, state):
        return None
    return tracing.end(config, state, operation, how)


def _fails_without_room(config: Config, state: State, operation: str, how: str) -> State | None:
    after = tracing.end(config, state, operation, how)
    if after is None or tracing.has_room(config, state):
        return after
    return after._replace(outcome=with_item(after.outcome, config.operations.index(operation), "bad"))


def _without_bound(config: Config, state: State, operation: str, how: str) -> State | None:
    return tracing.end(Config(config.sends, config.calls, config.waiting_max + 1), state, operation, how)


def _traced_before_result(config: Config, state: State, operation: str) -> State | None:
    after = tracing.begin(config, state, operation)
    if after is None or operation in config.calls:
        return after
    return tracing.put(config, after, Trace(operation, "good"))


def _refused_traced(config: Config, state: State, operation: str, how: str) -> State | None:
    after = tracing.end(config, state, operation, how)
    return tracing.put(config, after, Trace(operation, "bad")) if after and how == "refused" else after


def _full_not_counted(config: Config, state: State, operation: str, how: str) -> State | None:
    after = tracing.end(config, state, operation, how)
    return after and after._replace(dropped=state.dropped)


def _batch_counted_once(config: Config, state: State, succeeds: bool) -> State | None:
    after = tracing.settle(config, state, succeeds)
    return after and after._replace(dropped=min(after.dropped, state.dropped + 1))


def _stop_forgets_batch(config: Config, state: State) -> State | None:
    after = tracing.stopped(config, state)
    return after and after._replace(dropped=after.dropped - len(state.batch))


def _ends_with_failure(config: Config, state: State) -> State | None:
    return None if state.dropped else tracing.take(config, state)


_SEND: Final = Config(calls=(), waiting_max=1)
_CALL: Final = Config(sends=(), waiting_max=1)
_BOTH: Final = Config(sends=())
_SILENT: Final = Config(waiting_max=1, topic_answers=False)
_mutant = partial(Mutant, tracing.MODEL)
_end = partial(_mutant, action="End")

MUTANTS: Final[tuple[Mutant, ...]] = (
    _end("WaitsForRoom", invariant="NeverInTheWay", apply=_waits_for_room, config=_SILENT),
    _end("FailsWithoutRoom", invariant="ResultUnchanged", apply=_fails_without_room, config=_CALL),
    _end("WithoutBound", invariant="TracesBounded", apply=_without_bound, config=_CALL),
    _mutant(
        "TracedBeforeResult",
        invariant="TraceTrue",
        action="Begin",
        apply=_traced_before_result,
        config=_SEND,
    ),
    _end("RefusedTraced", invariant="TraceTrue", apply=_refused_traced, config=_SEND),
    _end("FullNotCounted", invariant="DroppedCounted", apply=_full_not_counted, config=_CALL),
    _mutant(
        "BatchCountedOnce",
        invariant="DroppedCounted",
        action="Settle",
        apply=_batch_counted_once,
        config=_BOTH,
    ),
    _mutant(
        "StopForgetsBatch",
        invariant="DroppedCounted",
        action="Stopped",
        apply=_stop_forgets_batch,
        config=_SEND,
    ),
    _mutant(
        "EndsWithFailure",
        invariant="TraceSettles",
        action="Take",
        apply=_ends_with_failure,
        config=_CALL,
    ),
)
