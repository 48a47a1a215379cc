"""The flush protocol in logic, action for action as in spec/tla/Flush.tla, with its inductive invariant.

The numbers of messages, queues, records and crashes are unbounded. A sequence is a length and a function from
1. Three notions of the module are replaced by equivalent characterisations, because the log is unbounded
here:
- SelectSeq over a queue, and the number of its entries up to a position, by the cut of an increasing
  sequence;
- the records of a queue in log order, by the function `place` that numbers them from 0;
- Position(m), by "every record of m".

The auxiliary variables `place`, `count` and `position` are in no guard, and no other variable depends on
them.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

from mqproof.reference import flush
from mqproof.reference.proofs.logic import (
    FLAG,
    UNBOUNDED,
    Function,
    Kind,
    Scope,
    Term,
    choose,
    conjunction,
    constant,
    disjunction,
    implies,
    minimum,
    negation,
    updated,
)
from mqproof.reference.proofs.proof import Action, Proof
from mqproof.reference.proofs.variables import of, symbol

MESSAGE: Final = Kind("message", optional=True, names=("m",))
QUEUE: Final = Kind("queue", optional=True, names=("q",))
LENGTH: Final = Kind("length")
INDEX: Final = Kind("index", low=1)  # an index into a sequence

TORN: Final = -1
"""The message, and the queue, of a torn record."""

PHASE: Final = Kind("phase", size=4, names=("running", "down", "log_recovered", "dispatching"))
RUNNING, DOWN, LOG_RECOVERED, DISPATCHING = range(4)

BY_QUEUE: Final = (LENGTH, QUEUE)  # a number for each queue

ANSWER: Final = Kind(
    "answer", size=5, names=("unsent", "waiting", "SEND_OK", "FLUSH_DISK_TIMEOUT", "unknown")
)
UNSENT, WAITING, SEND_OK, FLUSH_DISK_TIMEOUT, UNKNOWN = range(5)


@dataclass(frozen=True, slots=True)
class State:
    """The state, in the order of the module. The fields of records, and lengths, are separate variables."""

    sync: Term = of(FLAG)  # mode = "SYNC_FLUSH"
    phase: Term = of(PHASE)
    log_length: Term = of(LENGTH)
    log_message: Function = of(MESSAGE, INDEX, length="log_length")
    log_queue: Function = of(QUEUE, INDEX, length="log_length")
    log_offset: Function = of(LENGTH, INDEX, length="log_length")
    flushed: Term = of(LENGTH)
    queue_length: Function = of(LENGTH, QUEUE)
    queue: Function = of(INDEX, QUEUE, INDEX, length="queue_length")
    queue_flushed: Function = of(LENGTH, QUEUE)
    checkpoint: Term = of(LENGTH)
    abort: Term = of(FLAG)
    persisted: Function = of(LENGTH, QUEUE)
    dispatched: Term = of(LENGTH)
    next_offset: Function = of(LENGTH, QUEUE)
    committed: Function = of(LENGTH, QUEUE)
    answer: Function = of(ANSWER, MESSAGE)
    seen_length: Function = of(LENGTH, QUEUE)
    seen: Function = of(MESSAGE, QUEUE, INDEX, length="seen_length")
    appended_length: Term = of(LENGTH)
    appended_message: Function = of(MESSAGE, INDEX, length="appended_length")
    appended_queue: Function = of(QUEUE, INDEX, length="appended_length")
    appended_offset: Function = of(LENGTH, INDEX, length="appended_length")
    system_crashes: Term = of(LENGTH)
    place: Function = of(LENGTH, QUEUE, LENGTH, length="count", auxiliary=True)  # by offset: the position
    count: Function = of(LENGTH, QUEUE, auxiliary=True)  # the number of records appended to the queue
    position: Function = of(LENGTH, MESSAGE, auxiliary=True)  # the position at which the message was appended


def initial(scope: Scope, s: State) -> Term:
    """Init: the condition of initial states."""
    return conjunction(
        s.phase == RUNNING,
        *(
            n == 0
            for n in (
                s.log_length,
                s.flushed,
                s.checkpoint,
                s.dispatched,
                s.appended_length,
                s.system_crashes,
            )
        ),
        s.abort,
        scope.every(
            QUEUE,
            lambda q: conjunction(
                *(
                    f(q) == 0
                    for f in (
                        s.queue_length,
                        s.queue_flushed,
                        s.persisted,
                        s.next_offset,
                        s.committed,
                        s.seen_length,
                        s.count,
                    )
                )
            ),
        ),
        scope.every(MESSAGE, lambda m: s.answer(m) == UNSENT),
    )


# The running broker, in the order of a message's life


def append_record(_scope: Scope, s: State, m: Term, q: Term) -> tuple[Term, State]:
    end = s.log_length + 1
    after = replace(
        s,
        log_length=end,
        log_message=updated(s.log_message, end, m),
        log_queue=updated(s.log_queue, end, q),
        log_offset=updated(s.log_offset, end, s.next_offset(q)),
        next_offset=updated(s.next_offset, q, s.next_offset(q) + 1),
        answer=updated(s.answer, m, WAITING),
        place=updated(s.place, q, s.next_offset(q), end),
        count=updated(s.count, q, s.count(q) + 1),
        position=updated(s.position, m, end),
    )
    return conjunction(s.phase == RUNNING, s.answer(m) == UNSENT), _appended_is_log(after)


def _appended_is_log(s: State) -> State:
    return replace(
        s,
        appended_length=s.log_length,
        appended_message=s.log_message,
        appended_queue=s.log_queue,
        appended_offset=s.log_offset,
    )


def flush_log(_scope: Scope, s: State, n: Term) -> tuple[Term, State]:
    return conjunction(s.phase == RUNNING, s.flushed < n, n <= s.log_length), replace(s, flushed=n)


def _covered(scope: Scope, s: State, m: Term) -> Term:
    """Every record of the message is flushed: Position(m) <= flushed in the module."""
    return scope.every(
        INDEX, lambda i: implies(conjunction(i <= s.log_length, s.log_message(i) == m), i <= s.flushed)
    )


def answer_ok(scope: Scope, s: State, m: Term) -> tuple[Term, State]:
    may_answer = implies(s.sync, _covered(scope, s, m))
    guard = conjunction(s.phase == RUNNING, s.answer(m) == WAITING, may_answer)
    return guard, replace(s, answer=updated(s.answer, m, SEND_OK))


def answer_timeout(scope: Scope, s: State, m: Term) -> tuple[Term, State]:
    late = conjunction(s.sync, negation(_covered(scope, s, m)))
    guard = conjunction(s.phase == RUNNING, s.answer(m) == WAITING, late)
    return guard, replace(s, answer=updated(s.answer, m, FLUSH_DISK_TIMEOUT))


def _queued(s: State, q: Term, p: Term) -> State:
    """Append to a queue: queue' = [queue EXCEPT ![q] = Append(@, p)]."""
    end = s.queue_length(q) + 1
    return replace(s, queue_length=updated(s.queue_length, q, end), queue=updated(s.queue, q, end, p))


