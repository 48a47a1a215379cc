"""The named invariants for a run with a single client; each one is a pure function of a record.

The steps of the client follow one another (`step_history.py`), and nothing happens between two steps.
Therefore more can be concluded than from the observations of many clients. A checker returns a verdict with
counts and witnesses. The verdict is unknown, never held, if nothing was observed that could show a violation.
A send with an indeterminate outcome is never judged as lost or as a phantom. Names and ids are those of
spec/invariants.toml.
"""

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from mqproof.conformance.engine.finding import Finding, Tally
from mqproof.conformance.history.lines import Delivered
from mqproof.conformance.history.pairing import record
from mqproof.conformance.history.record import ASYNC_FLUSH, NEVER, SEND_OK, Outcome, Read, Record, Sent
from mqproof.conformance.history.rules.offsets import offset_regression
from mqproof.conformance.history.rules.places import phantom
from mqproof.conformance.suites.flush.step_history import as_lines, step_at
from mqproof.conformance.suites.flush.steps import Calm, Disturb, History, Restart, Send, SyncsFail

Checker = Callable[[Record], Finding]
Scope = Callable[[Record, int, int], bool]
"""Returns whether an observation at the second index is judged against a fact known at the first index."""


def judge(history: History) -> dict[str, Finding]:
    """Judge every named invariant; return the findings by id."""
    operations = record(as_lines(history))
    findings = {invariant: checker(operations) for invariant, checker in CHECKERS.items()}
    return findings | {invariant: checker(history) for invariant, checker in OF_STEPS.items()}


# Answers


def send_answered(history: History) -> Finding:
    """FLUSH-7 SendAnswered: a send is answered, unless a fault is active or fsyncs fail.

    Only for simulated time: there, an answer that does not come in time was never sent.
    """
    tally = Tally()
    if not history.is_simulated:
        return tally.finding("sends")
    is_disturbed = False
    for step, operation in enumerate(history.operations, 2):
        match operation:
            case Disturb() | SyncsFail():
                is_disturbed = True
            case Calm() | Restart():
                is_disturbed = False
            case Send(abandoned=False, answer=answer) if not is_disturbed:
                tally.looked += 1
                if answer.under_way:
                    tally.found(f"step {step}: {operation.msg_id} is not answered", msg_id=operation.msg_id)
    return tally.finding("sends")


# Durability


def sync_acked_durable(history: Record) -> Finding:
    """FLUSH-1 SyncAckedDurable: a message answered SEND_OK exists after every crash.

    Not judged: messages whose queue was not read after the crash.
    """
    if history.setup.flush_mode == ASYNC_FLUSH:
        return Tally().finding("seen")
    return _survives(history, lambda history, then, now: history.deaths.between(then, now))


def async_acked_survives_process_crash(history: Record) -> Finding:
    """FLUSH-2 AsyncAckedSurvivesProcessCrash: the same under ASYNC_FLUSH, if only processes crashed."""
    if history.setup.flush_mode != ASYNC_FLUSH:
        return Tally().finding("seen")
    return _survives(
        history,
        lambda history, then, now: (
            history.deaths.between(then, now) and not history.crashes.between(then, now)
        ),
    )


def no_acked_lost(history: Record) -> Finding:
    """DELIV-1 NoAckedLost: a message answered SEND_OK exists, and no read has skipped it.

    Messages that have not been read yet are not lost; they are counted as `unseen`.
    """
    return _survives(history, _promised)


def _promised(history: Record, then: int, now: int) -> bool:
    """Return whether the flush mode protects the message.

    ASYNC_FLUSH does not protect it once the system has crashed.
    """
    return history.setup.flush_mode != ASYNC_FLUSH or not history.crashes.between(then, now)


