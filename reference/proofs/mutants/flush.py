"""Broken variants of the flush proof: the same bugs, under the same names, as in reference/mutants."""

from dataclasses import replace
from functools import partial
from typing import Final

from mqproof.reference.proofs import flush
from mqproof.reference.proofs.flush import State
from mqproof.reference.proofs.logic import Function, Scope, Term, choose, conjunction, minimum
from mqproof.reference.proofs.mutants.mutant import Mutant

Step = tuple[Term, State]


def _ack_before_flush(scope: Scope, s: State, m: Term) -> Step:
    guard, after = flush.answer_ok(scope, replace(s, sync=False), m)
    return guard, replace(after, sync=s.sync)


def _pool_lost_with_process(scope: Scope, s: State) -> Step:
    guard, after = flush.process_crash(scope, s)
    return guard, replace(after, log_length=s.flushed)


def _queues_not_truncated(scope: Scope, s: State, cut: Function) -> Step:
    guard, after = flush.truncate_queues(scope, s, cut)
    return guard, replace(after, queue_length=s.queue_length, queue_flushed=s.queue_flushed)


def _lost_offset_update(scope: Scope, s: State, m: Term, q: Term) -> Step:
    guard, after = flush.append_record(scope, s, m, q)
    return guard, replace(after, next_offset=s.next_offset)


def _torn_record_kept(scope: Scope, s: State, last: Term) -> Step:
    guard, after = flush.recover_log(scope, s, last)
    return guard, replace(after, log_length=s.log_length, flushed=s.log_length)


def _checkpoint_ahead_of_queues(_scope: Scope, s: State, p: Term) -> Step:
    guard = conjunction(s.phase == flush.RUNNING, p > s.checkpoint, p == minimum(s.flushed, s.dispatched))
    return guard, replace(s, checkpoint=p)


def _dispatch_before_flush(scope: Scope, s: State) -> Step:
    guard, after = flush.dispatch(scope, replace(s, sync=False))
    return guard, replace(after, sync=s.sync)


def _preallocated_delivered(scope: Scope, s: State, q: Term) -> Step:
    _, after = flush.deliver(scope, s, q)
    beyond = s.seen_length(q) >= s.queue_length(q)
    _, torn = flush.deliver(scope, replace(s, log_message=lambda _i: flush.TORN), q)
    seen = lambda r, i: choose(beyond, torn.seen(r, i), after.seen(r, i))  # noqa: E731
    return s.phase == flush.RUNNING, replace(after, seen=seen)


def _pull_from_max(scope: Scope, s: State, q: Term) -> Step:
    last = replace(s, queue=lambda r, _i: s.queue(r, s.queue_length(r)))
    guard, after = flush.deliver(scope, last, q)
    return guard, replace(after, queue=s.queue)


def _recovered_not_synced(scope: Scope, s: State, last: Term) -> Step:
    guard, after = flush.recover_log(scope, s, last)
    return guard, replace(after, flushed=minimum(s.flushed, after.log_length))


def _late_commit(_scope: Scope, s: State, q: Term) -> Step:
    guard = conjunction(s.phase == flush.RUNNING, s.committed(q) > 0)
    committed = lambda r: choose(r == q, s.committed(r) - 1, s.committed(r))  # noqa: E731
    return guard, replace(s, committed=committed)


_flush = partial(Mutant, flush.PROOF)

MUTANTS: Final = (
    _flush("AckBeforeFlush", "SyncAckedDurable", "AnswerOk", _ack_before_flush),
    _flush("PoolLostWithProcess", "AsyncAckedSurvivesProcessCrash", "ProcessCrash", _pool_lost_with_process),
    _flush("QueuesNotTruncated", "QueuePointsIntoLog", "TruncateQueues", _queues_not_truncated),
    _flush("LostOffsetUpdate", "QueueOffsetsDense", "AppendRecord", _lost_offset_update),
    _flush("TornRecordKept", "RecoveredPrefix", "RecoverLog", _torn_record_kept),
    _flush("CheckpointAheadOfQueues", "IndexRebuildable", "WriteCheckpoint", _checkpoint_ahead_of_queues),
    _flush("DispatchBeforeFlush", "NoAckedLost", "Dispatch", _dispatch_before_flush),
    _flush("PreallocatedDelivered", "NoPhantom", "Deliver", _preallocated_delivered),
    _flush("PullFromMax", "QueueOrder", "Deliver", _pull_from_max),
    _flush("RecoveredNotSynced", "QueueOrder", "RecoverLog", _recovered_not_synced),
    _flush("LateCommit", "OffsetMonotone", "CommitOffset", _late_commit),
)