def dispatch(_scope: Scope, s: State) -> tuple[Term, State]:
    limit = choose(s.sync, s.flushed, s.log_length)
    p = s.dispatched + 1
    return conjunction(s.phase == RUNNING, s.dispatched < limit), replace(
        _queued(s, s.log_queue(p), p), dispatched=p
    )


def _is_cut(scope: Scope, s: State, cut: Function, n: Term) -> Term:
    """Whether cut[q] is the number of entries of each queue that point no further than n: queues increase."""
    return scope.every(
        QUEUE,
        lambda q: conjunction(
            cut(q) >= 0,
            cut(q) <= s.queue_length(q),
            implies(cut(q) > 0, s.queue(q, cut(q)) <= n),
            implies(cut(q) < s.queue_length(q), s.queue(q, cut(q) + 1) > n),
        ),
    )


def flush_queues(scope: Scope, s: State, n: Term, up_to: Function) -> tuple[Term, State]:
    guard = conjunction(
        s.phase == RUNNING,
        n >= 1,
        n <= s.dispatched,
        _is_cut(scope, s, up_to, n),
        scope.some(QUEUE, lambda q: up_to(q) > s.queue_flushed(q)),
    )
    return guard, replace(
        s, queue_flushed=lambda q: choose(s.queue_flushed(q) >= up_to(q), s.queue_flushed(q), up_to(q))
    )


