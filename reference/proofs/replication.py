"""Replication in logic, action for action as in spec/tla/Replication.tla, with its inductive invariant.

There is one master and one slave, as in the module. The numbers of messages, records, frames, connections and
faults are unbounded. A log is a length and a function from 1. The frames in transit are one relation per kind
of frame. Position(m) is replaced by "every record of m", as in flush.py. The auxiliary variable `position` is
in no guard, and no other variable depends on it.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

from mqproof.reference import replication
from mqproof.reference.proofs.logic import (
    FLAG,
    Function,
    Kind,
    Scope,
    Term,
    choose,
    conjunction,
    constant,
    disjunction,
    implies,
    maximum,
    negation,
    updated,
)
from mqproof.reference.proofs.proof import Action, Proof
from mqproof.reference.proofs.variables import of

MESSAGE: Final = Kind("message", optional=True, names=("m",))
LENGTH: Final = Kind("length")
INDEX: Final = Kind("index", low=1)  # an index into a sequence
SENT: Final = replace(LENGTH, optional=True)
NOT_REQUESTED: Final = -1

NODE: Final = Kind("node", size=2, names=replication.NODES)
MASTER, SLAVE = range(2)

PHASE: Final = Kind("phase", size=3, names=("up", "down", "gone"))
UP, DOWN, GONE = range(3)

STATUS: Final = Kind(
    "status",
    size=8,
    names=(
        "unsent",
        "waiting",
        "unknown",
        "SEND_OK",
        "FLUSH_DISK_TIMEOUT",
        "FLUSH_SLAVE_TIMEOUT",
        "SLAVE_NOT_AVAILABLE",
        "PUT_OK",
    ),
)
(
    UNSENT,
    WAITING,
    UNKNOWN,
    SEND_OK,
    FLUSH_DISK_TIMEOUT,
    FLUSH_SLAVE_TIMEOUT,
    SLAVE_NOT_AVAILABLE,
    PUT_OK,
) = range(8)


@dataclass(frozen=True, slots=True)
class State:
    """The state, in the order of the module.

    Records' fields and lengths are separate, and the network is split by kind of frame.
    """

    sync_flush: Term = of(FLAG)  # flushMode = "SYNC_FLUSH"
    sync_master: Term = of(FLAG)  # role = "SYNC_MASTER"
    fall_behind_max: Term = of(LENGTH)  # the constant FallBehindMax
    phase: Function = of(PHASE, NODE)
    log_length: Function = of(LENGTH, NODE)
    log: Function = of(MESSAGE, NODE, INDEX, length="log_length")
    flushed: Function = of(LENGTH, NODE)
    connected: Function = of(FLAG, NODE)
    intact: Term = of(FLAG)
    report: Function = of(FLAG, LENGTH)  # whether such a frame is in the network
    ack: Function = of(FLAG, LENGTH)
    transfer: Function = of(FLAG, LENGTH, MESSAGE)
    sent: Term = of(SENT)
    acked: Term = of(LENGTH)
    request_flush: Function = of(STATUS, MESSAGE)
    request_replica: Function = of(STATUS, MESSAGE)
    verified: Term = of(FLAG)
    refused: Term = of(FLAG)
    committed: Function = of(LENGTH, NODE)
    answer: Function = of(STATUS, MESSAGE)
    seen_length: Term = of(LENGTH)
    seen: Function = of(MESSAGE, INDEX, length="seen_length")
    held: Function = of(FLAG, MESSAGE)
    forked: Term = of(FLAG)
    recalled: Term = of(FLAG)
    system_crashes: Function = of(LENGTH, NODE)
    position: Function = of(LENGTH, MESSAGE, auxiliary=True)  # the position at which the message was appended


def initial(scope: Scope, s: State) -> Term:
    """Init: the condition of initial states."""
    return conjunction(
        scope.every(
            NODE,
            lambda n: conjunction(
                s.phase(n) == UP,
                negation(s.connected(n)),
                *(f(n) == 0 for f in (s.log_length, s.flushed, s.committed, s.system_crashes)),
            ),
        ),
        s.sent == NOT_REQUESTED,
        s.acked == 0,
        s.seen_length == 0,
        *(negation(flag) for flag in (s.intact, s.verified, s.refused, s.forked, s.recalled)),
        scope.every(LENGTH, lambda p: conjunction(negation(s.report(p)), negation(s.ack(p)))),
        scope.every(LENGTH, MESSAGE, lambda p, m: negation(s.transfer(p, m))),
        scope.every(
            MESSAGE,
            lambda m: conjunction(
                s.request_flush(m) == WAITING,
                s.request_replica(m) == WAITING,
                s.answer(m) == UNSENT,
                negation(s.held(m)),
            ),
        ),
    )


# Rules


def _is_prefix(scope: Scope, s: State, shorter: Term, longer: Term) -> Term:
    """IsPrefix(log[shorter], log[longer]): one node's log is a prefix of the other's."""
    return conjunction(
        s.log_length(shorter) <= s.log_length(longer),
        scope.every(
            INDEX, lambda i: implies(i <= s.log_length(shorter), s.log(shorter, i) == s.log(longer, i))
        ),
    )


def _put_status(flush: Term, replica: Term) -> Term:
    return choose(replica != PUT_OK, replica, choose(flush != PUT_OK, flush, SEND_OK))


def _usable(s: State) -> Term:
    """SlaveUsable: whether a SYNC_MASTER may wait for the slave to have the next record."""
    return conjunction(s.connected(MASTER), s.log_length(MASTER) + 1 - s.acked < s.fall_behind_max)


def _first_report(length: Term) -> Term:
    return maximum(length - 1, 0)


# A send, in the order of its life


def append_record(_scope: Scope, s: State, m: Term) -> tuple[Term, State]:
    end = s.log_length(MASTER) + 1
    refused_at_once = conjunction(s.sync_master, negation(_usable(s)))
    return conjunction(s.phase(MASTER) == UP, s.answer(m) == UNSENT), replace(
        s,
        log_length=updated(s.log_length, MASTER, end),
        log=updated(s.log, MASTER, end, m),
        request_flush=updated(s.request_flush, m, WAITING),
        request_replica=updated(s.request_replica, m, choose(refused_at_once, SLAVE_NOT_AVAILABLE, WAITING)),
        answer=updated(s.answer, m, WAITING),
        position=updated(s.position, m, end),
    )


def flush_log(_scope: Scope, s: State, n: Term) -> tuple[Term, State]:
    return conjunction(s.phase(n) == UP, s.flushed(n) < s.log_length(n)), replace(
        s, flushed=updated(s.flushed, n, s.log_length(n))
    )


def _reached(scope: Scope, s: State, m: Term, limit: Term) -> Term:
    """Every record of the message is within the limit: Position(m) <= limit in the module."""
    return scope.every(
        INDEX,
        lambda i: implies(conjunction(i <= s.log_length(MASTER), s.log(MASTER, i) == m), i <= limit),
    )


def _flush_decided(scope: Scope, s: State, m: Term) -> Term:
    """Whether the send need not wait for the flush any more: FlushStatus(m) # "waiting" in the module."""
    reached = implies(s.sync_flush, _reached(scope, s, m, s.flushed(MASTER)))
    return disjunction(s.request_flush(m) != WAITING, reached)


