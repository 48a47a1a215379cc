"""Half messages and the ends of their transactions, action for action as in spec/tla/Transactions.tla.

The order is the same: state, what a log says, the producer, the broker, safety. Transactions have names; the
state of their producers is in a tuple, in the order of the configuration.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any, Final, NamedTuple

from mqproof.reference.liveness import FIRST, Obligations, leads_to, recurs, strong, weak
from mqproof.reference.model import Action, Model, Parameters, by_name, each, named, once
from mqproof.reference.tlc_terms import configuration, operators
from mqproof.reference.updates import with_item

ENDS: Final = ("commit", "rollback")


@dataclass(frozen=True)
class Config:
    txs: tuple[str, ...] = ("t1",)
    inconsistent: tuple[str, ...] = ()
    """The transactions whose producers do not agree: a check may be answered with either end."""
    checks_max: int = 1
    """The broker discards a message after this many checks."""


# State


class Record(NamedTuple):
    """One record of the broker's log."""

    kind: str  # "half", "final", "discarded" or "op"
    of: frozenset[str]  # the transactions that it belongs to
    times: int  # of a half message: how often it was checked


Log = tuple[Record, ...]


class Request(NamedTuple):
    """An END_TRANSACTION request in the network."""

    tx: str
    half: int  # the place of a half message or copy in the half queue, from 1
    end: str


class State(NamedTuple):
    """The state of the model. A named tuple, because the explorer copies and hashes states most often."""

    log: Log = ()
    safe: int = 0  # the length of the prefix that no crash and no takeover removes
    ready: bool = True  # whether the broker has read its log since it started
    pending: frozenset[str] = frozenset()  # ended, and the operation record is not written yet
    progress: int = 0  # the number of half messages that the broker does not look at any more
    young: frozenset[str] = frozenset()  # the transactions whose immunity time is not over
    phase: tuple[str, ...] = ()  # by transaction: "new", "sent", "running", "commit", "rollback"
    requests: frozenset[Request] = frozenset()


def initial(config: Config) -> tuple[State, ...]:
    """Init: the one initial state."""
    return (State(young=frozenset(config.txs), phase=("new",) * len(config.txs)),)


# What a log says


def has(log: Log, kind: str, tx: str) -> bool:
    """Has: whether the log has a record of this kind for the transaction."""
    return any(record.kind == kind and tx in record.of for record in log)


def halves(log: Log) -> Log:
    """Halves: the half queue, with half messages and their copies."""
    return tuple(record for record in log if record.kind == "half")


def latest(log: Log, tx: str) -> int:
    """Latest: the number of the latest copy of a transaction in the half queue; 0 if there is none."""
    return max((i for i, half in enumerate(halves(log), 1) if tx in half.of), default=0)


def evidence(log: Log, tx: str) -> bool:
    """Evidence: the log shows the end, by the final message itself or by an operation record."""
    return any(record.kind != "half" and tx in record.of for record in log)


def ended(state: State, tx: str) -> bool:
    """Ended: the broker knows that the transaction has ended."""
    return tx in state.pending or evidence(state.log, tx)


def is_open(state: State, tx: str) -> bool:
    """Open: the broker has to end the transaction."""
    return latest(state.log, tx) > state.progress and not ended(state, tx)


def _append(state: State, kind: str, of: Iterable[str], times: int = 0) -> State:
    return state._replace(log=(*state.log, Record(kind, frozenset(of), times)))


def _phase(config: Config, state: State, tx: str) -> str:
    return state.phase[config.txs.index(tx)]


def _enter(config: Config, state: State, tx: str, phase: str) -> State:
    return state._replace(phase=with_item(state.phase, config.txs.index(tx), phase))


# The producer


def send(config: Config, state: State, tx: str) -> State | None:
    """Send: the half message is appended."""
    if not state.ready or _phase(config, state, tx) != "new":
        return None
    return _append(_enter(config, state, tx, "sent"), "half", (tx,))


def acknowledge(config: Config, state: State, tx: str) -> State | None:
    """Acknowledge: SEND_OK is received, and the local transaction begins."""
    if _phase(config, state, tx) != "sent" or latest(state.log[: state.safe], tx) == 0:
        return None
    return _enter(config, state, tx, "running")


def commit(config: Config, state: State, tx: str) -> State | None:
    """Commit: the local transaction is committed."""
    return _enter(config, state, tx, "commit") if _phase(config, state, tx) == "running" else None


def abort(config: Config, state: State, tx: str) -> State | None:
    """Abort: the local transaction fails or never runs, because of the send or a crash of the producer."""
    if _phase(config, state, tx) not in ("sent", "running"):
        return None
    return _enter(config, state, tx, "rollback")


