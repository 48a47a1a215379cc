"""The named invariants of transactions; each one is a pure function of a run.

The verdict is unknown, never held, if nothing was observed that could show a violation. Names and ids are
those of spec/invariants.toml. A rollback that a crash may have lost is not judged.
"""

from collections import Counter
from dataclasses import dataclass, field
from functools import partial

from mqproof.conformance.engine.broker_faults import ENDS, InjectFault
from mqproof.conformance.engine.finding import Finding, Tally
from mqproof.conformance.engine.stepped_run import Checkers, Run
from mqproof.conformance.suites.transactions.steps import Checked, Operation, Read, Report, SendHalf
from mqproof.conformance.suites.transactions.target import IMMUNITY_S, Answer, End

_KEPT_S = 30.0
"""A younger half message is certainly not discarded."""
_WRITTEN_S = 8.0
"""The operation of a rollback is certainly written and flushed after this time."""
_CLOCK_S = 0.1


@dataclass(slots=True)
class _Known:
    """What the run shows about one transaction."""

    sent_s: float
    requested: set[End] = field(default_factory=set)
    first: Report | None = None
    """The first request."""
    rolled_back_s: float | None = None
    """When the first request, a rollback, was answered; None again if a crash may have lost it."""
    checked_s: float | None = None

    @property
    def was_committed(self) -> bool:
        """Whether its first request was a commit that was answered, in time."""
        first = self.first
        if first is None or first.end is not End.COMMIT or first.answer is not Answer.OK:
            return False
        return self.in_time(first.at_s)

    def in_time(self, at_s: float) -> bool:
        return at_s - self.sent_s < _KEPT_S


def _follow(known: dict[str, _Known], operation: Operation) -> None:
    """Add what the operation shows."""
    match operation:
        case SendHalf(msg_id, at_s):
            known[msg_id] = _Known(at_s)
        case Report(msg_id, end, _, answer, at_s):
            one = known[msg_id]
            one.requested.add(end)
            if one.first is None:
                one.first = operation
                if end is End.ROLLBACK and answer is Answer.OK:
                    one.rolled_back_s = at_s
        case InjectFault(fault, over_s) if fault in ENDS:
            for one in known.values():
                if one.rolled_back_s is not None and over_s - one.rolled_back_s < _WRITTEN_S:
                    one.rolled_back_s = None
        case Checked(msg_ids, at_s):
            for msg_id in msg_ids:
                if msg_id in known:
                    known[msg_id].checked_s = at_s
        case _:
            pass


def transaction_atomic(run: Run[Operation]) -> Finding:
    """DELIV-9 TransactionAtomic: exactly the committed messages are visible."""
    tally, known = Tally(), dict[str, _Known]()
    for step, operation in run.numbered():
        _follow(known, operation)
        if isinstance(operation, Read):
            for msg_id, one in known.items():
                tally.looked += 1
                seen = msg_id in operation.msg_ids
                if seen and End.COMMIT not in one.requested:
                    tally.found(f"step {step}: {msg_id} is visible, and no commit was sent")
                if not seen and one.was_committed:
                    tally.found(f"step {step}: {msg_id} is not visible, and its commit was answered")
    return tally.finding("messages")


def committed_once(run: Run[Operation]) -> Finding:
    """TXN-1 CommittedOnce: no message is visible twice."""
    tally = Tally()
    for step, operation in run.numbered():
        if isinstance(operation, Read):
            for msg_id, count in Counter(operation.msg_ids).items():
                tally.looked += 1
                if count > 1:
                    tally.found(f"step {step}: {msg_id} is visible {count} times")
    return tally.finding("messages")


def ends_once(run: Run[Operation]) -> Finding:
    """TXN-2 EndsOnce: a rolled-back message is not visible, and no ended transaction is checked again."""
    tally, known = Tally(), dict[str, _Known]()
    for step, operation in run.numbered():
        match operation:
            case Read(msg_ids):
                for msg_id, one in known.items():
                    tally.looked += 1
                    if msg_id in msg_ids and one.rolled_back_s is not None:
                        tally.found(f"step {step}: {msg_id} is visible after its rollback")
            case Checked(msg_ids, at_s):
                for msg_id in set(msg_ids) & known.keys():
                    tally.looked += 1
                    if known[msg_id].was_committed or known[msg_id].rolled_back_s is not None:
                        tally.found(f"step {step}: {msg_id} is checked after its end, by {at_s:.3f} s")
        _follow(known, operation)
    return tally.finding("messages")


def half_kept(run: Run[Operation]) -> Finding:
    """TXN-3 HalfKept: the first end of an acknowledged half message is accepted, also after a crash."""
    tally, known = Tally(), dict[str, _Known]()
    for step, operation in run.numbered():
        if isinstance(operation, Report):
            one = known[operation.msg_id]
            if one.first is None and one.in_time(operation.at_s):
                tally.looked += 1
                if operation.answer is Answer.REFUSED:
                    tally.found(f"step {step}: the first {operation.end} of {operation.msg_id} is refused")
        _follow(known, operation)
    return tally.finding("ends")


def checked_while_open(run: Run[Operation]) -> Finding:
    """TXN-4 CheckedWhileOpen: only sent half messages are checked, and not in their immunity time."""
    tally, known = Tally(), dict[str, _Known]()
    for step, operation in run.numbered():
        if isinstance(operation, Checked):
            for msg_id in operation.msg_ids:
                tally.looked += 1
                if msg_id not in known:
                    tally.found(f"step {step}: {msg_id} is checked, and was never sent")
                elif operation.at_s - known[msg_id].sent_s < IMMUNITY_S - _CLOCK_S:
                    tally.found(f"step {step}: {msg_id} is checked within its immunity time")
        _follow(known, operation)
    return tally.finding("checks")


def transaction_ends(round_s: float, run: Run[Operation]) -> Finding:
    """TXN-5 TransactionEnds: a transaction without an end is checked, in time and repeatedly.

    A run is finite, so this is the part of the liveness that a time limit can show.
    """
    tally, known = Tally(), dict[str, _Known]()
    limit_s, served_s = IMMUNITY_S + 2 * round_s, 0.0
    for step, operation in run.numbered():
        _follow(known, operation)
        if isinstance(operation, InjectFault):
            served_s = operation.over_s
        if isinstance(operation, Read):
            for msg_id, one in known.items():
                if one.first is None and operation.at_s - max(one.sent_s, served_s) > limit_s:
                    tally.looked += 1
                    if one.checked_s is None:
                        tally.found(f"step {step}: {msg_id} is open for long, and was never checked")
    return tally.finding("transactions")


def checkers(round_s: float | None) -> Checkers[Operation]:
    """Return the checkers; those of checks only if the suite can wait for checks of rounds of that length."""
    found: dict[str, object] = {
        "DELIV-9": transaction_atomic,
        "TXN-1": committed_once,
        "TXN-2": ends_once,
        "TXN-3": half_kept,
    }
    if round_s is None:
        return found  # type: ignore[return-value]
    return {**found, "TXN-4": checked_while_open, "TXN-5": partial(transaction_ends, round_s)}  # type: ignore[dict-item]