def _replica_decided(scope: Scope, s: State, m: Term) -> Term:
    """Whether the send need not wait for the slave any more: ReplicaStatus(m) # "waiting" in the module."""
    reached = implies(s.sync_master, _reached(scope, s, m, s.acked))
    return disjunction(s.request_replica(m) != WAITING, reached)


def _waits(s: State, m: Term) -> Term:
    return conjunction(s.phase(MASTER) == UP, s.answer(m) == WAITING)


def flush_timeout(scope: Scope, s: State, m: Term) -> tuple[Term, State]:
    return conjunction(_waits(s, m), negation(_flush_decided(scope, s, m))), replace(
        s, request_flush=updated(s.request_flush, m, FLUSH_DISK_TIMEOUT)
    )


def slave_timeout(scope: Scope, s: State, m: Term) -> tuple[Term, State]:
    return conjunction(_waits(s, m), negation(_replica_decided(scope, s, m))), replace(
        s, request_replica=updated(s.request_replica, m, FLUSH_SLAVE_TIMEOUT)
    )


def answer_send(scope: Scope, s: State, m: Term) -> tuple[Term, State]:
    def status(request: Term) -> Term:
        """Return the status of a decided request."""
        return choose(request == WAITING, PUT_OK, request)

    decided = conjunction(_flush_decided(scope, s, m), _replica_decided(scope, s, m))
    answer = _put_status(status(s.request_flush(m)), status(s.request_replica(m)))
    return conjunction(_waits(s, m), decided), replace(
        s,
        answer=updated(s.answer, m, answer),
        request_flush=updated(s.request_flush, m, WAITING),
        request_replica=updated(s.request_replica, m, WAITING),
    )


# A connection


def connect(_scope: Scope, s: State) -> tuple[Term, State]:
    guard = conjunction(
        s.phase(MASTER) == UP, s.phase(SLAVE) == UP, negation(s.connected(SLAVE)), negation(s.refused)
    )
    first = _first_report(s.log_length(SLAVE))
    return guard, replace(
        s,
        connected=constant(True),
        intact=True,
        report=lambda p: p == first,
        ack=constant(False),
        transfer=constant(False),
        sent=NOT_REQUESTED,
        verified=s.log_length(SLAVE) == 0,
    )


def _may_report(s: State, position: Term) -> Term:
    return conjunction(s.report(position), s.connected(MASTER), s.sent == NOT_REQUESTED)