def _survives(history: Record, scope: Scope) -> Finding:
    tally = Tally()
    acknowledged = [sent for sent in history.stored if sent.status == SEND_OK]
    for sent in acknowledged:
        seen, lost = _fate(history, sent.message.id, sent.queue, sent.offset, sent.span.end, scope)
        tally.looked += seen
        if lost:
            text = f"{sent.message.id} was answered SEND_OK at step {step_at(sent.span.began)}; {lost}"
            tally.found(text, msg_id=sent.message.id, queue=sent.queue)
    unseen = max(0, len(acknowledged) - tally.looked - tally.wrong)
    return tally.finding("seen", attempted=len(history.sends), acknowledged=len(acknowledged), unseen=unseen)


def _fate(history: Record, id_: str, queue: str, place: int, known: int, scope: Scope) -> tuple[bool, str]:
    """Return whether a message with a known offset was seen since, and the reason why it is lost, or "".

    It is lost if a read passed its offset without returning it. It is also lost if its queue ends before its
    offset after a later start of the broker: a broker that serves again has dispatched everything that it
    recovered. Before that restart a queue that ends early may only lag behind.
    """
    seen = False
    for read in history.reads:
        if read.queue != queue or read.at < known or not scope(history, known, read.at):
            continue
        if any(message.id == id_ for message in read.messages):
            seen = True
        elif read.offset <= place < read.next:
            return seen, f"step {_step(read)} read past offset {place} of its queue without it"
    for index, step, ended, end in history.once(_ends):
        later = history.starts.between(known, index) and scope(history, known, index)
        if later and ended == queue and end <= place:
            return seen, f"step {step} shows that its queue ends at {end}, before its {place}"
    return seen, ""


class _End(NamedTuple):
    """The queue was readable up to `end`, exclusive, and no further."""

    at: int
    step: int
    queue: str
    end: int


def _ends(history: Record) -> list[_End]:
    polls = [_End(read.at, _step(read), read.queue, read.max) for read in history.reads]
    bounds = [_End(s.span.end, step_at(s.span.began), s.value.queue, s.value.max) for s in history.bounds]
    return sorted(polls + bounds)


def recovery_ends(history: Record) -> Finding:
    """FLUSH-8 RecoveryEnds: a restarted broker serves again.

    A slow recovery and one that never ends look the same: when a target gives up waiting, it counts as never.
    """
    tally = Tally()
    for fault in history.faults:
        if fault.value.kind == "start":
            tally.looked += 1
            if fault.value.failure:
                tally.found(f"step {step_at(fault.time)}: the broker did not start: {fault.value.failure}")
    return tally.finding("restarts")


# Queue contents


def queue_points_into_log(history: Record) -> Finding:
    """FLUSH-3 QueuePointsIntoLog: a pull returns whole records of the requested topic, queue and offsets.

    Their bodies are those that were sent. Records of messages that were never sent are left to NoPhantom.
    """
    tally = Tally()
    for read, message in _delivered(history):
        tally.looked += 1
        sent = history.by_id.get(message.id)
        if not message.id:
            _found(tally, read, message, "cannot be read as a message")
        elif message.queue:
            _found(tally, read, message, f"belongs to {message.queue}, {read.queue} was requested")
        elif not read.offset <= message.offset < read.next:
            _found(tally, read, message, f"has an offset outside {read.offset}..{read.next - 1}")
        elif sent and sent.message.body != message.body:
            _found(tally, read, message, "has another body than the sent message")
    return tally.finding("records")


class _Given(NamedTuple):
    """The message at an offset; `durable` if a crash of the system does not free the offset."""

    at: int
    step: int
    id: str
    durable: bool