def write_checkpoint(scope: Scope, s: State, p: Term) -> tuple[Term, State]:
    """WriteCheckpoint: `p` is DurablePosition.

    It is durable, and the next position is not, or is beyond the limit.
    """

    def durable(n: Term) -> Term:
        return scope.every(
            QUEUE,
            INDEX,
            lambda q, i: implies(
                conjunction(i <= s.queue_length(q), s.queue(q, i) <= n), i <= s.queue_flushed(q)
            ),
        )

    limit = minimum(s.flushed, s.dispatched)
    guard = conjunction(
        s.phase == RUNNING,
        p > s.checkpoint,
        p <= limit,
        durable(p),
        disjunction(p == limit, negation(durable(p + 1))),
    )
    return guard, replace(s, checkpoint=p)


# The consumer


def deliver(_scope: Scope, s: State, q: Term) -> tuple[Term, State]:
    end = s.seen_length(q) + 1
    return conjunction(s.phase == RUNNING, s.seen_length(q) < s.queue_length(q)), replace(
        s,
        seen_length=updated(s.seen_length, q, end),
        seen=updated(s.seen, q, end, s.log_message(s.queue(q, end))),
    )


def correct_offset(_scope: Scope, s: State, q: Term) -> tuple[Term, State]:
    end = s.queue_length(q)
    return conjunction(s.phase == RUNNING, s.seen_length(q) > end), replace(
        s, seen_length=updated(s.seen_length, q, end), committed=updated(s.committed, q, end)
    )


def commit_offset(_scope: Scope, s: State, q: Term) -> tuple[Term, State]:
    return conjunction(s.phase == RUNNING, s.committed(q) < s.seen_length(q)), replace(
        s, committed=updated(s.committed, q, s.seen_length(q))
    )


def persist_offsets(scope: Scope, s: State) -> tuple[Term, State]:
    same = scope.every(QUEUE, lambda q: s.persisted(q) == s.committed(q))
    return conjunction(s.phase == RUNNING, negation(same)), replace(s, persisted=s.committed)


# Ends of a broker's life


def _lose_memory(s: State) -> State:
    return replace(
        s,
        phase=DOWN,
        dispatched=0,
        next_offset=constant(0),
        committed=s.persisted,
        answer=lambda m: choose(s.answer(m) == WAITING, UNKNOWN, s.answer(m)),
    )


def shutdown(scope: Scope, s: State) -> tuple[Term, State]:
    guard = conjunction(
        s.phase == RUNNING,
        scope.every(MESSAGE, lambda m: s.answer(m) != WAITING),
        s.flushed == s.log_length,
        s.dispatched == s.log_length,
        s.checkpoint == s.log_length,
        scope.every(QUEUE, lambda q: s.queue_flushed(q) == s.queue_length(q)),
        scope.every(QUEUE, lambda q: s.persisted(q) == s.committed(q)),
    )
    return guard, replace(s, phase=DOWN, abort=False, dispatched=0, next_offset=constant(0))


def process_crash(_scope: Scope, s: State) -> tuple[Term, State]:
    return s.phase != DOWN, _lose_memory(s)


def os_crash(scope: Scope, s: State, n: Term, torn: Term, kept: Function) -> tuple[Term, State]:
    guard = conjunction(
        s.flushed <= n,
        n <= s.log_length,
        implies(torn, n < s.log_length),
        scope.every(
            QUEUE, lambda q: conjunction(s.queue_flushed(q) <= kept(q), kept(q) <= s.queue_length(q))
        ),
    )

    def tear(function: Function, value: Term) -> Function:
        return lambda i: choose(conjunction(torn, i == n + 1), value, function(i))

    return guard, replace(
        _lose_memory(s),
        log_length=choose(torn, n + 1, n),
        log_message=tear(s.log_message, TORN),
        log_queue=tear(s.log_queue, TORN),
        log_offset=tear(s.log_offset, 0),
        queue_length=kept,
        system_crashes=s.system_crashes + 1,
    )


def power_loss(scope: Scope, s: State) -> tuple[Term, State]:
    _, after = os_crash(scope, s, s.flushed, False, s.queue_flushed)
    return True, after


# Recovery


def _torn(s: State) -> Term:
    return conjunction(s.log_length > 0, s.log_message(s.log_length) == TORN)