def accept_report(_scope: Scope, s: State, position: Term) -> tuple[Term, State]:
    return conjunction(_may_report(s, position), position <= s.log_length(MASTER)), replace(s, sent=position)


def _close(s: State, n: Term) -> State:
    """Close: the frames in transit to this end are lost with it."""
    return replace(
        s,
        connected=updated(s.connected, n, False),
        intact=False,
        report=lambda p: conjunction(n != MASTER, s.report(p)),
        ack=lambda p: conjunction(n != MASTER, s.ack(p)),
        transfer=lambda p, m: conjunction(n != SLAVE, s.transfer(p, m)),
    )


def refuse_report(_scope: Scope, s: State, position: Term) -> tuple[Term, State]:
    return conjunction(_may_report(s, position), position > s.log_length(MASTER)), _close(s, MASTER)


def transfer_record(_scope: Scope, s: State) -> tuple[Term, State]:
    guard = conjunction(s.intact, s.sent != NOT_REQUESTED, s.sent < s.log_length(MASTER))
    return guard, replace(
        s, transfer=updated(s.transfer, s.sent, s.log(MASTER, s.sent + 1), True), sent=s.sent + 1
    )


def _compares(s: State, position: Term) -> Term:
    return conjunction(negation(s.verified), position == _first_report(s.log_length(SLAVE)))


def _agrees(s: State, message: Term) -> Term:
    return message == s.log(SLAVE, s.log_length(SLAVE))


def _continues(s: State, position: Term) -> Term:
    return conjunction(s.verified, position == s.log_length(SLAVE))


def _forks(scope: Scope, after: State) -> Term:
    """Forks(log'["slave"]): whether the slave has records that its restarted master lacks or replaced."""
    return conjunction(
        negation(after.intact),
        negation(_is_prefix(scope, after, SLAVE, MASTER)),
        disjunction(after.phase(MASTER) == UP, negation(_is_prefix(scope, after, MASTER, SLAVE))),
    )


def receive_transfer(scope: Scope, s: State, position: Term, message: Term) -> tuple[Term, State]:
    continues = _continues(s, position)
    taken = disjunction(continues, conjunction(_compares(s, position), _agrees(s, message)))
    length = s.log_length(SLAVE)
    after = replace(
        s,
        log_length=updated(s.log_length, SLAVE, choose(continues, length + 1, length)),
        log=updated(s.log, SLAVE, length + 1, message),
        verified=True,
    )
    end = after.log_length(SLAVE)
    return conjunction(s.transfer(position, message), s.connected(SLAVE), taken), replace(
        after,
        ack=lambda p: disjunction(s.ack(p), conjunction(s.intact, p == end)),
        held=lambda m: disjunction(
            s.held(m), scope.some(INDEX, lambda i: conjunction(i <= end, after.log(SLAVE, i) == m))
        ),
        forked=disjunction(s.forked, _forks(scope, after)),
    )


def refuse_transfer(_scope: Scope, s: State, position: Term, message: Term) -> tuple[Term, State]:
    differs = conjunction(_compares(s, position), negation(_agrees(s, message)))
    guard = conjunction(s.transfer(position, message), s.connected(SLAVE), differs)
    return guard, replace(_close(s, SLAVE), refused=True)


def receive_ack(_scope: Scope, s: State, position: Term) -> tuple[Term, State]:
    """ReceiveAck: AckedPosition changes: the new one is higher, and not beyond the end."""
    higher = conjunction(position > s.acked, position <= s.log_length(MASTER))
    return conjunction(s.ack(position), s.connected(MASTER), higher), replace(s, acked=position)


def cut(_scope: Scope, s: State) -> tuple[Term, State]:
    return s.intact, replace(
        s, intact=False, report=constant(False), ack=constant(False), transfer=constant(False)
    )


def housekeeping(_scope: Scope, s: State, n: Term) -> tuple[Term, State]:
    return conjunction(s.connected(n), negation(s.intact)), replace(
        _close(s, n), verified=conjunction(s.verified, n != SLAVE)
    )


# The consumer


def deliver(_scope: Scope, s: State, n: Term) -> tuple[Term, State]:
    shows_durable = conjunction(n == MASTER, s.sync_flush)
    limit = choose(shows_durable, s.flushed(n), s.log_length(n))
    end = s.seen_length + 1
    return conjunction(s.phase(n) == UP, s.seen_length < limit), replace(
        s, seen_length=end, seen=updated(s.seen, end, s.log(n, end))
    )


def correct_offset(_scope: Scope, s: State) -> tuple[Term, State]:
    end = s.log_length(MASTER)
    return conjunction(s.phase(MASTER) == UP, s.seen_length > end), replace(
        s, seen_length=end, committed=constant(end)
    )


def commit_offset(_scope: Scope, s: State, n: Term) -> tuple[Term, State]:
    return conjunction(s.phase(n) == UP, s.committed(n) < s.seen_length), replace(
        s, committed=updated(s.committed, n, s.seen_length)
    )