def queue_offsets_dense(history: Record) -> Finding:
    """FLUSH-4 QueueOffsetsDense: no offset is assigned twice, and none is left out.

    An omitted offset shows as an offset that is too high for the number of messages that can have been
    stored. Sends that were lost later, or have an indeterminate outcome, count as stored, so small gaps after
    them are not detected.
    """
    tally = Tally()
    given: dict[tuple[str, int], _Given] = {}
    for place, now in sorted(_given(history), key=lambda each: each[1].at):
        before = given.get(place)
        alive = before and (before.durable or not history.crashes.between(before.at, now.at))
        if before and alive and before.id != now.id:
            text = f"offset {place[1]} of {place[0]} is {before.id}'s at step {before.step}"
            tally.found(f"{text} and {now.id}'s at step {now.step}")
        given[place] = now
    possible = Counter(sent.queue for sent in history.sends if sent.span.outcome is not Outcome.FAILED)
    for (queue, offset), holder in given.items():
        if offset >= (count := possible[queue]):
            text = f"{holder.id} has offset {offset} of {queue} at step {holder.step}"
            tally.found(f"{text}, but at most {count} messages can be in it")
    places: dict[str, tuple[str, int]] = {}
    for read, message in _delivered(history):
        place = read.queue, message.offset
        if message.id and places.setdefault(message.id, place) != place:
            _found(tally, read, message, f"was at offset {places[message.id][1]} before")
    tally.looked = len(given)
    return tally.finding("offsets")


def _given(history: Record) -> Iterator[tuple[tuple[str, int], _Given]]:
    synced = history.setup.flush_mode != ASYNC_FLUSH
    for sent in history.placed:
        durable = synced and sent.status == SEND_OK
        step = step_at(sent.span.began)
        yield (sent.queue, sent.offset), _Given(sent.span.end, step, sent.message.id, durable)
    for read, message in _delivered(history):
        if message.id and not message.queue:
            yield (read.queue, message.offset), _Given(read.at, _step(read), message.id, synced)


def recovered_prefix(history: Record) -> Finding:
    """FLUSH-5 RecoveredPrefix: a recovery leaves the log up to some point, unchanged.

    Judges messages that were acknowledged as stored. The client is the only one, so its order is the order of
    the log. If one message is lost, all messages stored after it before the crash must be lost too. A lost
    message must not reappear. Not judged: messages that were not read after the recovery.
    """
    tally = Tally()
    _altered(history, tally)
    sends = [sent for sent in history.stored if history.deaths.between(sent.span.end, NEVER)]
    gone: set[str] = set()
    last_known = {sent.message.id: _life(history, sent.span.end) for sent in sends}
    """Message id to the last broker start after which the message certainly existed."""
    for life in range(1, len(history.starts.at) + 1):
        holes: list[str] = []
        for sent in sends:
            name, stored_in = sent.message.id, _life(history, sent.span.end)
            if stored_in >= life:
                continue
            present, absent = _in_life(history, life, sent)
            tally.looked += present or absent
            if present:
                if name in gone:
                    tally.found(f"{name} was lost and reappeared after start {life}", msg_id=name)
                for hole in holes:
                    if last_known[hole] >= stored_in:
                        text = f"{name} survived start {life}, but {hole}, stored before it, did not"
                        tally.found(text, msg_id=name)
                last_known[name] = life
            elif absent and name not in gone:
                gone.add(name)
                holes.append(name)
    return tally.finding("recovered")


def _life(history: Record, index: int) -> int:
    return bisect_right(history.starts.at, index)


def _in_life(history: Record, life: int, sent: Sent) -> tuple[bool, bool]:
    """Return whether the message was read in that life of the broker, and whether reads show that it is gone.

    It is gone if another message is at its offset, or if the queue ends before that offset.
    """
    there = history.once(_read_in).get((life, sent.queue), {})
    present = sent.message.id in there.values()
    replaced = sent.offset in there and there[sent.offset] != sent.message.id
    cut = history.once(_least_end).get((life, sent.queue), NEVER) <= sent.offset
    return present, not present and (replaced or cut)


