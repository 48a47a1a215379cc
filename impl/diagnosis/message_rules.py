"""What became of a message before any group matters: was it stored, is it due, is it still there?

Each rule returns an answer, or None if it does not apply. The first answer counts.
"""

from collections.abc import Callable, Sequence
from typing import Final

from mqproof.impl.diagnosis import causes
from mqproof.impl.diagnosis.causes import Cause
from mqproof.impl.diagnosis.evidence import Answer, Copy, Evidence, Queue
from mqproof.impl.diagnosis.history import (
    DISCARD_TOPIC,
    HALF_TOPIC,
    RETRY,
    SCHEDULE_TOPIC,
    TIMER_TOPIC,
    History,
    line_of,
    utc_ms,
)
from mqproof.impl.remoting.message import REAL_TOPIC, TIMER_DELIVER_MS
from mqproof.spec.events import Event, Kind

_LATE_MS: Final = 30_000
"""How late a broker may deliver a delayed message before it counts as overdue."""
_DELAYS_S: Final = (1, 5, 10, 30, *range(60, 601, 60), 1200, 1800, 3600, 7200)
"""RocketMQ's default delay levels."""

DUE_MS: Final = "TIMER_DUE_MS"
OUT_MS: Final = "TIMER_OUT_MS"
RECALLED_KEY: Final = "TIMER_DEL_UNIQKEY"


def fate(evidence: Evidence) -> Answer | None:
    """Return what became of the message for all groups alike, or None if each group must be examined."""
    for rule in _RULES:
        if answer := rule(evidence):
            return answer
    return None


def main_copies(evidence: Evidence) -> list[Copy]:
    """Return the records in the message's own topic."""
    return evidence.copies_in(evidence.topic) if evidence.topic else []


def confirmations(history: History) -> list[Event]:
    """Return the events with the place at which a broker confirmed the message."""
    return [event for event in history.of(Kind.SEND_ACK) if event.status]


def queue_at(event: Event) -> Queue | None:
    if event.topic is None or event.queue_id is None:
        return None
    return Queue(event.topic, event.attrs.get("broker", event.node), event.queue_id)


def describe(copy: Copy) -> str:
    return f"store: {copy.place}, stored {utc_ms(copy.stored_ms)}"


def due_ms(copy: Copy) -> int | None:
    """Return the time for which a record of the delay or timer topic waits; None if it is not stated."""
    properties = copy.properties
    if copy.queue.topic == SCHEDULE_TOPIC:
        level = copy.queue.id
        return copy.stored_ms + _DELAYS_S[level] * 1000 if 0 <= level < len(_DELAYS_S) else None
    for name in (DUE_MS, TIMER_DELIVER_MS):
        if (text := properties.get(name, "")).isdecimal():
            return int(text)
    text = properties.get(OUT_MS, "")
    return int(text) + 1000 if text.isdecimal() else None


def waiting(evidence: Evidence, topic: str) -> Copy | None:
    """Return the newest record that waits to be delivered to `topic`."""
    held = [
        copy
        for internal in (SCHEDULE_TOPIC, TIMER_TOPIC)
        for copy in evidence.copies_in(internal)
        if copy.properties.get(REAL_TOPIC) == topic and RECALLED_KEY not in copy.properties
    ]
    return max(held, key=lambda copy: copy.stored_ms, default=None)


def answer(cause: Cause, evidence: Evidence, *lines: str, group: str | None = None) -> Answer:
    return Answer(cause, lines, group, evidence.topic, evidence.message_id)


# --- withdrawn by the producer or an administrator


def _recalled(evidence: Evidence) -> Answer | None:
    if main_copies(evidence):
        return None
    for event in evidence.history.of(Kind.RECALL):
        if event.status == "PUT_OK":
            return answer(causes.RECALLED, evidence, line_of(event))
    for copy in evidence.copies_in(TIMER_TOPIC):
        if copy.properties.get(RECALLED_KEY) and copy.properties.get(REAL_TOPIC) == evidence.topic:
            line = f"store: the recall is {copy.place}, stored {utc_ms(copy.stored_ms)}"
            return answer(causes.RECALLED, evidence, line)
    return None


