"""Broken variants of the flush model; spec/tla/mutants explains each bug under the same name."""

from dataclasses import replace
from functools import partial
from typing import Final

from mqproof.reference import flush
from mqproof.reference.flush import Config, State
from mqproof.reference.mutants.mutant import Mutant


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


def _torn_tail_refused(config: Config, state: State) -> State | None:
    return None if flush.TORN in state.log else flush.recover_log(config, state)


def _dispatcher_dies(config: Config, state: State) -> State | None:
    return None if state.dispatched else flush.dispatch(config, state)


def _only_last_waiter_woken(config: Config, state: State, message: str) -> State | None:
    if state.mode == flush.SYNC_FLUSH and state.flushed and state.log[state.flushed - 1].message != message:
        return None
    return flush.answer_ok(config, state, message)


_flush = partial(Mutant, flush.MODEL, config=Config())
_ONE: Final = Config(messages=("m1",))
_TWO: Final = Config(crashes_max=0)

MUTANTS: Final[tuple[Mutant, ...]] = (
    _flush("AckBeforeFlush", "SyncAckedDurable", "AnswerOk", _ack_before_flush),
    _flush("PoolLostWithProcess", "AsyncAckedSurvivesProcessCrash", "ProcessCrash", _pool_lost_with_process),
    _flush("QueuesNotTruncated", "QueuePointsIntoLog", "TruncateQueues", _queues_not_truncated),
    _flush("LostOffsetUpdate", "QueueOffsetsDense", "AppendRecord", _lost_offset_update),
    _flush("TornRecordKept", "RecoveredPrefix", "RecoverLog", _torn_record_kept),
    _flush("CheckpointAheadOfQueues", "IndexRebuildable", "WriteCheckpoint", _checkpoint_ahead_of_queues),
    _flush(
        "CleanExitTooEarly",
        "IndexRebuildable",
        "Shutdown",
        _clean_exit_too_early,
        config=Config(queues=("q0", "q1")),
    ),
    _flush("DispatchBeforeFlush", "NoAckedLost", "Dispatch", _dispatch_before_flush),
    _flush("PreallocatedDelivered", "NoPhantom", "Deliver", _preallocated_delivered),
    _flush("PullFromMax", "QueueOrder", "Deliver", _pull_from_max),
    _flush(
        "RecoveredNotSynced", "QueueOrder", "RecoverLog", _recovered_not_synced, config=Config(crashes_max=2)
    ),
    _flush("LateCommit", "OffsetMonotone", "CommitOffset", _late_commit),
    _flush("TornTailRefused", "RecoveryEnds", "RecoverLog", _torn_tail_refused, config=_ONE),
    _flush("DispatcherDies", "AckedDelivered", "Dispatch", _dispatcher_dies, config=_TWO),
    _flush("OnlyLastWaiterWoken", "SendAnswered", "AnswerOk", _only_last_waiter_woken, config=_TWO),
)