def sync_offsets(_scope: Scope, s: State) -> tuple[Term, State]:
    """SyncOffsets: the merged offset changes to the master's, which is higher."""
    higher = s.committed(MASTER) > s.committed(SLAVE)
    return conjunction(s.phase(MASTER) == UP, s.phase(SLAVE) == UP, higher), replace(
        s, committed=updated(s.committed, SLAVE, s.committed(MASTER))
    )


# Ends of a broker's life, and its beginning


def _lose_memory(s: State, n: Term, phase: Term) -> State:
    masters = n == MASTER

    def forget(request: Function) -> Function:
        return lambda m: choose(masters, WAITING, request(m))

    return replace(
        _close(s, n),
        phase=updated(s.phase, n, phase),
        verified=conjunction(s.verified, masters),
        refused=conjunction(s.refused, masters),
        sent=choose(masters, NOT_REQUESTED, s.sent),
        acked=choose(masters, 0, s.acked),
        request_flush=forget(s.request_flush),
        request_replica=forget(s.request_replica),
        answer=lambda m: choose(conjunction(masters, s.answer(m) == WAITING), UNKNOWN, s.answer(m)),
    )


def stranger_acknowledges(_scope: Scope, s: State) -> tuple[Term, State]:
    return conjunction(s.phase(MASTER) == UP, s.log_length(MASTER) > 0), s


def process_crash(_scope: Scope, s: State, n: Term) -> tuple[Term, State]:
    return s.phase(n) == UP, _lose_memory(s, n, DOWN)


def _recall(scope: Scope, s: State) -> State:
    """Recall: more was seen than is kept. Kept is the longer log, or the master's if the two differ."""
    kept = choose(_is_prefix(scope, s, MASTER, SLAVE), s.log_length(SLAVE), s.log_length(MASTER))
    return replace(s, recalled=disjunction(s.recalled, s.seen_length > kept))


def system_crash(scope: Scope, s: State, n: Term, length: Term) -> tuple[Term, State]:
    guard = conjunction(s.phase(n) != GONE, s.flushed(n) <= length, length <= s.log_length(n))
    after = replace(
        _lose_memory(s, n, DOWN),
        log_length=updated(s.log_length, n, length),
        system_crashes=updated(s.system_crashes, n, s.system_crashes(n) + 1),
    )
    return guard, _recall(scope, after)


def machine_loss(scope: Scope, s: State) -> tuple[Term, State]:
    after = replace(
        _lose_memory(s, MASTER, GONE),
        log_length=updated(s.log_length, MASTER, 0),
        flushed=updated(s.flushed, MASTER, 0),
        committed=updated(s.committed, MASTER, 0),
    )
    return s.phase(MASTER) != GONE, _recall(scope, after)


def start(scope: Scope, s: State, n: Term) -> tuple[Term, State]:
    forks = conjunction(n == MASTER, negation(_is_prefix(scope, s, SLAVE, MASTER)))
    return s.phase(n) == DOWN, replace(
        s,
        phase=updated(s.phase, n, UP),
        flushed=updated(s.flushed, n, s.log_length(n)),
        forked=disjunction(s.forked, forks),
    )


# The inductive invariant


def positions_in_order(scope: Scope, s: State) -> Term:
    return conjunction(
        scope.every(
            NODE,
            lambda n: conjunction(
                s.flushed(n) >= 0, s.flushed(n) <= s.log_length(n), s.system_crashes(n) >= 0
            ),
        ),
        s.sent >= NOT_REQUESTED,
        s.acked >= 0,
        s.acked <= s.log_length(MASTER),
        s.seen_length >= 0,
    )


def requests_are_requests(scope: Scope, s: State) -> Term:
    """A request has only valid values."""

    def is_request(m: Term) -> Term:
        replica = s.request_replica(m)
        unreplicated = disjunction(replica == FLUSH_SLAVE_TIMEOUT, replica == SLAVE_NOT_AVAILABLE)
        return conjunction(
            disjunction(s.request_flush(m) == WAITING, s.request_flush(m) == FLUSH_DISK_TIMEOUT),
            disjunction(replica == WAITING, unreplicated),
        )

    return scope.every(MESSAGE, is_request)


def connections_have_ends(scope: Scope, s: State) -> Term:
    return conjunction(
        scope.every(
            NODE,
            lambda n: conjunction(
                implies(s.connected(n), s.phase(n) == UP), implies(s.intact, s.connected(n))
            ),
        ),
        implies(s.verified, s.connected(SLAVE)),
        implies(s.connected(SLAVE), disjunction(s.verified, s.log_length(SLAVE) > 0)),
    )


def frames_have_receivers(scope: Scope, s: State) -> Term:
    return conjunction(
        scope.every(LENGTH, lambda p: implies(disjunction(s.report(p), s.ack(p)), s.connected(MASTER))),
        scope.every(LENGTH, MESSAGE, lambda p, m: implies(s.transfer(p, m), s.connected(SLAVE))),
    )