def _read_in(history: Record) -> dict[tuple[int, str], dict[int, str]]:
    """Return the id read at each offset, by broker start and queue."""
    there: dict[tuple[int, str], dict[int, str]] = defaultdict(dict)
    for read, message in _delivered(history):
        there[_life(history, read.at), read.queue][message.offset] = message.id
    return there


def _least_end(history: Record) -> dict[tuple[int, str], int]:
    """Return the lowest end of each queue that was observed, by broker start and queue."""
    least: dict[tuple[int, str], int] = {}
    for index, _, queue, end in history.once(_ends):
        at = _life(history, index), queue
        least[at] = min(end, least.get(at, end))
    return least


def _altered(history: Record, tally: Tally) -> None:
    known = {sent.message.id: sent for sent in history.stored}
    for read, message in _delivered(history):
        if not history.deaths.between(-1, read.at):
            continue
        sent = known.get(message.id)
        if message.id not in history.by_id:
            _found(tally, read, message, "was recovered but never sent")
        elif sent and sent.offset != message.offset:
            _found(tally, read, message, f"was stored at offset {sent.offset}")
        elif sent and sent.message.body != message.body:
            _found(tally, read, message, "was recovered with another body")


# Delivery to a consumer


def queue_order(history: Record) -> Finding:
    """DELIV-4 QueueOrder: a pull returns the queue from the requested offset, in order and without gaps.

    Messages that one producer sent one after another, each acknowledged, are in the queue in that order. A
    message that was read once stays at its offset, as long as the flush mode protects it.
    """
    tally = Tally()
    turn = {sent.message.id: number for number, sent in enumerate(history.stored)}
    first: dict[str, tuple[Read, Delivered]] = {}
    for read in history.reads:
        tally.looked += 1
        if not read.messages and read.offset < read.max:
            text = f"step {_step(read)} found nothing at offset {read.offset}, but the queue continues"
            tally.found(f"{text} to {read.max}", queue=read.queue)
        expected = list(range(read.offset, read.next))
        if [message.offset for message in read.messages] != expected:
            got = ", ".join(str(message.offset) for message in read.messages)
            text = f"step {_step(read)} returned offsets {got or 'none'}, {expected} expected"
            tally.found(text, queue=read.queue)
        turns = [turn[message.id] for message in read.messages if message.id in turn]
        if turns != sorted(turns):
            order = ", ".join(message.id for message in read.messages)
            tally.found(f"step {_step(read)} returned {order}, sent in another order")
        for message in read.messages:
            first.setdefault(message.id, (read, message))
    for read, message in first.values():
        _, lost = _fate(history, message.id, read.queue, message.offset, read.at, _promised)
        if lost:
            _found(tally, read, message, f"was readable, then {lost}")
    return tally.finding("pulls")


def _delivered(history: Record) -> Iterator[tuple[Read, Delivered]]:
    return ((read, message) for read in history.reads for message in read.messages)


def _step(read: Read) -> int:
    return step_at(read.span.began)


def _found(tally: Tally, read: Read, message: Delivered, reason: str) -> None:
    text = f"step {_step(read)} pulled {message.id or 'a record'} at offset {message.offset}; it {reason}"
    tally.found(text, msg_id=message.id, queue_offset=message.offset)


CHECKERS: Final[dict[str, Checker]] = {
    "FLUSH-1": sync_acked_durable,
    "FLUSH-2": async_acked_survives_process_crash,
    "FLUSH-3": queue_points_into_log,
    "FLUSH-4": queue_offsets_dense,
    "FLUSH-5": recovered_prefix,
    "FLUSH-8": recovery_ends,
    "DELIV-1": no_acked_lost,
    "DELIV-2": phantom,
    "DELIV-4": queue_order,
    "DELIV-5": offset_regression,
}
"""Catalogue id to its checker."""

OF_STEPS: Final[dict[str, Callable[[History], Finding]]] = {"FLUSH-7": send_answered}
"""Catalogue id to the checker of the steps of a run, for invariants whose facts a record does not have."""