def _in_transaction(evidence: Evidence) -> Answer | None:
    half = evidence.copies_in(HALF_TOPIC)
    is_half = half or evidence.history.of(Kind.HALF)
    if not is_half or main_copies(evidence) or evidence.history.of(Kind.COMMIT):
        return None
    lines = [*map(describe, half[-1:]), *map(line_of, evidence.history.of(Kind.HALF)[:1])]
    if ends := evidence.history.of(Kind.ROLLBACK):
        return answer(causes.ROLLED_BACK, evidence, *lines, line_of(ends[0]))
    if discarded := evidence.copies_in(DISCARD_TOPIC):
        return answer(causes.TRANSACTION_DISCARDED, evidence, *lines, describe(discarded[-1]))
    if evidence.half_is_done:
        done = "store: an operation marks the half message as done, and there is no final message"
        return answer(causes.ROLLED_BACK, evidence, *lines, done)
    if evidence.half_is_done is None and evidence.cluster:
        return answer(
            causes.INCOMPLETE,
            evidence,
            *lines,
            *evidence.missing,
            "the broker's operations could not be read",
        )
    checks = len(evidence.history.of(Kind.CHECK))
    asked = [f"log: the broker asked {checks} times for the end"] if checks else []
    return answer(causes.TRANSACTION_OPEN, evidence, *lines, *asked)


# --- not due


def _not_due(evidence: Evidence) -> Answer | None:
    if evidence.topic is None or main_copies(evidence):
        return None
    copy = waiting(evidence, evidence.topic)
    if copy is None:
        return None
    time_ms = due_ms(copy)
    if time_ms is None:
        return answer(causes.WAITING_FOR_ITS_TIME, evidence, describe(copy), "its time is not stated")
    line = f"it is due at {utc_ms(time_ms)}, now it is {utc_ms(evidence.now_ms)}"
    cause = causes.OVERDUE if evidence.now_ms > time_ms + _LATE_MS else causes.WAITING_FOR_ITS_TIME
    return answer(cause, evidence, describe(copy), line)


# --- not stored, or not any more


def _deleted_topic(evidence: Evidence) -> Answer | None:
    if evidence.topic_exists is True or _is_received(evidence):
        return None
    for event in evidence.history.others(Kind.ADMIN):
        is_delete = "delete_topic" in event.attrs.get("action", "")
        if is_delete and event.topic == evidence.topic and _begins_before(evidence, event):
            return answer(causes.TOPIC_DELETED, evidence, line_of(event))
    return without_topic(evidence)


def without_topic(evidence: Evidence) -> Answer | None:
    """Return that the topic is gone although a broker still has the record."""
    copies = main_copies(evidence)
    if evidence.topic_exists is not False or not copies or evidence.missing or evidence.silent_brokers:
        return None
    line = f"no name server has a route of topic {evidence.topic}"
    return answer(causes.TOPIC_DELETED, evidence, describe(copies[0]), line)


def _begins_before(evidence: Evidence, event: Event) -> bool:
    return bool(evidence.history.own) and evidence.history.own[0].ts <= event.ts


def _is_received(evidence: Evidence) -> bool:
    return bool(evidence.history.of(Kind.DELIVER) or evidence.calls)


def _refused(evidence: Evidence) -> Answer | None:
    history = evidence.history
    if evidence.copies or history.of(Kind.SEND_ACK, Kind.APPEND, Kind.DELIVER):
        return None
    failed = history.of(Kind.SEND_FAIL)
    if not failed or any(event.status in (None, "unknown") for event in failed):
        return None
    if len(history.of(Kind.SEND)) > len(failed) or min(event.attempt or 1 for event in failed) > 1:
        return None  # one of the attempts, or its end, is not in the log
    return answer(causes.SEND_REFUSED, evidence, *map(line_of, failed[:3]))


def _missing_topic(evidence: Evidence) -> Answer | None:
    if evidence.topic_exists is not False or evidence.copies or evidence.missing or evidence.silent_brokers:
        return None
    if confirmations(evidence.history) or evidence.history.of(Kind.APPEND) or _is_received(evidence):
        return None
    return answer(causes.TOPIC_MISSING, evidence, f"no name server has a route of topic {evidence.topic}")