def unsent_is_nowhere(scope: Scope, s: State) -> Term:
    def was_sent(m: Term) -> Term:
        return s.answer(m) != UNSENT

    return conjunction(
        scope.every(NODE, INDEX, lambda n, i: implies(i <= s.log_length(n), was_sent(s.log(n, i)))),
        scope.every(LENGTH, MESSAGE, lambda p, m: implies(s.transfer(p, m), was_sent(m))),
        scope.every(INDEX, lambda i: implies(i <= s.seen_length, was_sent(s.seen(i)))),
        scope.every(MESSAGE, lambda m: implies(s.held(m), was_sent(m))),
    )


def messages_are_messages(scope: Scope, s: State) -> Term:
    return conjunction(
        scope.every(NODE, INDEX, lambda n, i: implies(i <= s.log_length(n), s.log(n, i) >= 0)),
        scope.every(INDEX, lambda i: implies(i <= s.seen_length, s.seen(i) >= 0)),
    )


def messages_are_where_they_were_appended(scope: Scope, s: State) -> Term:
    """Each message is at the position where it was appended, so no message is in a log twice."""
    return conjunction(
        scope.every(NODE, INDEX, lambda n, i: implies(i <= s.log_length(n), s.position(s.log(n, i)) == i)),
        scope.every(LENGTH, MESSAGE, lambda p, m: implies(s.transfer(p, m), s.position(m) == p + 1)),
    )


def _is_in(s: State, m: Term, n: Term, limit: Term) -> Term:
    return conjunction(s.position(m) >= 1, s.position(m) <= limit, s.log(n, s.position(m)) == m)


def waiting_is_in_the_log(scope: Scope, s: State) -> Term:
    return scope.every(
        MESSAGE,
        lambda m: implies(
            s.answer(m) == WAITING, s.phase(MASTER) == UP, _is_in(s, m, MASTER, s.log_length(MASTER))
        ),
    )


def logs_match(scope: Scope, s: State) -> Term:
    """If both logs have the same record at a position, they are equal up to there."""
    return scope.every(
        INDEX,
        INDEX,
        lambda i, j: implies(
            conjunction(
                j <= i,
                *(i <= s.log_length(n) for n in (MASTER, SLAVE)),
                s.log(MASTER, i) == s.log(SLAVE, i),
            ),
            s.log(MASTER, j) == s.log(SLAVE, j),
        ),
    )


def _is_masters(s: State, p: Term, m: Term) -> Term:
    return conjunction(p < s.log_length(MASTER), s.log(MASTER, p + 1) == m)


def frames_are_the_masters(scope: Scope, s: State) -> Term:
    """Until the connection breaks, frames contain the master's records.

    A late frame may contain a lost one.
    """
    return implies(
        s.intact,
        scope.every(LENGTH, MESSAGE, lambda p, m: implies(s.transfer(p, m), _is_masters(s, p, m))),
    )


def late_frames_match(scope: Scope, s: State) -> Term:
    """If the master still has the record of a late frame, it also has those of the frames before it."""
    return scope.every(
        LENGTH,
        MESSAGE,
        LENGTH,
        MESSAGE,
        lambda p, m, q, r: implies(
            conjunction(s.transfer(p, m), s.transfer(q, r), q <= p, _is_masters(s, p, m)),
            _is_masters(s, q, r),
        ),
        when=lambda p, m, q, r: ((s.transfer(p, m), s.transfer(q, r)),),
    )


def late_frames_match_a_slave_that_compared(scope: Scope, s: State) -> Term:
    def follows(p: Term, m: Term) -> Term:
        return conjunction(s.transfer(p, m), p >= s.log_length(SLAVE), _is_masters(s, p, m))

    return implies(
        s.verified,
        scope.every(
            LENGTH,
            MESSAGE,
            INDEX,
            lambda p, m, i: implies(
                conjunction(follows(p, m), i <= s.log_length(SLAVE)), s.log(SLAVE, i) == s.log(MASTER, i)
            ),
            when=lambda p, m, i: ((s.transfer(p, m), s.log(SLAVE, i)), (s.transfer(p, m), s.log(MASTER, i))),
        ),
    )


def following(s: State) -> Term:
    return conjunction(s.intact, s.verified)


def a_following_slave_is_a_prefix(scope: Scope, s: State) -> Term:
    return implies(following(s), _is_prefix(scope, s, SLAVE, MASTER))


def without_a_fork_logs_agree(scope: Scope, s: State) -> Term:
    """One log is a prefix of the other. While the master serves, the slave's is."""
    return implies(
        negation(s.forked),
        implies(s.phase(MASTER) == UP, s.log_length(SLAVE) <= s.log_length(MASTER)),
        scope.every(
            INDEX,
            lambda i: implies(
                conjunction(*(i <= s.log_length(n) for n in (MASTER, SLAVE))),
                s.log(MASTER, i) == s.log(SLAVE, i),
            ),
        ),
    )


