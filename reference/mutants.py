"""Deliberately broken variants of the reference, each of which its named invariant must catch.

Same names, and the same known bugs of real systems, as the modules in spec/tla/mutants; why each is a bug is
told there.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from reference import flush
from reference.explorer import Violation, explore
from reference.flush import Config, State
from reference.model import Action, Model
from report.model import Result, Verdict, Witness
from spec.catalogue import by_name


@dataclass(frozen=True, slots=True)
class Mutant:
    name: str
    invariant: str
    """Catalogue name of what must break."""
    action: str
    apply: Callable[..., State | None]
    """Stands in for that action."""
    queues: tuple[str, ...] = ("q0",)
    crashes_max: int = 1


def _ack_before_flush(config: Config, state: State, message: str) -> State | None:
    lazy = replace(state, flushed=len(state.log))
    after = flush.answer_ok(config, lazy, message)
    return after and replace(after, flushed=state.flushed)


def _pool_lost_with_process(config: Config, state: State) -> State | None:
    after = flush.process_crash(config, state)
    return after and replace(after, log=after.log[: after.flushed])


def _queues_not_truncated(config: Config, state: State) -> State | None:
    after = flush.truncate_queues(config, state)
    return after and replace(after, queue=state.queue, queue_flushed=state.queue_flushed)


def _lost_offset_update(config: Config, state: State, message: str, queue: str) -> State | None:
    after = flush.append_record(config, state, message, queue)
    return after and replace(after, next_offset=state.next_offset)


def _torn_record_kept(config: Config, state: State) -> State | None:
    after = flush.recover_log(config, state)
    return after and replace(after, log=state.log, flushed=len(state.log))


def _checkpoint_ahead_of_queues(_config: Config, state: State) -> State | None:
    limit = min(state.flushed, state.dispatched)
    return replace(state, checkpoint=limit) if state.phase == "running" and limit > state.checkpoint else None


def _clean_exit_too_early(config: Config, state: State) -> State | None:
    durable = replace(state, queue_flushed=tuple(map(len, state.queue)), checkpoint=len(state.log))
    after = flush.shutdown(config, durable)
    return after and replace(after, queue_flushed=state.queue_flushed, checkpoint=state.checkpoint)


def _dispatch_before_flush(config: Config, state: State) -> State | None:
    after = flush.dispatch(config, replace(state, flushed=len(state.log)))
    return after and replace(after, flushed=state.flushed)


def _preallocated_delivered(config: Config, state: State, queue: str) -> State | None:
    q = config.queues.index(queue)
    after = flush.deliver(config, state, queue)
    if after is None and state.phase == "running" and len(state.seen[q]) < len(config.messages):
        seen = (*state.seen[:q], (*state.seen[q], flush.TORN.message), *state.seen[q + 1 :])
        return replace(state, seen=seen)
    return after


def _pull_from_max(config: Config, state: State, queue: str) -> State | None:
    q = config.queues.index(queue)
    last = tuple((flush.last_queued(state, q),) * len(entries) for entries in state.queue)
    after = flush.deliver(config, replace(state, queue=last), queue)
    return after and replace(after, queue=state.queue)


def _recovered_not_synced(config: Config, state: State) -> State | None:
    after = flush.recover_log(config, state)
    return after and replace(after, flushed=min(state.flushed, len(after.log)))


def _late_commit(config: Config, state: State, queue: str) -> State | None:
    q = config.queues.index(queue)
    if state.phase == "running" and state.committed[q]:
        committed = [*state.committed]
        committed[q] -= 1
        return replace(state, committed=tuple(committed))
    return flush.commit_offset(config, state, queue)


MUTANTS: Final = {
    mutant.name: mutant
    for mutant in (
        Mutant("AckBeforeFlush", "SyncAckedDurable", "AnswerOk", _ack_before_flush),
        Mutant(
            "PoolLostWithProcess", "AsyncAckedSurvivesProcessCrash", "ProcessCrash", _pool_lost_with_process
        ),
        Mutant("QueuesNotTruncated", "QueuePointsIntoLog", "TruncateQueues", _queues_not_truncated),
        Mutant("LostOffsetUpdate", "QueueOffsetsDense", "AppendRecord", _lost_offset_update),
        Mutant("TornRecordKept", "RecoveredPrefix", "RecoverLog", _torn_record_kept),
        Mutant("CheckpointAheadOfQueues", "IndexRebuildable", "WriteCheckpoint", _checkpoint_ahead_of_queues),
        Mutant(
            "CleanExitTooEarly", "IndexRebuildable", "Shutdown", _clean_exit_too_early, queues=("q0", "q1")
        ),
        Mutant("DispatchBeforeFlush", "NoAckedLost", "Dispatch", _dispatch_before_flush),
        Mutant("PreallocatedDelivered", "NoPhantom", "Deliver", _preallocated_delivered),
        Mutant("PullFromMax", "QueueOrder", "Deliver", _pull_from_max),
        Mutant("RecoveredNotSynced", "QueueOrder", "RecoverLog", _recovered_not_synced, crashes_max=2),
        Mutant("LateCommit", "OffsetMonotone", "CommitOffset", _late_commit),
    )
}


def broken(mutant: Mutant) -> Model[Config, State]:
    """The flush model with the mutant's action, judged by the mutant's invariant alone."""
    action = flush.ACTIONS[mutant.action]
    return replace(
        flush.MODEL,
        actions={**flush.ACTIONS, mutant.action: Action(action.name, mutant.apply, action.domain)},
        invariants={n: f for n, f in flush.INVARIANTS.items() if n == mutant.invariant},
        step_invariants={n: f for n, f in flush.STEP_INVARIANTS.items() if n == mutant.invariant},
    )


def names() -> tuple[str, ...]:
    """The mutants, in order."""
    return tuple(MUTANTS)


def run(chosen: Sequence[str] = ()) -> Iterator[Result]:
    """Explores each mutant, or each that is named: HELD means that it was caught."""
    for mutant in (MUTANTS[name] for name in chosen or MUTANTS):
        started = time.perf_counter()
        config = Config(queues=mutant.queues, crashes_max=mutant.crashes_max)
        exploration = explore(broken(mutant), config)
        violation = exploration.violation
        yield Result(
            id=by_name(mutant.invariant).id,
            name=mutant.name,
            layer="reference",
            verdict=Verdict.HELD if violation else Verdict.VIOLATED,
            counts={"states": len(exploration.parents)},
            witnesses=(_witness(violation),) if violation else (),
            detail=f"caught by {mutant.invariant}" if violation else f"survives {mutant.invariant}",
            replay=f"mqproof mutants --layer reference --name {mutant.name}",
            seconds=time.perf_counter() - started,
        )


def _witness(violation: Violation[State]) -> Witness:
    steps = [step.action + (str(step.parameters) if step.parameters else "") for step in violation.path]
    return Witness(" -> ".join(steps), {"steps": str(len(steps))})
