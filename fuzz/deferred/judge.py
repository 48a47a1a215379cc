"""Compares the observations of half messages and timed messages with the catalogue; one check for each id.

Each function raises Finding. The records of the log decide how a transaction ended; producers know which ends
they sent, and which of them were answered.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from mqproof.conformance.suites.transactions.target import End
from mqproof.fuzz.deferred.observations import Timed, Trail, Transaction
from mqproof.fuzz.target import Finding
from mqproof.impl.remoting.message import StoredMessage

DELAY_MAX_S: Final = 259_200
"""The longest delay: `timerMaxDelaySec` of every release."""
_LATE_MS: Final = 3000
"""How late a message may be while the broker serves: 1 s, and the time to read the timers after a start."""

Checked = Counter[str]


# -- transactions


def transaction_atomic(
    transactions: Mapping[str, Transaction], found: Mapping[str, Trail], checked: Checked, *, is_over: bool
) -> None:
    """Check DELIV-9: only committed messages are visible, and in the end all of them.

    Only transactions count whose producers agree about the end.
    """
    for name, one in transactions.items():
        finals = found[name].finals if name in found else 0
        if finals and End.COMMIT not in one.requested:
            raise Finding("TransactionAtomic", f"{name} is visible, and no commit was sent")
        checked["TransactionAtomic"] += bool(finals)
        if is_over and one.is_committed and one.requested == {End.COMMIT} and not finals:
            raise Finding("TransactionAtomic", f"{name} is not visible, and its commit was answered SUCCESS")


def committed_once(transactions: Iterable[str], found: Mapping[str, Trail], checked: Checked) -> None:
    """Check TXN-1: no committed message is visible twice."""
    for name in transactions:
        finals = found[name].finals if name in found else 0
        checked["CommittedOnce"] += bool(finals)
        if finals > 1:
            raise Finding("CommittedOnce", f"{name} is visible {finals} times")


def ends_once(transactions: Mapping[str, Transaction], found: Mapping[str, Trail], checked: Checked) -> None:
    """Check TXN-2: no transaction ends in two ways. Operations only repeat an end that they follow."""
    for name, one in transactions.items():
        if one.is_committed_later:
            raise Finding("EndsOnce", f"{name}: after its rollback, a commit was answered SUCCESS")
        ends = found[name].ends if name in found else []
        checked["EndsOnce"] += bool(ends)
        first = ends[0] if ends else ""
        if later := {"final", "discard"}.intersection(ends[1:]) - {first}:
            raise Finding("EndsOnce", f"{name}: {min(later)} after {first} in the log")


def not_checked_again(name: str, trail: Trail, checked: Checked) -> None:
    """Check TXN-2: a producer is not asked for the end of a transaction whose end is in the log."""
    checked["EndsOnce"] += 1
    if trail.ends:
        raise Finding("EndsOnce", f"{name} is checked after its {trail.ends[0]} in the log")


def checked_while_open(name: str, trail: Trail, now_ms: int, immunity_ms: int, checked: Checked) -> None:
    """Check TXN-4: only an existing half message is checked, and not in its immunity time."""
    checked["CheckedWhileOpen"] += 1
    if trail.half is None:
        raise Finding("CheckedWhileOpen", f"{name} is checked, and no half message is in the log")
    age_ms = now_ms - trail.half.store_timestamp_ms
    if age_ms < immunity_ms:
        raise Finding("CheckedWhileOpen", f"{name} is checked after {age_ms} ms, {immunity_ms} expected")


def half_kept(name: str, refusal: str, checked: Checked) -> None:
    """Check TXN-3: the first end of a half message that the log does not show as ended is accepted."""
    checked["HalfKept"] += 1
    if refusal:
        raise Finding("HalfKept", f"the first end of {name}, answered SEND_OK, is refused: {refusal}")


def transaction_ends(left: Sequence[str], waited_s: float, checked: Checked) -> None:
    """Check TXN-5: after the faults end, checks end all transactions that are open."""
    checked["TransactionEnds"] += 1
    if left:
        text = f"{waited_s:g} s after the last fault {left[0]} and {len(left) - 1} others"
        raise Finding("TransactionEnds", f"{text} are not committed, rolled back or discarded")


# -- timers


def not_early(
    messages: Mapping[str, Timed], seen: Mapping[str, list[StoredMessage]], checked: Checked
) -> None:
    """Check DELIV-8: no message is stored for its consumers before its time."""
    for name, one in messages.items():
        for stored in seen.get(name, ()):
            checked["NotEarly"] += 1
            if (early_ms := one.due_ms - stored.store_timestamp_ms) > 0:
                raise Finding("NotEarly", f"{name} is visible {early_ms} ms early")


def timer_once(
    messages: Mapping[str, Timed],
    seen: Mapping[str, list[StoredMessage]],
    doubtful: set[str],
    checked: Checked,
) -> None:
    """Check TIMER-2: no message is visible twice, unless the broker could not learn the result of a put.

    A message with a delay level may be delivered again after a crash.
    """
    for name, one in messages.items():
        if one.has_level or name in doubtful:
            continue
        times = len(seen.get(name, ()))
        checked["TimerOnce"] += bool(times)
        if times > 1:
            raise Finding("TimerOnce", f"{name} is visible {times} times")


def recall_holds(
    messages: Mapping[str, Timed], seen: Mapping[str, list[StoredMessage]], checked: Checked
) -> None:
    """Check TIMER-3: a message whose recall succeeded is never visible."""
    for name, one in messages.items():
        if one.is_recalled:
            checked["RecallHolds"] += 1
            if name in seen:
                raise Finding("RecallHolds", f"{name} is visible after its recall")


def delay_bounded(name: str, delay_s: float, status: str, checked: Checked) -> None:
    """Check TIMER-5: a delay is refused if, and only if, it is beyond the maximum.

    `status` is that of the answer. Other refusals, of a broker that cannot store anything, do not count.
    """
    if status not in ("SEND_OK", "MESSAGE_ILLEGAL"):
        return
    checked["DelayBounded"] += 1
    if (status == "SEND_OK") != (delay_s <= DELAY_MAX_S):
        raise Finding("DelayBounded", f"{name} with a delay of {delay_s:g} s is answered {status}")


def timer_kept(
    messages: Iterable[Timed], seen: Mapping[str, object], waited_s: float, checked: Checked
) -> None:
    """Check TIMER-1: a message that was promised and not recalled is visible long after its time."""
    for one in messages:
        if one.is_promised and not one.recall_asked and not one.has_level:
            checked["TimerKept"] += 1
            if one.name not in seen:
                raise Finding("TimerKept", f"{one.name} is not visible {waited_s:g} s after its time")


def timer_delivered(
    messages: Iterable[Timed], seen: Mapping[str, list[StoredMessage]], served_ms: int, checked: Checked
) -> None:
    """Check TIMER-4: a message that becomes visible after the faults is not late.

    `served_ms` is the time since which the broker serves without faults. A message that was not answered may
    have reached the broker late.
    """
    for one in messages:
        for stored in seen.get(one.name, ()) if one.is_promised and not one.has_level else ():
            late_ms = stored.store_timestamp_ms - max(one.latest_due_ms, served_ms)
            checked["TimerDelivered"] += stored.store_timestamp_ms > served_ms
            if late_ms > _LATE_MS:
                raise Finding("TimerDelivered", f"{one.name} is visible {late_ms} ms late")