def whole_length(s: State) -> Term:
    """Len(WholeLog): only the last record can be torn."""
    return choose(_torn(s), s.log_length - 1, s.log_length)


def _last_queued(s: State, q: Term) -> Term:
    return choose(s.queue_length(q) == 0, 0, s.queue(q, s.queue_length(q)))


def recover_log(scope: Scope, s: State, last: Term) -> tuple[Term, State]:
    """RecoverLog: `last` is the queue whose last entry points furthest.

    It exists, because queues are finitely many.
    """
    length = whole_length(s)
    furthest = scope.every(QUEUE, lambda q: _last_queued(s, q) <= _last_queued(s, last))
    from_position = choose(s.abort, s.checkpoint, _last_queued(s, last))
    return conjunction(s.phase == DOWN, furthest), replace(
        s, phase=LOG_RECOVERED, log_length=length, flushed=length, dispatched=minimum(from_position, length)
    )


def truncate_queues(scope: Scope, s: State, cut: Function) -> tuple[Term, State]:
    return conjunction(s.phase == LOG_RECOVERED, _is_cut(scope, s, cut, s.log_length)), replace(
        s,
        phase=DISPATCHING,
        queue_length=cut,
        queue_flushed=lambda q: minimum(s.queue_flushed(q), cut(q)),
    )


def redispatch(_scope: Scope, s: State) -> tuple[Term, State]:
    p = s.dispatched + 1
    q = s.log_queue(p)
    missing = p > _last_queued(s, q)
    queued = _queued(s, q, p)
    return conjunction(s.phase == DISPATCHING, s.dispatched < s.log_length), replace(
        s,
        dispatched=p,
        queue_length=lambda r: choose(missing, queued.queue_length(r), s.queue_length(r)),
        queue=lambda r, i: choose(missing, queued.queue(r, i), s.queue(r, i)),
    )


def start(_scope: Scope, s: State) -> tuple[Term, State]:
    guard = conjunction(s.phase == DISPATCHING, s.dispatched == s.log_length)
    return guard, _appended_is_log(
        replace(s, phase=RUNNING, abort=True, next_offset=s.queue_length, count=s.queue_length)
    )


def increasing_has_a_cut() -> Term:
    """Lemma: an increasing sequence has a cut, by induction on the length.

    Empty sequences have one, and one more element keeps it or moves it.
    """
    sequence = symbol("sequence", INDEX, (INDEX,))
    length, cut, limit = (symbol(name, LENGTH) for name in ("length", "cut", "limit"))

    def is_cut(c: Term, n: Term) -> Term:
        low = implies(c > 0, sequence(c) <= limit)
        return conjunction(c >= 0, c <= n, low, implies(c < n, sequence(c + 1) > limit))

    increasing = UNBOUNDED.every(
        INDEX, INDEX, lambda i, j: implies(conjunction(i < j, j <= length + 1), sequence(i) < sequence(j))
    )
    longer = disjunction(is_cut(cut, length + 1), is_cut(length + 1, length + 1))
    return conjunction(
        is_cut(0, 0), implies(conjunction(length >= 0, increasing, is_cut(cut, length)), longer)
    )


# The inductive invariant. "Appended" is the log before the last crash; the log is a prefix of it.


def positions_in_order(_scope: Scope, s: State) -> Term:
    return conjunction(
        s.flushed >= 0,
        s.flushed <= whole_length(s),
        whole_length(s) <= s.appended_length,
        s.checkpoint >= 0,
        s.checkpoint <= s.flushed,
        s.dispatched >= 0,
        s.dispatched <= whole_length(s),
        s.system_crashes >= 0,
    )


def log_is_appended(scope: Scope, s: State) -> Term:
    return scope.every(
        INDEX,
        lambda i: implies(
            i <= whole_length(s),
            s.log_message(i) == s.appended_message(i),
            s.log_queue(i) == s.appended_queue(i),
            s.log_offset(i) == s.appended_offset(i),
        ),
    )


def records_are_records(scope: Scope, s: State) -> Term:
    return scope.every(
        INDEX,
        lambda i: implies(i <= s.appended_length, s.appended_message(i) >= 0, s.appended_queue(i) >= 0),
    )


def torn_only_after_a_crash(_scope: Scope, s: State) -> Term:
    return implies(s.phase != DOWN, negation(_torn(s)))


