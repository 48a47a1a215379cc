"""The named invariants over what a client saw; each a pure function of a history.

A checker returns a verdict with counts and witnesses. Having seen nothing that could show a violation is
unknown, never held. A send whose outcome is indeterminate is neither lost nor a phantom, come what may.
Names and ids are those of spec/invariants.toml.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from conformance.chronicle import SYNC_FLUSH, Chronicle, Moment, Within, chronicle, promised, timeline
from conformance.history.finding import Finding
from conformance.history.of_steps import as_lines
from conformance.history.record import record
from conformance.history.rules.offsets import offset_regression
from conformance.history.rules.places import phantom
from conformance.history.steps import History, Pull, Restart, Send, checksum
from conformance.target import Outcome, PulledMessage, PullStatus
from report.model import Verdict, Witness

Checker = Callable[[Chronicle], Finding]


def judge(history: History) -> dict[str, Finding]:
    """Every named invariant, by id."""
    told = chronicle(history)
    return {invariant: checker(told) for invariant, checker in CHECKERS.items()}


def _finding(counts: dict[str, int], looked_at: int, witnesses: list[Witness]) -> Finding:
    if witnesses:
        return Finding(Verdict.VIOLATED, counts, tuple(witnesses))
    return Finding(Verdict.HELD if looked_at else Verdict.UNKNOWN, counts)


# What is durable


def sync_acked_durable(told: Chronicle) -> Finding:
    """FLUSH-1 SyncAckedDurable: what was answered SEND_OK is there in every life after a crash.

    Says nothing about messages whose queue nobody read after the crash.
    """
    if told.history.setup.flush_mode != SYNC_FLUSH:
        return _finding({}, 0, [])
    return _survives(told, lambda answered, seen: seen.crashes > answered.crashes)


def async_acked_survives_process_crash(told: Chronicle) -> Finding:
    """FLUSH-2 AsyncAckedSurvivesProcessCrash: the same under ASYNC_FLUSH, as long as only processes died."""
    if told.history.setup.flush_mode == SYNC_FLUSH:
        return _finding({}, 0, [])
    return _survives(
        told,
        lambda answered, seen: (
            seen.crashes > answered.crashes and seen.system_crashes == answered.system_crashes
        ),
    )


def no_acked_lost(told: Chronicle) -> Finding:
    """DELIV-1 NoAckedLost: what was answered SEND_OK is there, and no read has passed it by.

    What nobody has read yet is not lost: it counts as `unseen`.
    """
    return _survives(told, promised(told.history))


def _survives(told: Chronicle, within: Within) -> Finding:
    acknowledged = told.stored("SEND_OK")
    seen = 0
    lost = []
    for moment, send in acknowledged:
        fate = told.fate(moment, send.msg_id, send.queue_id, send.answer.queue_offset, within)
        seen += fate.seen
        if fate.lost:
            text = f"{send.msg_id} was answered SEND_OK at step {moment.step}; {fate.lost}"
            lost.append(Witness(text, {"msg_id": send.msg_id, "queue_id": str(send.queue_id)}))
    counts = {
        "attempted": len(told.sends),
        "acknowledged": len(acknowledged),
        "seen": seen,
        "unseen": max(0, len(acknowledged) - seen - len(lost)),
        "lost": len(lost),
    }
    return _finding(counts, seen, lost)


def recovery_ends(told: Chronicle) -> Finding:
    """FLUSH-8 RecoveryEnds: a broker that is started again serves again. Cannot tell slow from never: what a
    target gives up on counts as never."""
    restarts = [(moment, op) for moment, op in timeline(told.history) if isinstance(op, Restart)]
    failed = [
        Witness(f"step {moment.step}: the broker did not come up: {restart.failure}")
        for moment, restart in restarts
        if restart.failure
    ]
    return _finding({"restarts": len(restarts), "failed": len(failed)}, len(restarts), failed)


# What a queue holds


def queue_points_into_log(told: Chronicle) -> Finding:
    """FLUSH-3 QueuePointsIntoLog: what is pulled is a whole record of the topic, queue and offsets asked
    for, with the body that was sent. Records of messages that nobody sent are NoPhantom's business."""
    sent = {send.msg_id: checksum(send.body) for _, send in told.sends}
    wrong = []
    for moment, pull, message in _pulled(told):
        if reason := _misplaced(told.history.setup.topic, pull, message):
            wrong.append(_at(moment, message, reason))
        elif message.msg_id in sent and checksum(message.body) != sent[message.msg_id]:
            wrong.append(_at(moment, message, "has another body than was sent"))
    records = sum(1 for _ in _pulled(told))
    return _finding({"records": records, "wrong": len(wrong)}, records, wrong)


