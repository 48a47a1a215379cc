"""Broken variants of transactions; spec/tla/mutants explains each bug under the same name."""

from functools import partial
from typing import Final

from mqproof.reference import transactions
from mqproof.reference.mutants.mutant import Mutant
from mqproof.reference.transactions import Config, Record, Request, State, latest


def _final_is_no_evidence(config: Config, state: State, tx: str, half: int, end: str) -> State | None:
    others = tuple(record for record in state.log if record.kind != "final")
    if not transactions.end_transaction(config, state._replace(log=others), tx, half, end):
        return None
    log = (*state.log, Record("final", frozenset({tx}), 0)) if end == "commit" else state.log
    return state._replace(log=log, pending=state.pending | {tx})


def _key_not_compared(config: Config, state: State, tx: str, half: int, end: str) -> State | None:
    queue = transactions.halves(state.log)
    if half > len(queue) or Request(tx, half, end) not in state.requests:
        return None
    (named,) = queue[half - 1].of
    believed = state._replace(requests=frozenset({Request(named, half, end)}))
    after = transactions.end_transaction(config, believed, named, half, end)
    return after and after._replace(requests=state.requests)


def _half_dispatched(config: Config, state: State, tx: str) -> State | None:
    after = transactions.send(config, state, tx)
    return after and after._replace(log=(*after.log, Record("final", frozenset({tx}), 0)))


def _operation_before_final(config: Config, state: State, tx: str, half: int, end: str) -> State | None:
    after = transactions.end_transaction(config, state, tx, half, end)
    return after and after._replace(log=state.log)


def _commit_after_rollback(_config: Config, state: State, tx: str, half: int, end: str) -> State | None:
    known = Request(tx, half, end) in state.requests and transactions.names(state, tx, half)
    if (
        not state.ready
        or not known
        or any(transactions.has(state.log, k, tx) for k in ("final", "discarded"))
    ):
        return None
    log = (*state.log, Record("final", frozenset({tx}), 0)) if end == "commit" else state.log
    return state._replace(log=log, pending=state.pending | {tx})


def _progress_ahead_of_log(config: Config, state: State) -> State | None:
    after = transactions.advance(config, state._replace(safe=len(state.log)))
    return after and after._replace(safe=state.safe)


def _acknowledged_before_safe(config: Config, state: State, tx: str) -> State | None:
    after = transactions.acknowledge(config, state._replace(safe=len(state.log)), tx)
    return after and after._replace(safe=state.safe)


def _discarded_before_read(config: Config, state: State, tx: str) -> State | None:
    if state.ready:
        return transactions.discard(config, state, tx)
    if latest(state.log, tx) <= state.progress or tx in state.young:
        return None
    if transactions.times(state, tx) < config.checks_max:
        return None
    log = (*state.log, Record("discarded", frozenset({tx}), 0))
    return state._replace(log=log, pending=state.pending | {tx})


def _checked_in_immunity(config: Config, state: State, tx: str) -> State | None:
    after = transactions.check(config, state._replace(young=frozenset()), tx)
    return after and after._replace(young=state.young)


def _last_check_repeated(_config: Config, _state: State, _tx: str) -> State | None:
    return None


def _copies_not_passed(config: Config, state: State) -> State | None:
    queue = transactions.halves(state.log)
    stuck = state.progress < len(queue) and queue[state.progress].times > 0
    return None if stuck else transactions.advance(config, state)


_one = partial(Mutant, transactions.MODEL, config=Config(checks_max=0))
_checked = partial(Mutant, transactions.MODEL, config=Config())

MUTANTS: Final[tuple[Mutant, ...]] = (
    _one("FinalIsNoEvidence", invariant="CommittedOnce", action="End", apply=_final_is_no_evidence),
    Mutant(
        transactions.MODEL,
        "KeyNotCompared",
        invariant="TransactionAtomic",
        action="End",
        apply=_key_not_compared,
        config=Config(txs=("t1", "t2"), checks_max=0),
    ),
    _one("HalfDispatched", invariant="TransactionAtomic", action="Send", apply=_half_dispatched),
    _one("OperationBeforeFinal", invariant="TransactionAtomic", action="End", apply=_operation_before_final),
    Mutant(
        transactions.MODEL,
        "CommitAfterRollback",
        invariant="EndsOnce",
        action="End",
        apply=_commit_after_rollback,
        config=Config(inconsistent=("t1",), checks_max=0),
    ),
    _one("ProgressAheadOfLog", invariant="HalfKept", action="Advance", apply=_progress_ahead_of_log),
    _one(
        "AcknowledgedBeforeSafe", invariant="HalfKept", action="Acknowledge", apply=_acknowledged_before_safe
    ),
    _one("DiscardedBeforeRead", invariant="EndsOnce", action="Discard", apply=_discarded_before_read),
    Mutant(
        transactions.MODEL,
        "CheckedInImmunity",
        invariant="CheckedWhileOpen",
        action="Check",
        apply=_checked_in_immunity,
        config=Config(checks_max=1),
    ),
    _checked("LastCheckRepeated", invariant="TransactionEnds", action="Discard", apply=_last_check_repeated),
    _checked("CopiesNotPassed", invariant="HalfQueueAdvances", action="Advance", apply=_copies_not_passed),
)