def log_is_whole_while_it_serves(_scope: Scope, s: State) -> Term:
    """The log has everything that was appended; before a system crash it always has."""
    return conjunction(
        implies(s.phase == RUNNING, s.log_length == s.appended_length),
        implies(s.system_crashes == 0, s.log_length == s.appended_length, negation(_torn(s))),
        implies(disjunction(s.phase == LOG_RECOVERED, s.phase == DISPATCHING), s.flushed == s.log_length),
    )


def appended_is_numbered(scope: Scope, s: State) -> Term:
    """The offsets of a queue are 0 to count - 1, once each, at increasing places."""
    return conjunction(
        scope.every(
            INDEX,
            lambda i: implies(
                i <= s.appended_length,
                s.appended_offset(i) >= 0,
                s.appended_offset(i) < s.count(s.appended_queue(i)),
                s.place(s.appended_queue(i), s.appended_offset(i)) == i,
            ),
        ),
        scope.every(
            QUEUE,
            LENGTH,
            lambda q, k: implies(
                k < s.count(q),
                s.place(q, k) >= 1,
                s.place(q, k) <= s.appended_length,
                s.appended_queue(s.place(q, k)) == q,
                s.appended_offset(s.place(q, k)) == k,
            ),
        ),
        scope.every(QUEUE, lambda q: s.count(q) >= 0),
        scope.every(
            QUEUE,
            LENGTH,
            LENGTH,
            lambda q, j, k: implies(conjunction(j < k, k < s.count(q)), s.place(q, j) < s.place(q, k)),
        ),
    )


def next_offset_counts(scope: Scope, s: State) -> Term:
    return implies(s.phase == RUNNING, scope.every(QUEUE, lambda q: s.next_offset(q) == s.count(q)))


def entries_are_places(scope: Scope, s: State) -> Term:
    """The i-th entry of a queue is the position at which its i-th record was appended."""
    return conjunction(
        scope.every(
            QUEUE,
            lambda q: conjunction(
                s.queue_length(q) <= s.count(q),
                s.queue_flushed(q) >= 0,
                s.queue_flushed(q) <= s.queue_length(q),
            ),
        ),
        scope.every(
            QUEUE, INDEX, lambda q, i: implies(i <= s.queue_length(q), s.queue(q, i) == s.place(q, i - 1))
        ),
    )


def entries_point_no_further(scope: Scope, s: State) -> Term:
    """A truncated queue's entries end with the log, a serving one's with the dispatched records."""
    limit = choose(s.phase == RUNNING, s.dispatched, s.log_length)
    return implies(
        disjunction(s.phase == RUNNING, s.phase == DISPATCHING),
        scope.every(QUEUE, INDEX, lambda q, i: implies(i <= s.queue_length(q), s.queue(q, i) <= limit)),
    )


def _has_entry(s: State, i: Term, length: Function) -> Term:
    q, offset = s.appended_queue(i), s.appended_offset(i)
    return conjunction(offset < length(q), s.queue(q, offset + 1) == i)


def dispatched_have_entries(scope: Scope, s: State) -> Term:
    return scope.every(INDEX, lambda i: implies(i <= s.dispatched, _has_entry(s, i, s.queue_length)))


def next_entry_is_not_dispatched(scope: Scope, s: State) -> Term:
    """This follows from the previous clause. It is stated so that Z3 considers this term."""
    return scope.every(
        QUEUE,
        lambda q: implies(s.queue_length(q) < s.count(q), s.place(q, s.queue_length(q)) > s.dispatched),
    )


def checkpointed_have_durable_entries(scope: Scope, s: State) -> Term:
    return scope.every(INDEX, lambda i: implies(i <= s.checkpoint, _has_entry(s, i, s.queue_flushed)))


def clean_exit_left_all_durable(scope: Scope, s: State) -> Term:
    return implies(
        negation(s.abort),
        s.phase != RUNNING,
        s.checkpoint == s.appended_length,
        scope.every(QUEUE, lambda q: s.queue_flushed(q) == s.count(q)),
    )


def unsent_is_nowhere(scope: Scope, s: State) -> Term:
    return scope.every(
        INDEX, lambda i: implies(i <= s.appended_length, s.answer(s.appended_message(i)) != UNSENT)
    )


