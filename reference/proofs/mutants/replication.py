"""Broken variants of the replication proof: the same bugs, under the same names, as in reference/mutants."""

from dataclasses import replace
from functools import partial
from typing import Final

from mqproof.reference.proofs import replication
from mqproof.reference.proofs.logic import Scope, Term, choose, conjunction, maximum, negation, updated
from mqproof.reference.proofs.mutants.mutant import Mutant
from mqproof.reference.proofs.replication import MASTER, SLAVE, State

Step = tuple[Term, State]


def _waits_for_no_slave(scope: Scope, s: State, m: Term) -> Step:
    guard, after = replication.answer_send(scope, replace(s, acked=s.log_length(MASTER)), m)
    return guard, replace(after, acked=s.acked)


def _report_acknowledges(scope: Scope, s: State, position: Term) -> Step:
    """As released: the slave's first report, which may be about an old log, becomes the new maximum."""
    guard, after = replication.accept_report(scope, s, position)
    return guard, replace(after, acked=maximum(s.acked, position))


def _acked_when_sent(scope: Scope, s: State) -> Step:
    guard, after = replication.transfer_record(scope, s)
    return guard, replace(after, acked=maximum(s.acked, after.sent))


def _not_compared(scope: Scope, s: State, position: Term, message: Term) -> Step:
    return replication.receive_transfer(scope, replace(s, verified=True), position, message)


def _position_not_checked(_scope: Scope, s: State, position: Term, message: Term) -> Step:
    """Every frame that arrives is appended."""
    end = s.log_length(SLAVE) + 1
    return conjunction(s.transfer(position, message), s.connected(SLAVE), s.verified), replace(
        s, log_length=updated(s.log_length, SLAVE, end), log=updated(s.log, SLAVE, end, message)
    )


def _timeout_is_ok(scope: Scope, s: State, m: Term) -> Step:
    """A wait that timed out is answered as if its position had been reached."""
    guard, after = replication.answer_send(scope, s, m)
    late = s.request_replica(m) == replication.FLUSH_SLAVE_TIMEOUT
    status = choose(late, replication.SEND_OK, after.answer(m))
    return guard, replace(after, answer=updated(after.answer, m, status))


def _flush_status_wins(scope: Scope, s: State, m: Term) -> Step:
    guard, after = replication.answer_send(scope, s, m)
    late = s.request_flush(m) == replication.FLUSH_DISK_TIMEOUT
    status = choose(late, replication.FLUSH_DISK_TIMEOUT, after.answer(m))
    return guard, replace(after, answer=updated(after.answer, m, status))


def _connected_is_usable(scope: Scope, s: State, m: Term) -> Step:
    """A send waits for a slave that is far behind."""
    guard, after = replication.append_record(scope, s, m)
    gone = conjunction(s.sync_master, negation(s.connected(MASTER)))
    request = choose(gone, replication.SLAVE_NOT_AVAILABLE, replication.WAITING)
    return guard, replace(after, request_replica=updated(s.request_replica, m, request))


def _stuck_behind_another(scope: Scope, s: State, m: Term) -> Step:
    guard, after = replication.slave_timeout(scope, replace(s, acked=0), m)
    return guard, replace(after, acked=s.acked)


def _slave_starts_over(scope: Scope, s: State, n: Term) -> Step:
    guard, after = replication.housekeeping(scope, s, n)
    return guard, replace(
        after,
        log_length=lambda x: choose(conjunction(n == SLAVE, x == SLAVE), 0, s.log_length(x)),
        flushed=lambda x: choose(conjunction(n == SLAVE, x == SLAVE), 0, s.flushed(x)),
    )


def _ack_of_replica_alone(scope: Scope, s: State, m: Term) -> Step:
    guard, after = replication.answer_send(scope, replace(s, sync_flush=False), m)
    return guard, replace(after, sync_flush=s.sync_flush)


def _read_beyond_end(scope: Scope, s: State, n: Term) -> Step:
    _, after = replication.deliver(scope, s, n)
    return s.phase(n) == replication.UP, after


def _read_not_durable(scope: Scope, s: State, n: Term) -> Step:
    guard, after = replication.deliver(scope, replace(s, sync_flush=False), n)
    return guard, replace(after, sync_flush=s.sync_flush)


def _slave_read_from_max(scope: Scope, s: State, n: Term) -> Step:
    guard, after = replication.deliver(scope, s, n)
    return guard, replace(after, seen=updated(s.seen, after.seen_length, s.log(n, s.log_length(n))))


def _old_offsets_win(_scope: Scope, s: State) -> Step:
    both_up = conjunction(s.phase(MASTER) == replication.UP, s.phase(SLAVE) == replication.UP)
    return both_up, replace(s, committed=updated(s.committed, SLAVE, s.committed(MASTER)))


_replication = partial(Mutant, replication.PROOF)

MUTANTS: Final = (
    _replication("WaitsForNoSlave", "SyncAckedOnSlave", "AnswerSend", _waits_for_no_slave),
    _replication(
        "ReportAcknowledges", "SyncAckedOnSlave", "AcceptReport", _report_acknowledges, "acked_was_held"
    ),
    _replication("NotCompared", "SlaveIsPrefix", "ReceiveTransfer", _not_compared),
    _replication("PositionNotChecked", "SlaveIsPrefix", "ReceiveTransfer", _position_not_checked),
    _replication("TimeoutIsOk", "StatusHonest", "AnswerSend", _timeout_is_ok),
    _replication("FlushStatusWins", "StatusHonest", "AnswerSend", _flush_status_wins),
    _replication("ConnectedIsUsable", "StatusHonest", "AppendRecord", _connected_is_usable),
    _replication("StuckBehindAnother", "StatusHonest", "SlaveTimeout", _stuck_behind_another),
    _replication("SlaveStartsOver", "ReadableWithoutMaster", "Housekeeping", _slave_starts_over),
    _replication("AckOfReplicaAlone", "SyncAckedDurable", "AnswerSend", _ack_of_replica_alone),
    _replication("AckedWhenSent", "NoAckedLost", "TransferRecord", _acked_when_sent, "acked_was_held"),
    _replication("ReadBeyondEnd", "NoPhantom", "Deliver", _read_beyond_end),
    _replication("ReadNotDurable", "QueueOrder", "Deliver", _read_not_durable),
    _replication("SlaveReadFromMax", "QueueOrder", "Deliver", _slave_read_from_max),
    _replication("OldOffsetsWin", "OffsetMonotone", "SyncOffsets", _old_offsets_win),
)