def report(config: Config, state: State, tx: str, half: int, end: str) -> State | None:
    """Report: a producer sends the end, after its local transaction or because it was checked."""
    phase, request = _phase(config, state, tx), Request(tx, half, end)
    if phase not in ENDS or (end != phase and tx not in config.inconsistent):
        return None
    if not names(state, tx, half) or request in state.requests:
        return None
    return state._replace(requests=state.requests | {request})


# The broker


def names(state: State, tx: str, half: int) -> bool:
    """Named: the half message that a request names is the request's: group, offsets and key agree."""
    queue = halves(state.log)
    return half <= len(queue) and tx in queue[half - 1].of


def end_transaction(_config: Config, state: State, tx: str, half: int, end: str) -> State | None:
    """End: the broker processes a request. One for a transaction that has ended changes nothing."""
    if not state.ready or Request(tx, half, end) not in state.requests:
        return None
    if not names(state, tx, half) or not is_open(state, tx):
        return None
    after = _append(state, "final", (tx,)) if end == "commit" else state
    return after._replace(pending=state.pending | {tx})


def write_operations(_config: Config, state: State) -> State | None:
    """WriteOperations: one record for all ends since the last one."""
    return _append(state, "op", state.pending)._replace(pending=frozenset()) if state.pending else None


def may_check(state: State, tx: str) -> bool:
    """MayCheck: the broker has read its log, the transaction is open, and its immunity time is over."""
    return state.ready and is_open(state, tx) and tx not in state.young


def times(state: State, tx: str) -> int:
    """Times: how often the latest copy was checked."""
    return halves(state.log)[latest(state.log, tx) - 1].times


def check(config: Config, state: State, tx: str) -> State | None:
    """Check: a copy with the number of checks is appended, and a producer is asked."""
    if not may_check(state, tx) or times(state, tx) >= config.checks_max:
        return None
    return _append(state, "half", (tx,), times(state, tx) + 1)


def discard(config: Config, state: State, tx: str) -> State | None:
    """Discard: a message that was checked often enough leaves the half queue."""
    if not may_check(state, tx) or times(state, tx) != config.checks_max:
        return None
    return _append(state, "discarded", (tx,))._replace(pending=state.pending | {tx})


def done(state: State, place: int) -> bool:
    """Done: the safe log has the end of the half message at this place, or a later copy."""
    log = state.log[: state.safe]
    return all(evidence(log, tx) or latest(log, tx) > place for tx in halves(state.log)[place - 1].of)


def advance(_config: Config, state: State) -> State | None:
    """Advance: the broker moves its progress past the next half message, which is done."""
    if not state.ready or state.progress >= len(halves(state.log)) or not done(state, state.progress + 1):
        return None
    return state._replace(progress=state.progress + 1)


def secure(_config: Config, state: State) -> State | None:
    """Secure: the log is flushed and replicated."""
    return state._replace(safe=len(state.log)) if state.safe < len(state.log) else None


def ripen(config: Config, state: State, tx: str) -> State | None:
    """Ripen: the immunity time of a message is over."""
    if tx not in state.young or _phase(config, state, tx) == "new":
        return None
    return state._replace(young=state.young - {tx})


def crash(_config: Config, state: State, length: int, stored: int) -> State | None:
    """Crash: the broker restarts with what is left of its log, or the slave takes over."""
    if not state.safe <= length <= len(state.log) or stored > state.progress:
        return None
    return state._replace(log=state.log[:length], ready=False, pending=frozenset(), progress=stored)


def read(_config: Config, state: State) -> State | None:
    """Read: the broker reads its log before it answers."""
    return None if state.ready else state._replace(ready=True)


# Actions


def _halves_max(config: Config) -> int:
    return len(config.txs) * (config.checks_max + 1)


def _ends(config: Config) -> Iterable[Parameters]:
    return product(config.txs, range(1, _halves_max(config) + 1), ENDS)


def _lengths(config: Config) -> Iterable[Parameters]:
    halves_max = _halves_max(config)
    return product(range(halves_max + 2 * len(config.txs) + 1), range(halves_max + 1))


def _crashes(_config: Config, state: State) -> Iterator[Parameters]:
    return product(range(state.safe, len(state.log) + 1), range(state.progress + 1))


def _requests(_config: Config, state: State) -> Iterator[Parameters]:
    return map(tuple, sorted(state.requests))


def _reports(_config: Config, state: State) -> Iterator[Parameters]:
    for half, record in enumerate(halves(state.log), 1):
        yield from product(sorted(record.of), (half,), ENDS)