def messages_are_where_they_were_appended(scope: Scope, s: State) -> Term:
    """Each message is at the position where it was appended, so no message is in the log twice."""
    return scope.every(
        INDEX, lambda i: implies(i <= s.appended_length, s.position(s.appended_message(i)) == i)
    )


def _is_at(s: State, m: Term, limit: Term) -> Term:
    return conjunction(s.position(m) >= 1, s.position(m) <= limit, s.appended_message(s.position(m)) == m)


def waiting_is_in_the_log(scope: Scope, s: State) -> Term:
    return scope.every(
        MESSAGE,
        lambda m: implies(s.answer(m) == WAITING, s.phase == RUNNING, _is_at(s, m, s.log_length)),
    )


def promised(s: State) -> Term:
    return disjunction(s.sync, s.system_crashes == 0)


def _safe(s: State) -> Term:
    """The part of the log that no crash removes.

    Under SYNC_FLUSH it is the durable part, otherwise the whole log while the system has not crashed.
    """
    return choose(s.sync, s.flushed, s.log_length)


def acked_is_safe(scope: Scope, s: State) -> Term:
    return implies(
        promised(s), scope.every(MESSAGE, lambda m: implies(s.answer(m) == SEND_OK, _is_at(s, m, _safe(s))))
    )


def dispatched_is_safe(_scope: Scope, s: State) -> Term:
    return implies(promised(s), s.dispatched <= _safe(s))


def seen_is_safe(scope: Scope, s: State) -> Term:
    return implies(
        promised(s),
        scope.every(
            QUEUE,
            INDEX,
            lambda q, i: implies(
                i <= s.seen_length(q),
                i <= s.count(q),
                s.place(q, i - 1) <= _safe(s),
                s.seen(q, i) == s.appended_message(s.place(q, i - 1)),
            ),
            when=lambda q, i: ((s.seen(q, i),),),
        ),
    )


def seen_was_sent(scope: Scope, s: State) -> Term:
    return conjunction(
        scope.every(QUEUE, lambda q: s.seen_length(q) >= 0),
        scope.every(
            QUEUE,
            INDEX,
            lambda q, i: implies(i <= s.seen_length(q), s.seen(q, i) >= 0, s.answer(s.seen(q, i)) != UNSENT),
        ),
    )


CLAUSES: Final = {
    clause.__name__: clause
    for clause in (
        positions_in_order,
        log_is_appended,
        records_are_records,
        torn_only_after_a_crash,
        log_is_whole_while_it_serves,
        appended_is_numbered,
        next_offset_counts,
        entries_are_places,
        entries_point_no_further,
        dispatched_have_entries,
        next_entry_is_not_dispatched,
        checkpointed_have_durable_entries,
        clean_exit_left_all_durable,
        unsent_is_nowhere,
        messages_are_where_they_were_appended,
        waiting_is_in_the_log,
        acked_is_safe,
        dispatched_is_safe,
        seen_is_safe,
        seen_was_sent,
    )
}


# Safety, as the module states it


def _in_log(scope: Scope, s: State, m: Term, length: Term) -> Term:
    return scope.some(INDEX, lambda i: conjunction(i <= length, s.log_message(i) == m))


def _every_acked(scope: Scope, s: State, body: Callable[[Term], Term]) -> Term:
    return scope.every(MESSAGE, lambda m: implies(s.answer(m) == SEND_OK, body(m)))


def sync_acked_durable(scope: Scope, s: State) -> Term:
    return implies(s.sync, _every_acked(scope, s, lambda m: _in_log(scope, s, m, s.flushed)))


def async_acked_survives_process_crash(scope: Scope, s: State) -> Term:
    return implies(
        conjunction(negation(s.sync), s.system_crashes == 0),
        _every_acked(scope, s, lambda m: _in_log(scope, s, m, s.log_length)),
    )


def queue_points_into_log(scope: Scope, s: State) -> Term:
    return implies(
        s.phase == RUNNING,
        scope.every(
            QUEUE,
            INDEX,
            lambda q, i: implies(
                i <= s.queue_length(q),
                s.queue(q, i) >= 1,
                s.queue(q, i) <= s.log_length,
                s.log_queue(s.queue(q, i)) == q,
                s.log_offset(s.queue(q, i)) == i - 1,
            ),
        ),
    )