def _misplaced(topic: str, pull: Pull, message: PulledMessage) -> str:
    if not message.msg_id:
        return "cannot be read as a message"
    if (message.topic, message.queue_id) != (topic, pull.queue_id):
        return f"belongs to queue {message.queue_id} of {message.topic}, queue {pull.queue_id} was asked for"
    if not pull.offset <= message.queue_offset < pull.answer.next_offset:
        return f"has an offset outside {pull.offset}..{pull.answer.next_offset - 1}"
    return ""


@dataclass(frozen=True, slots=True)
class _Given:
    """An offset's holder; `durable` when a crash of the system does not free the offset."""

    moment: Moment
    msg_id: str
    durable: bool


def queue_offsets_dense(told: Chronicle) -> Finding:
    """FLUSH-4 QueueOffsetsDense: no offset is given twice, none is left out.

    An offset left out shows by an offset that is higher than all that can have been stored; sends that
    were lost again, or whose outcome is open, count as stored, so that small gaps after them stay hidden.
    """
    synced = told.history.setup.flush_mode == SYNC_FLUSH
    given: dict[tuple[int, int], _Given] = {}
    possible: dict[int, int] = {}
    wrong = []

    def give(now: _Given, queue_id: int, offset: int) -> None:
        before = given.get((queue_id, offset))
        alive = before and (before.durable or before.moment.system_crashes == now.moment.system_crashes)
        if before and alive and before.msg_id != now.msg_id:
            text = f"offset {offset} of queue {queue_id} is {before.msg_id}'s at step {before.moment.step}"
            wrong.append(Witness(f"{text} and {now.msg_id}'s at step {now.moment.step}", {}))
        given[queue_id, offset] = now

    for moment, operation in timeline(told.history):
        match operation:
            case Send(queue_id, msg_id, _, answer) if answer.outcome is not Outcome.FAILED:
                possible[queue_id] = possible.get(queue_id, 0) + 1
                if answer.outcome is Outcome.OK:
                    durable = synced and answer.status == "SEND_OK"
                    give(_Given(moment, msg_id, durable), queue_id, answer.queue_offset)
            case Pull(queue_id, _, _, answer):
                for message in answer.messages:
                    if message.msg_id and message.queue_id == queue_id:
                        give(_Given(moment, message.msg_id, synced), queue_id, message.queue_offset)
    for (queue_id, offset), holder in given.items():
        if offset >= (count := possible.get(queue_id, 0)):
            text = f"{holder.msg_id} has offset {offset} of queue {queue_id} at step {holder.moment.step}"
            wrong.append(Witness(f"{text}, but at most {count} messages can be in it", {}))
    wrong += _stored_twice(told)
    return _finding({"offsets": len(given), "wrong": len(wrong)}, len(given), wrong)


def _stored_twice(told: Chronicle) -> Iterator[Witness]:
    places: dict[str, tuple[int, int]] = {}
    for moment, pull, message in _pulled(told):
        place = (pull.queue_id, message.queue_offset)
        if message.msg_id and places.setdefault(message.msg_id, place) != place:
            yield _at(moment, message, f"was at offset {places[message.msg_id][1]} before")


def recovered_prefix(told: Chronicle) -> Finding:
    """FLUSH-5 RecoveredPrefix: what a recovery leaves is the log up to some point, unaltered.

    Judges messages that were answered as stored: the caller is alone, so theirs is the log's order. Where one
    is lost, all that were stored after it before the crash must be lost too, and a message once lost must
    not come back. Says nothing about what nobody read after the recovery.
    """
    moments = [moment for moment, _ in timeline(told.history)]
    crashes = max((moment.crashes for moment in moments), default=0)
    sends = [(moment, send) for moment, send in told.stored() if crashes > moment.crashes]
    known = {send.msg_id: send for _, send in told.stored()}
    wrong = list(_altered(told, known))
    examined = 0
    gone: set[str] = set()
    last_known = {send.msg_id: answered.life for answered, send in sends}  # the life it was surely there in
    for life in sorted({moment.life for moment in moments} - {0}):
        holes: list[str] = []
        for answered, send in sends:
            name = send.msg_id
            if answered.life >= life:
                continue
            present, absent = _in_life(told, life, send)
            examined += present or absent
            if present:
                if name in gone:
                    wrong.append(Witness(f"{name} was lost and is back in life {life}", {"msg_id": name}))
                for hole in holes:
                    if last_known[hole] >= answered.life:
                        text = f"{name} survived into life {life}, {hole}, stored before it, did not"
                        wrong.append(Witness(text, {"msg_id": name}))
                last_known[name] = life
            elif absent and name not in gone:
                gone.add(name)
                holes.append(name)
    return _finding({"recovered": examined, "wrong": len(wrong)}, examined, wrong)