def _not_confirmed(evidence: Evidence) -> Answer | None:
    """Not stored: the producer tried, nothing confirms it, and every store was searched."""
    history = evidence.history
    if not _searched(evidence) or evidence.copies or not history.of(Kind.SEND):
        return None
    if history.of(Kind.SEND_ACK, Kind.APPEND, Kind.DISPATCH, Kind.DELIVER, Kind.HALF):
        return None
    lines = [line_of(event) for event in history.of(Kind.SEND, Kind.SEND_FAIL)[-3:]]
    return answer(causes.SEND_NOT_CONFIRMED, evidence, *lines, "no broker has a message with this id")


def _searched(evidence: Evidence) -> bool:
    """Return whether a cluster was searched completely."""
    return evidence.cluster and not evidence.missing and not evidence.silent_brokers


def _unreachable(evidence: Evidence) -> Answer | None:
    if main_copies(evidence) or not evidence.silent_brokers or not evidence.cluster:
        return None
    for event in reversed([*confirmations(evidence.history), *evidence.history.of(Kind.APPEND)]):
        queue = queue_at(event)
        if queue and queue.broker in evidence.silent_brokers and not _is_received(evidence):
            line = f"broker {queue.broker} does not answer, or its name server does not know it"
            return answer(causes.BROKER_UNREACHABLE, evidence, line_of(event), line)
    return None


def _lost(evidence: Evidence) -> Answer | None:
    """Confirmed by a broker that does not have it any more, although its queue still begins before it."""
    if evidence.copies or _is_received(evidence):
        return None
    if evidence.cluster:
        return _lost_from_queue(evidence)
    return _cut_off(evidence)


def _lost_from_queue(evidence: Evidence) -> Answer | None:
    for event in confirmations(evidence.history):
        queue = queue_at(event)
        state = evidence.queues.get(queue) if queue else None
        if queue is None or state is None or event.queue_offset is None or evidence.missing:
            continue
        if state.first <= event.queue_offset:
            line = f"store: {queue} has the offsets {state.first} to {state.end - 1}, and no such message"
            return answer(causes.LOST_FROM_STORE, evidence, line_of(event), line, *_crashes(evidence, event))
    return None


def _cut_off(evidence: Evidence) -> Answer | None:
    """Without a cluster: the broker's own log says that it cut the record off, and did not store it again."""
    appended, confirmed = evidence.history.of(Kind.APPEND), confirmations(evidence.history)
    if not appended or not confirmed:
        return None
    last = appended[-1]
    for event in evidence.history.others(Kind.TRUNCATE, Kind.RECOVER):
        is_cut = None not in (event.commit_offset, last.commit_offset) and (
            (event.commit_offset or 0) <= (last.commit_offset or 0)
        )
        if event.node == last.node and event.ts >= last.ts and is_cut:
            return answer(causes.LOST_FROM_STORE, evidence, line_of(confirmed[0]), line_of(event))
    return None


def _crashes(evidence: Evidence, since: Event) -> Sequence[str]:
    kinds = (Kind.CRASH, Kind.TRUNCATE, Kind.RECOVER)
    return [line_of(event) for event in evidence.history.others(*kinds) if event.ts >= since.ts][:2]


def is_expired(evidence: Evidence) -> bool:
    """Return whether the queue in which the message was confirmed now begins after it."""
    for event in confirmations(evidence.history):
        queue = queue_at(event)
        state = evidence.queues.get(queue) if queue else None
        if state and event.queue_offset is not None and event.queue_offset < state.first:
            return True
    return False


def _not_found(evidence: Evidence) -> Answer | None:
    if evidence.copies or evidence.history.own or evidence.calls:
        return None
    if evidence.missing or evidence.silent_brokers:
        silent = [f"broker {name} does not answer" for name in evidence.silent_brokers]
        return answer(causes.INCOMPLETE, evidence, *evidence.missing, *silent)
    searched = "no broker has a message with this id" if evidence.cluster else "no cluster was read"
    return answer(causes.NOT_FOUND, evidence, searched, "no log that was given names it")


_RULES: Final[tuple[Callable[[Evidence], Answer | None], ...]] = (
    *(_recalled, _in_transaction, _not_due, _deleted_topic, _refused),
    *(_missing_topic, _unreachable, _lost, _not_confirmed, _not_found),
)


def retry_topic(group: str) -> str:
    return RETRY + group