def _place_numbers_the_log(scope: Scope, s: State, count: Function) -> Term:
    """QueueRecords(q) is the records at place[q][0], ..., place[q][count[q] - 1], with these offsets."""
    return conjunction(
        scope.every(
            INDEX,
            lambda i: implies(
                i <= s.log_length,
                s.log_offset(i) >= 0,
                s.log_offset(i) < count(s.log_queue(i)),
                s.place(s.log_queue(i), s.log_offset(i)) == i,
            ),
        ),
        scope.every(
            QUEUE,
            LENGTH,
            lambda q, k: implies(
                k < count(q),
                s.place(q, k) >= 1,
                s.place(q, k) <= s.log_length,
                s.log_queue(s.place(q, k)) == q,
                s.log_offset(s.place(q, k)) == k,
            ),
        ),
        scope.every(
            QUEUE,
            LENGTH,
            LENGTH,
            lambda q, j, k: implies(conjunction(j < k, k < count(q)), s.place(q, j) < s.place(q, k)),
        ),
    )


def queue_offsets_dense(scope: Scope, s: State) -> Term:
    return implies(s.phase == RUNNING, _place_numbers_the_log(scope, s, s.next_offset))


def recovered_prefix(scope: Scope, s: State) -> Term:
    length = choose(s.phase == DOWN, whole_length(s), s.log_length)
    return conjunction(
        length <= s.appended_length,
        scope.every(
            INDEX,
            lambda i: implies(
                i <= length,
                s.log_message(i) == s.appended_message(i),
                s.log_queue(i) == s.appended_queue(i),
                s.log_offset(i) == s.appended_offset(i),
            ),
        ),
    )


def index_rebuildable(scope: Scope, s: State) -> Term:
    """A queue is the increasing sequence of exactly its own positions up to `dispatched`."""
    return implies(
        s.phase == RUNNING,
        scope.every(
            QUEUE,
            INDEX,
            lambda q, i: implies(
                i <= s.queue_length(q), s.queue(q, i) <= s.dispatched, s.log_queue(s.queue(q, i)) == q
            ),
        ),
        scope.every(
            QUEUE,
            INDEX,
            INDEX,
            lambda q, i, j: implies(
                conjunction(i < j, j <= s.queue_length(q)), s.queue(q, i) < s.queue(q, j)
            ),
        ),
        scope.every(
            INDEX,
            lambda p: implies(
                p <= s.dispatched,
                scope.some(
                    INDEX,
                    lambda i: conjunction(
                        i <= s.queue_length(s.log_queue(p)), s.queue(s.log_queue(p), i) == p
                    ),
                ),
            ),
        ),
    )


def no_acked_lost(scope: Scope, s: State) -> Term:
    def is_there(m: Term) -> Term:
        return scope.some(
            INDEX,
            lambda i: conjunction(
                i <= s.log_length,
                s.log_message(i) == m,
                implies(
                    s.seen_length(s.log_queue(i)) > s.log_offset(i),
                    s.seen(s.log_queue(i), s.log_offset(i) + 1) == m,
                ),
            ),
        )

    return implies(conjunction(s.phase == RUNNING, promised(s)), _every_acked(scope, s, is_there))


def no_phantom(scope: Scope, s: State) -> Term:
    return scope.every(
        QUEUE,
        INDEX,
        lambda q, i: implies(i <= s.seen_length(q), s.seen(q, i) >= 0, s.answer(s.seen(q, i)) != UNSENT),
    )


def queue_order(scope: Scope, s: State) -> Term:
    return implies(
        conjunction(s.phase == RUNNING, promised(s)),
        _place_numbers_the_log(scope, s, s.count),
        scope.every(
            QUEUE,
            INDEX,
            lambda q, i: implies(
                i <= s.seen_length(q), i <= s.count(q), s.seen(q, i) == s.log_message(s.place(q, i - 1))
            ),
        ),
    )


def offset_monotone(scope: Scope, before: State, action: str, after: State) -> Term:
    if action == "CorrectOffset":
        return True
    return implies(
        conjunction(before.phase == RUNNING, after.phase == RUNNING),
        scope.every(QUEUE, lambda q: after.committed(q) >= before.committed(q)),
    )


# The reference's states in terms of the proof