def held_is_on_the_slave(scope: Scope, s: State) -> Term:
    return implies(
        s.system_crashes(SLAVE) == 0,
        scope.every(MESSAGE, lambda m: implies(s.held(m), _is_in(s, m, SLAVE, s.log_length(SLAVE)))),
    )


def _held_up_to(scope: Scope, s: State, limit: Term) -> Term:
    return scope.every(INDEX, lambda i: implies(i <= limit, s.held(s.log(MASTER, i))))


def acks_are_true(scope: Scope, s: State) -> Term:
    return scope.every(
        LENGTH,
        lambda p: implies(
            s.ack(p),
            p <= s.log_length(MASTER),
            scope.every(
                INDEX,
                lambda i: implies(i <= p, s.held(s.log(MASTER, i))),
                when=lambda i: ((s.log(MASTER, i),),),
            ),
        ),
    )


def acked_was_held(scope: Scope, s: State) -> Term:
    return _held_up_to(scope, s, s.acked)


def _every_acked(scope: Scope, s: State, body: Callable[[Term], Term]) -> Term:
    return scope.every(MESSAGE, lambda m: implies(s.answer(m) == SEND_OK, body(m)))


def send_ok_was_held(scope: Scope, s: State) -> Term:
    return implies(s.sync_master, _every_acked(scope, s, lambda m: s.held(m)))


def send_ok_is_in_the_log(scope: Scope, s: State) -> Term:
    """An acknowledged message is in the log as long as the master's disk, or its page cache, is kept."""
    safe = choose(s.sync_flush, s.flushed(MASTER), s.log_length(MASTER))
    return implies(negation(master_lost(s)), _every_acked(scope, s, lambda m: _is_in(s, m, MASTER, safe)))


def seen_is_safe(_scope: Scope, s: State) -> Term:
    """If no seen message may be recalled, one of the brokers certainly holds all of them."""
    return implies(
        negation(disjunction(s.forked, may_recall(s))),
        s.seen_length <= maximum(s.flushed(MASTER), s.log_length(SLAVE)),
    )


def seen_is_kept(scope: Scope, s: State) -> Term:
    still_stands = negation(disjunction(s.forked, conjunction(may_recall(s), s.recalled)))
    return implies(
        still_stands,
        s.seen_length <= maximum(s.log_length(MASTER), s.log_length(SLAVE)),
        scope.every(
            NODE,
            INDEX,
            lambda n, i: implies(
                conjunction(i <= s.seen_length, i <= s.log_length(n)), s.seen(i) == s.log(n, i)
            ),
        ),
    )


CLAUSES: Final = {
    clause.__name__: clause
    for clause in (
        positions_in_order,
        requests_are_requests,
        connections_have_ends,
        frames_have_receivers,
        unsent_is_nowhere,
        messages_are_messages,
        messages_are_where_they_were_appended,
        waiting_is_in_the_log,
        logs_match,
        frames_are_the_masters,
        late_frames_match,
        late_frames_match_a_slave_that_compared,
        a_following_slave_is_a_prefix,
        without_a_fork_logs_agree,
        held_is_on_the_slave,
        acks_are_true,
        acked_was_held,
        send_ok_was_held,
        send_ok_is_in_the_log,
        seen_is_safe,
        seen_is_kept,
    )
}


# Safety, as the module states it


def _in_log(scope: Scope, s: State, m: Term, n: Term, limit: Term) -> Term:
    return scope.some(INDEX, lambda i: conjunction(i <= limit, s.log(n, i) == m))


def master_lost(s: State) -> Term:
    """MasterLost: the master lost, or may have lost, some of its data."""
    lost_cache = conjunction(negation(s.sync_flush), s.system_crashes(MASTER) > 0)
    return disjunction(s.phase(MASTER) == GONE, lost_cache)


def covered(s: State) -> Term:
    return implies(master_lost(s), s.sync_master, s.system_crashes(SLAVE) == 0, negation(s.forked))


def may_recall(s: State) -> Term:
    """MayRecall: a consumer may see messages that are not safe yet."""
    return disjunction(s.phase(MASTER) == GONE, negation(s.sync_flush), s.system_crashes(SLAVE) > 0)


def promised(s: State) -> Term:
    return conjunction(covered(s), negation(s.forked), negation(conjunction(may_recall(s), s.recalled)))


def sync_acked_on_slave(scope: Scope, s: State) -> Term:
    def is_there(m: Term) -> Term:
        taken_away = conjunction(s.system_crashes(SLAVE) > 0, s.held(m))
        return disjunction(_in_log(scope, s, m, SLAVE, s.log_length(SLAVE)), taken_away)

    return implies(s.sync_master, _every_acked(scope, s, is_there))


