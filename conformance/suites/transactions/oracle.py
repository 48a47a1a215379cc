"""The states of transactions that explain what was observed (reference/transactions.py).

Each transaction is followed separately, as in the model with one transaction. Time may have passed before
each operation, so the broker may have checked, discarded, and written its operations. A crash keeps what was
answered: half messages and commits. A rollback is lost if its operation is.
"""

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Final, NamedTuple

from mqproof.conformance.engine.broker_faults import ENDS, BrokerFault, InjectFault
from mqproof.conformance.engine.stepped_run import Explanation
from mqproof.conformance.suites.transactions.steps import Checked, Operation, Read, Report, SendHalf
from mqproof.conformance.suites.transactions.target import Answer
from mqproof.reference import transactions
from mqproof.reference.transactions import Config, Request

_TX: Final = "t"
_CHECKS_MAX: Final = 3
_CONFIGS: Final = tuple(Config((_TX,), (_TX,), checks_max) for checks_max in range(_CHECKS_MAX + 1))
"""A message may be discarded after any of these numbers of checks; more checks are not counted."""

_One = transactions.State
Possible = frozenset[_One]


class State(NamedTuple):
    possible: tuple[tuple[str, Possible], ...] = ()
    """By transaction: its possible states."""


def explanation() -> Explanation[State, Operation]:
    return Explanation((State(),), _after, _describe, _action)


def _after(state: State, operation: Operation) -> Iterable[State]:
    known = dict(state.possible)
    match operation:
        case SendHalf(msg_id):
            known[msg_id] = frozenset({_sent()})
        case Report(msg_id):
            drifted = _drifted(known[msg_id])
            known[msg_id] = frozenset(after for one in drifted for after in _reported(one, operation))
        case Checked(msg_ids):
            if not set(msg_ids) <= known.keys():
                return
            for msg_id in msg_ids:
                drifted = _drifted(known[msg_id])
                known[msg_id] = frozenset(one for one in drifted if transactions.latest(one.log, _TX) > 1)
        case Read(msg_ids):
            if not set(msg_ids) <= known.keys():
                return
            for msg_id, possible in known.items():
                seen = msg_ids.count(msg_id)
                known[msg_id] = frozenset(one for one in possible if _finals(one) == seen)
        case InjectFault(fault) if fault in ENDS:
            for msg_id, possible in known.items():
                known[msg_id] = frozenset(
                    after for one in _drifted(possible) for after in _crashed(one, fault)
                )
    if all(known.values()):
        yield State(tuple(known.items()))


def _sent() -> _One:
    (state,) = transactions.initial(_CONFIGS[0])
    for name, parameters in (("Send", (_TX,)), ("Secure", ()), ("Acknowledge", (_TX,)), ("Ripen", (_TX,))):
        after = transactions.ACTIONS[name].apply(_CONFIGS[0], state, *parameters)
        assert after is not None
        state = after
    return state


def _finals(one: _One) -> int:
    return sum(record.kind == "final" for record in one.log)


@lru_cache(maxsize=1 << 12)  # the examples of a run meet the same few hundred states
def _drifted(possible: Possible) -> Possible:
    """Return the states that time alone may lead to: checks, a discard, operations, flushes."""
    found, new = set(possible), list(possible)
    while new:
        for after in _passed(new.pop()):
            if after not in found:
                found.add(after)
                new.append(after)
    return frozenset(found)


def _passed(one: _One) -> Iterator[_One]:
    most = _CONFIGS[-1]
    steps = [transactions.check(most, one, _TX), transactions.write_operations(most, one)]
    steps += [transactions.secure(most, one)]
    steps += [transactions.discard(config, one, _TX) for config in _CONFIGS]
    yield from (after for after in steps if after is not None)


def _reported(one: _One, report: Report) -> Iterator[_One]:
    """Yield the states after an answered request: it ends the transaction, or that has ended before."""
    request = one._replace(requests=frozenset({Request(_TX, 1, str(report.end))}))
    after = transactions.end_transaction(_CONFIGS[0], request, _TX, 1, str(report.end))
    if after is None:
        if report.answer is Answer.REFUSED or _has_ended_so(one, report):
            yield one
    elif report.answer is Answer.OK:
        ended = after._replace(requests=frozenset())
        # A commit is answered when its message is safe; a rollback is only remembered.
        yield ended._replace(safe=len(ended.log)) if report.end == "commit" else ended


def _has_ended_so(one: _One, report: Report) -> bool:
    """Return whether the transaction has ended in this way before."""
    if report.end == "commit":
        return transactions.has(one.log, "final", _TX)
    return not any(transactions.has(one.log, kind, _TX) for kind in ("final", "discarded"))


def _crashed(one: _One, fault: BrokerFault) -> Iterator[_One]:
    """Yield the states after a restart. Only a loss of power loses data that was written."""
    shortest = one.safe if fault is BrokerFault.POWER_LOSS else len(one.log)
    for length in range(shortest, len(one.log) + 1):
        crashed = transactions.crash(_CONFIGS[0], one, length, 0)
        assert crashed is not None
        after = transactions.read(_CONFIGS[0], crashed)
        assert after is not None
        yield after


def _describe(state: State) -> str:
    def shown(one: _One) -> str:
        records = "".join(record.kind[0] for record in one.log)
        return records + ("+" if one.pending else "")

    return "; ".join(
        f"{msg_id}: {' or '.join(sorted(map(shown, those)))}" for msg_id, those in state.possible
    )


def _action(operation: Operation) -> str:
    """Return the action of Transactions.tla for the operation."""
    match operation:
        case SendHalf():
            return "Send"
        case Report():
            return "End"
        case Checked():
            return "Check"
        case InjectFault(fault):
            return "Crash" if fault in ENDS else "(fault)"
        case _:
            return "(look)"