ACTIONS: Final[dict[str, Action[Config, State]]] = by_name(
    Action("Send", send, each("txs")),
    Action("Acknowledge", acknowledge, each("txs")),
    Action("Commit", commit, each("txs")),
    Action("Abort", abort, each("txs")),
    Action("Check", check, each("txs")),
    Action("Discard", discard, each("txs")),
    Action("Ripen", ripen, each("txs")),
    Action("Report", report, _ends, _reports),
    Action("End", end_transaction, _ends, _requests),
    Action("WriteOperations", write_operations, once),
    Action("Advance", advance, once),
    Action("Secure", secure, once),
    Action("Read", read, once),
    Action("Crash", crash, _lengths, _crashes),
)


# Safety


def transaction_atomic(config: Config, state: State) -> bool:
    """DELIV-9 TransactionAtomic: a message is visible if and only if its transaction was committed."""
    for tx in config.txs:
        if tx in config.inconsistent:
            continue
        visible, committed = has(state.log, "final", tx), _phase(config, state, tx) == "commit"
        if visible and not committed:
            return False
        if committed and ended(state, tx) and not has(state.log, "discarded", tx) and not visible:
            return False
    return True


def committed_once(config: Config, state: State) -> bool:
    """TXN-1 CommittedOnce: a message becomes visible at most once."""
    finals = [tx for record in state.log if record.kind == "final" for tx in record.of]
    return all(finals.count(tx) <= 1 for tx in config.txs)


def ends_once(_config: Config, state: State) -> bool:
    """TXN-2 EndsOnce: a transaction that ended does not end in another way, and is not checked again."""
    over: set[str] = set()
    for record in state.log:
        if record.kind != "op" and not over.isdisjoint(record.of):
            return False
        if record.kind != "half":
            over |= record.of
    return True


def half_kept(config: Config, state: State) -> bool:
    """TXN-3 HalfKept: an acknowledged half message has ended, or the broker still has to end it."""
    return all(
        latest(state.log, tx) > state.progress or evidence(state.log, tx)
        for tx in config.txs
        if _phase(config, state, tx) in ("running", "commit")
    )


def checked_while_open(config: Config, before: State, action: str, after: State) -> bool:
    """TXN-4 CheckedWhileOpen: only an open transaction is checked or discarded, after its immunity time."""
    if action not in ("Check", "Discard"):
        return True
    added = after.log[-1]
    for tx in added.of:
        if not may_check(before, tx):
            return False
        if (
            added.times != times(before, tx) + 1
            if added.kind == "half"
            else times(before, tx) < config.checks_max
        ):
            return False
    return True


# Liveness


FAIRNESS: Final = (
    weak("Read", "Read"),
    weak("Ripen", "Ripen", each=FIRST),
    strong("Check", "Check", each=FIRST),
    strong("Discard", "Discard", each=FIRST),
    strong("Secure", "Secure"),
    strong("Advance", "Advance"),
    strong("Write", "WriteOperations"),
)


def transaction_ends(config: Config) -> Obligations[State]:
    """TXN-5 TransactionEnds: an acknowledged half message is committed, rolled back or discarded."""
    return leads_to(
        lambda s, tx: _phase(config, s, tx) in ("running", "commit"),
        lambda s, tx: evidence(s.log[: s.safe], tx),
        of=each("txs")(config),
    )


def half_queue_advances(_config: Config) -> Obligations[State]:
    """HalfQueueAdvances: if crashes end, the broker gets to the end of the half queue."""
    return recurs(lambda s: s.progress == len(halves(s.log)), given=lambda s: s.ready)


# The model in TLC's terms


def from_tla(config: Config, variables: Mapping[str, Any]) -> State:
    """Return the state that TLC prints."""
    return State(
        log=tuple(Record(r["kind"], frozenset(r["of"]), r["times"]) for r in variables["log"]),
        safe=variables["safe"],
        ready=variables["ready"],
        pending=frozenset(variables["pending"]),
        progress=variables["progress"],
        young=frozenset(variables["young"]),
        phase=tuple(variables["phase"][tx] for tx in config.txs),
        requests=frozenset(Request(r["tx"], r["half"], r["end"]) for r in variables["requests"]),
    )


MODEL: Final = Model(
    name="Transactions",
    initial=initial,
    actions=ACTIONS,
    invariants=named(transaction_atomic, committed_once, ends_once, half_kept),
    step_invariants=named(checked_while_open),
    fairness=FAIRNESS,
    liveness=named(transaction_ends, half_queue_advances),
    from_constants=configuration(Config, txs="Txs", inconsistent="Inconsistent", checks_max="ChecksMax"),
    from_tla=from_tla,
    operator=operators(),
)