def slave_is_prefix(scope: Scope, s: State) -> Term:
    return disjunction(
        _is_prefix(scope, s, SLAVE, MASTER),
        conjunction(s.phase(MASTER) != UP, _is_prefix(scope, s, MASTER, SLAVE)),
        conjunction(s.forked, negation(following(s))),
    )


def status_honest(scope: Scope, before: State, _action: str, after: State) -> Term:
    def honest(m: Term) -> Term:
        was_flush, was_replica = before.request_flush(m), before.request_replica(m)
        durable = _reached(scope, before, m, before.flushed(MASTER))
        acked = _reached(scope, before, m, before.acked)
        replicated = implies(before.sync_master, before.held(m), acked)
        waited = before.answer(m) == WAITING
        at_once = conjunction(before.sync_master, negation(_usable(before)))
        answer = after.answer(m)
        return conjunction(
            implies(
                conjunction(before.answer(m) == UNSENT, answer != UNSENT),
                (after.request_replica(m) == SLAVE_NOT_AVAILABLE) == at_once,
            ),
            implies(
                conjunction(was_flush == WAITING, after.request_flush(m) != WAITING),
                before.sync_flush,
                negation(durable),
            ),
            implies(
                conjunction(waited, was_replica == WAITING, after.request_replica(m) != WAITING),
                before.sync_master,
                negation(acked),
            ),
            implies(
                conjunction(waited, answer != WAITING),
                disjunction(
                    answer == was_replica,
                    conjunction(answer == was_flush, was_replica == WAITING, replicated),
                    conjunction(
                        answer == SEND_OK,
                        was_flush == WAITING,
                        was_replica == WAITING,
                        implies(before.sync_flush, durable),
                        replicated,
                    ),
                    conjunction(answer == UNKNOWN, after.phase(MASTER) != UP),
                ),
            ),
        )

    return scope.every(MESSAGE, honest)


def readable_without_master(scope: Scope, s: State) -> Term:
    can_be_had, _ = deliver(scope, s, SLAVE)
    return implies(
        conjunction(s.phase(MASTER) != UP, s.phase(SLAVE) == UP),
        implies(s.seen_length < s.log_length(SLAVE), can_be_had),
        implies(
            s.system_crashes(SLAVE) == 0,
            scope.every(
                MESSAGE, lambda m: implies(s.held(m), _in_log(scope, s, m, SLAVE, s.log_length(SLAVE)))
            ),
        ),
    )


def sync_acked_durable(scope: Scope, s: State) -> Term:
    return implies(
        conjunction(s.sync_flush, s.phase(MASTER) != GONE),
        _every_acked(scope, s, lambda m: _in_log(scope, s, m, MASTER, s.flushed(MASTER))),
    )


def _in_kept(scope: Scope, s: State, body: Callable[[Term], Term]) -> Term:
    """Apply the predicate to the node whose log is Kept: the slave's if the master's is a prefix of it."""
    return choose(_is_prefix(scope, s, MASTER, SLAVE), body(SLAVE), body(MASTER))


def no_acked_lost(scope: Scope, s: State) -> Term:
    def is_in(m: Term) -> Term:
        return disjunction(*(_in_log(scope, s, m, n, s.log_length(n)) for n in (MASTER, SLAVE)))

    def is_not_passed_by(m: Term, n: Term) -> Term:
        return scope.some(
            INDEX,
            lambda i: conjunction(
                i <= s.log_length(n), s.log(n, i) == m, implies(i <= s.seen_length, s.seen(i) == m)
            ),
        )

    return _every_acked(
        scope,
        s,
        lambda m: conjunction(
            implies(covered(s), is_in(m)),
            implies(promised(s), _in_kept(scope, s, lambda n: is_not_passed_by(m, n))),
        ),
    )


def no_phantom(scope: Scope, s: State) -> Term:
    return scope.every(
        INDEX,
        lambda i: implies(i <= s.seen_length, s.seen(i) >= 0, s.answer(s.seen(i)) != UNSENT),
    )


def queue_order(scope: Scope, s: State) -> Term:
    def is_in_order(n: Term) -> Term:
        return conjunction(
            s.seen_length <= s.log_length(n),
            scope.every(INDEX, lambda i: implies(i <= s.seen_length, s.seen(i) == s.log(n, i))),
        )

    return implies(promised(s), _in_kept(scope, s, is_in_order))


def offset_monotone(scope: Scope, before: State, action: str, after: State) -> Term:
    if action == "CorrectOffset":
        return True
    return scope.every(
        NODE,
        lambda n: disjunction(after.committed(n) >= before.committed(n), after.phase(n) == GONE),
    )


# The reference's states in terms of the proof