def from_reference(config: flush.Config, state: flush.State) -> dict[str, Any]:
    """Return the shape of a reference state; auxiliary variables are computed from their meaning."""
    queues, messages = config.queues, config.messages

    def log(name: str, records: tuple[flush.Record, ...]) -> dict[str, Any]:
        return {
            f"{name}_length": len(records),
            f"{name}_message": tuple(_number(messages, r.message) for r in records),
            f"{name}_queue": tuple(_number(queues, r.queue) for r in records),
            f"{name}_offset": tuple(r.offset for r in records),
        }

    places = tuple(
        tuple(i for i, record in enumerate(state.appended, start=1) if record.queue == q) for q in queues
    )
    positions = {record.message: i for i, record in enumerate(state.appended, start=1)}
    return {
        "sync": state.mode == flush.SYNC_FLUSH,
        "phase": PHASE.names.index(state.phase),
        **log("log", state.log),
        "flushed": state.flushed,
        "queue_length": tuple(map(len, state.queue)),
        "queue": state.queue,
        "queue_flushed": state.queue_flushed,
        "checkpoint": state.checkpoint,
        "abort": state.abort,
        "persisted": state.persisted,
        "dispatched": state.dispatched,
        "next_offset": state.next_offset,
        "committed": state.committed,
        "answer": tuple(map(ANSWER.names.index, state.answer)),
        "seen_length": tuple(map(len, state.seen)),
        "seen": tuple(tuple(_number(messages, m) for m in seen) for seen in state.seen),
        **log("appended", state.appended),
        "system_crashes": state.system_crashes,
        "place": places,
        "count": tuple(map(len, places)),
        "position": tuple(positions.get(m, 0) for m in messages),
    }


def _number(names: tuple[str, ...], name: str) -> int:
    return TORN if name == flush.TORN.message else names.index(name)


PROOF: Final = Proof(
    name="Flush",
    module="Flush",
    state=State,
    initial=initial,
    actions=(
        Action("AppendRecord", append_record, (MESSAGE, QUEUE)),
        Action("FlushLog", flush_log, (LENGTH,)),
        Action("AnswerOk", answer_ok, (MESSAGE,)),
        Action("AnswerTimeout", answer_timeout, (MESSAGE,)),
        Action("Dispatch", dispatch),
        Action("FlushQueues", flush_queues, (LENGTH, BY_QUEUE)),
        Action("WriteCheckpoint", write_checkpoint, (LENGTH,)),
        Action("Deliver", deliver, (QUEUE,)),
        Action("CorrectOffset", correct_offset, (QUEUE,)),
        Action("CommitOffset", commit_offset, (QUEUE,)),
        Action("PersistOffsets", persist_offsets),
        Action("Shutdown", shutdown),
        Action("ProcessCrash", process_crash),
        Action("OsCrash", os_crash, (LENGTH, FLAG, BY_QUEUE)),
        Action("PowerLoss", power_loss),
        Action("RecoverLog", recover_log, (QUEUE,)),
        Action("TruncateQueues", truncate_queues, (BY_QUEUE,)),
        Action("Redispatch", redispatch),
        Action("Start", start),
    ),
    clauses=CLAUSES,
    safety={
        "SyncAckedDurable": sync_acked_durable,
        "AsyncAckedSurvivesProcessCrash": async_acked_survives_process_crash,
        "QueuePointsIntoLog": queue_points_into_log,
        "QueueOffsetsDense": queue_offsets_dense,
        "RecoveredPrefix": recovered_prefix,
        "IndexRebuildable": index_rebuildable,
        "NoAckedLost": no_acked_lost,
        "NoPhantom": no_phantom,
        "QueueOrder": queue_order,
    },
    step_safety={"OffsetMonotone": offset_monotone},
    unbounded=("messages", "queues", "records of the log", "offsets", "crashes"),
    assumptions=(
        "there is a queue whose last entry points furthest: queues are finitely many",
        "the cut of an increasing sequence stands for SelectSeq over it; that there is one is a lemma",
        "a set of positions has one increasing enumeration: SelectSeq is stated so",
        "crashes.process is left out: no action and no invariant reads it",
    ),
    scope=Scope({"message": 2, "queue": 2, "length": 3, "index": 2}),
    lemmas={"an increasing sequence has a cut": increasing_has_a_cut},
)