def _in_life(told: Chronicle, life: int, send: Send) -> tuple[bool, bool]:
    """(it was read in that life, that life's queue shows that it is not there)"""
    offset = send.answer.queue_offset
    there = {
        message.queue_offset: message.msg_id
        for moment, pull, message in _pulled(told)
        if moment.life == life and pull.queue_id == send.queue_id
    }
    present = send.msg_id in there.values()
    ends = (end for moment, queue_id, end in told.ends if moment.life == life and queue_id == send.queue_id)
    replaced = offset in there and there[offset] != send.msg_id
    return present, not present and (replaced or any(end <= offset for end in ends))


def _altered(told: Chronicle, known: dict[str, Send]) -> Iterator[Witness]:
    sent = {send.msg_id for _, send in told.sends}
    for moment, _, message in _pulled(told):
        if not moment.crashes:
            continue
        send = known.get(message.msg_id)
        if message.msg_id not in sent:
            yield _at(moment, message, "was recovered but never sent")
        elif send and send.answer.queue_offset != message.queue_offset:
            yield _at(moment, message, f"was stored at offset {send.answer.queue_offset}")
        elif send and checksum(send.body) != checksum(message.body):
            yield _at(moment, message, "was recovered with another body")


# What a consumer is given


def no_phantom(told: Chronicle) -> Finding:
    """DELIV-2 NoPhantom: nothing is delivered that was not sent before, or whose send certainly failed."""
    return phantom(record(as_lines(told.history)))


def queue_order(told: Chronicle) -> Finding:
    """DELIV-4 QueueOrder: a pull returns the queue from the offset asked for, one by one, nothing left out;
    what one producer sent and was answered in turn is in the queue in that order; and what was read once
    stays where it was, as long as the flush mode covers it."""
    wrong = []
    for moment, pull in told.pulls:
        answer = pull.answer
        if answer.status is not PullStatus.FOUND:
            if pull.offset < answer.max_offset:
                text = f"step {moment.step} found nothing at offset {pull.offset}, the queue goes on"
                wrong.append(Witness(f"{text} to {answer.max_offset}", {"queue_id": str(pull.queue_id)}))
            continue
        expected = list(range(pull.offset, answer.next_offset))
        if [message.queue_offset for message in answer.messages] != expected:
            got = ", ".join(str(message.queue_offset) for message in answer.messages)
            text = f"step {moment.step} returned offsets {got or 'none'}"
            wrong.append(Witness(f"{text}, {expected} expected", {"queue_id": str(pull.queue_id)}))
    wrong += _against_the_producer(told)
    wrong += _read_and_gone(told)
    return _finding({"pulls": len(told.pulls), "wrong": len(wrong)}, len(told.pulls), wrong)


def _against_the_producer(told: Chronicle) -> Iterator[Witness]:
    turn = {send.msg_id: number for number, (_, send) in enumerate(told.stored())}
    for moment, pull in told.pulls:
        turns = [turn[message.msg_id] for message in pull.answer.messages if message.msg_id in turn]
        if turns != sorted(turns):
            order = ", ".join(message.msg_id for message in pull.answer.messages)
            yield Witness(f"step {moment.step} returned {order}, sent in another order", {})


def _read_and_gone(told: Chronicle) -> Iterator[Witness]:
    first: dict[str, tuple[Moment, Pull, PulledMessage]] = {}
    for moment, pull, message in _pulled(told):
        first.setdefault(message.msg_id, (moment, pull, message))
    for moment, pull, message in first.values():
        fate = told.fate(moment, message.msg_id, pull.queue_id, message.queue_offset, promised(told.history))
        if fate.lost:
            yield _at(moment, message, f"was there, then {fate.lost}")


def offset_monotone(told: Chronicle) -> Finding:
    """DELIV-5 OffsetMonotone: in one life of the broker a committed offset goes back only by a reset."""
    return offset_regression(record(as_lines(told.history)))


def _pulled(told: Chronicle) -> Iterator[tuple[Moment, Pull, PulledMessage]]:
    for moment, pull in told.pulls:
        for message in pull.answer.messages:
            yield moment, pull, message


def _at(moment: Moment, message: PulledMessage, reason: str) -> Witness:
    name = message.msg_id or "a record"
    text = f"step {moment.step} pulled {name} at offset {message.queue_offset}; it {reason}"
    return Witness(text, {"msg_id": message.msg_id, "queue_offset": str(message.queue_offset)})


CHECKERS: Final[dict[str, Checker]] = {
    "FLUSH-1": sync_acked_durable,
    "FLUSH-2": async_acked_survives_process_crash,
    "FLUSH-3": queue_points_into_log,
    "FLUSH-4": queue_offsets_dense,
    "FLUSH-5": recovered_prefix,
    "FLUSH-8": recovery_ends,
    "DELIV-1": no_acked_lost,
    "DELIV-2": no_phantom,
    "DELIV-4": queue_order,
    "DELIV-5": offset_monotone,
}
"""Catalogue id to its checker."""