def sent_in_order(proof: Proof) -> Proof:
    """Return the proof with messages sent in order, as in the reference and MCReplication.

    The names of messages do not matter.
    """

    def append(scope: Scope, s: State, m: Term) -> tuple[Term, State]:
        guard, after = append_record(scope, s, m)
        first = scope.every(MESSAGE, lambda x: implies(x < m, s.answer(x) != UNSENT))
        return conjunction(guard, first), after

    actions = (replace(a, apply=append) if a.name == "AppendRecord" else a for a in proof.actions)
    return replace(proof, actions=tuple(actions))


def from_reference(config: replication.Config, state: replication.State) -> dict[str, Any]:
    """Return the shape of a reference state. A message's position is its place in either log or a frame."""
    messages = config.messages
    lengths = range(len(messages) + 1)

    def numbers(names: tuple[str, ...]) -> tuple[int, ...]:
        return tuple(map(messages.index, names))

    def statuses(names: Any) -> tuple[int, ...]:
        return tuple(map(STATUS.names.index, names))

    def frames(kind: str) -> tuple[bool, ...]:
        return tuple(replication.Frame(kind, p) in state.network for p in lengths)

    positions = {f.message: f.position + 1 for f in state.network if f.kind == "transfer"}
    for records in state.log:
        positions |= {m: i for i, m in enumerate(records, start=1)}
    return {
        "sync_flush": state.flush_mode == replication.SYNC_FLUSH,
        "sync_master": state.role == replication.SYNC_MASTER,
        "fall_behind_max": config.fall_behind_max,
        "phase": tuple(map(PHASE.names.index, state.phase)),
        "log_length": tuple(map(len, state.log)),
        "log": tuple(map(numbers, state.log)),
        "flushed": state.flushed,
        "connected": state.connected,
        "intact": state.intact,
        "report": frames("report"),
        "ack": frames("ack"),
        "transfer": tuple(
            tuple(replication.Frame("transfer", p, m) in state.network for m in messages) for p in lengths
        ),
        "sent": state.sent,
        "acked": state.acked,
        "request_flush": statuses(request.flush for request in state.request),
        "request_replica": statuses(request.replica for request in state.request),
        "verified": state.verified,
        "refused": state.refused,
        "committed": state.committed,
        "answer": statuses(state.answer),
        "seen_length": len(state.seen),
        "seen": numbers(state.seen),
        "held": tuple(m in state.held for m in messages),
        "forked": state.forked,
        "recalled": state.recalled,
        "system_crashes": state.system_crashes,
        "position": tuple(positions.get(m, 0) for m in messages),
    }


PROOF: Final = Proof(
    name="Replication",
    module="Replication",
    state=State,
    initial=initial,
    actions=(
        Action("AppendRecord", append_record, (MESSAGE,)),
        Action("FlushLog", flush_log, (NODE,)),
        Action("FlushTimeout", flush_timeout, (MESSAGE,)),
        Action("SlaveTimeout", slave_timeout, (MESSAGE,)),
        Action("AnswerSend", answer_send, (MESSAGE,)),
        Action("Connect", connect),
        Action("AcceptReport", accept_report, (LENGTH,)),
        Action("RefuseReport", refuse_report, (LENGTH,)),
        Action("TransferRecord", transfer_record),
        Action("ReceiveTransfer", receive_transfer, (LENGTH, MESSAGE)),
        Action("RefuseTransfer", refuse_transfer, (LENGTH, MESSAGE)),
        Action("ReceiveAck", receive_ack, (LENGTH,)),
        Action("Cut", cut),
        Action("StrangerAcknowledges", stranger_acknowledges),
        Action("Housekeeping", housekeeping, (NODE,)),
        Action("Deliver", deliver, (NODE,)),
        Action("CorrectOffset", correct_offset),
        Action("CommitOffset", commit_offset, (NODE,)),
        Action("SyncOffsets", sync_offsets),
        Action("ProcessCrash", process_crash, (NODE,)),
        Action("SystemCrash", system_crash, (NODE, LENGTH)),
        Action("MachineLoss", machine_loss),
        Action("Start", start, (NODE,)),
    ),
    clauses=CLAUSES,
    safety={
        "SyncAckedOnSlave": sync_acked_on_slave,
        "SlaveIsPrefix": slave_is_prefix,
        "ReadableWithoutMaster": readable_without_master,
        "SyncAckedDurable": sync_acked_durable,
        "NoAckedLost": no_acked_lost,
        "NoPhantom": no_phantom,
        "QueueOrder": queue_order,
    },
    step_safety={"StatusHonest": status_honest, "OffsetMonotone": offset_monotone},
    unbounded=("messages", "records of the logs", "frames", "connections", "faults", "FallBehindMax"),
    assumptions=(
        "2 nodes, a master and a slave, as in the module",
        "Position(m) <= limit is stated as: no record of m is beyond the limit",
        "faults.process, .cuts and .strangers are left out: no action and no invariant reads them",
    ),
    scope=Scope({"message": 3, "length": 3, "index": 2}),
)
