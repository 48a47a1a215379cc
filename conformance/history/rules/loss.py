"""Rules about acknowledged messages: lost, truncated, temporarily hidden, or not read yet."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from itertools import accumulate
from typing import Final

from mqproof.conformance.engine.finding import Finding, Tally, not_judged
from mqproof.conformance.history.record import NEVER, SEND_OK, Read, Reason, Record, Sent, Span, is_own
from mqproof.conformance.history.rules.vanished import truncated, vanished
from mqproof.report.model import Verdict, Witness

_MS: Final = 1_000_000


def lost_write(history: Record) -> Finding:
    """A01: a message answered SEND_OK whose place a reader has passed was delivered to some client."""
    tally = Tally()
    for sent, line in _passed(history):
        if sent.status == SEND_OK:
            tally.looked += 1
            if line is not None and history.excuse(sent):
                tally.explained += 1
            elif line is not None:
                _lose(tally, sent, "a reader passed its offset")
    return tally.finding("acknowledged")


def acknowledgement_class(history: Record) -> Finding:
    """C19: a message stored with a weaker status is lost only after a failure that the status warns of."""
    tally = Tally()
    lost = gone(history)
    for sent in history.placed:
        if sent.status != SEND_OK:
            tally.looked += 1
            if id(sent) in lost:
                if reason := history.excuse(sent):
                    _explain(tally, sent, reason)
                else:
                    _lose(tally, sent, "no failure that this status warns of happened")
    return tally.finding("stored")


def acked_then_truncated(history: Record) -> Finding:
    """C02: a queue never permanently ends before an acknowledged message."""
    tally = Tally()
    found = vanished(history)
    tally.looked = found.looked
    for sent, _ in found.cut:
        if sent.status == SEND_OK:
            if reason := history.excuse(sent):
                _explain(tally, sent, reason)
            else:
                _lose(tally, sent, "its queue ends before it")
    return tally.finding("ends")


def stale(history: Record) -> Finding:
    """A14: readable messages stay readable, and acknowledged ones become so within `visible_within_ms`."""
    tally = Tally()
    found = vanished(history)
    tally.looked = found.looked
    for text, queue, offset in found.flickered:
        tally.found(text, queue=queue, offset=offset)
    return tally.finding("ends", late=found.late)


def resurrected(history: Record) -> Finding:
    """C03: messages that a restart removed do not reappear."""
    tally = Tally()
    found = vanished(history)
    tally.looked = found.looked if history.starts.at else 0
    for text, queue, offset in found.back:
        tally.found(text, queue=queue, offset=offset)
    return tally.finding("ends")


def unseen(history: Record) -> Finding:
    """A02: acknowledged messages that were not delivered by the end: lost or late, which is unknown."""
    lost = gone(history).keys() | {id(sent) for sent, _, _ in left_out(history)[0]}
    acked = [sent for sent in history.stored if sent.status == SEND_OK]
    missing = [s for s in acked if s.message.id not in history.seen and id(s) not in lost and is_own(s.topic)]
    counts = {"acknowledged": len(acked), "unseen": len(missing)}
    if missing or not acked:
        return Finding(Verdict.UNKNOWN, counts, tuple(_unseen(sent) for sent in missing[:4]))
    return Finding(Verdict.HELD, counts)


def lost_after_drain(history: Record) -> Finding:
    """A03: a group that drained its topics received every message acknowledged before the drain began.

    Delayed messages count if they were due before it by `deliver_within_ms`.
    """
    tally = Tally()
    missing, tally.looked = left_out(history)
    for sent, group, _ in missing:
        if history.excuse(sent):
            tally.explained += 1
        else:
            _lose(tally, sent, f"{group} read everything without it")
    return tally.finding("acknowledged")


def left_out(history: Record) -> tuple[list[tuple[Sent, str, Span]], int]:
    """Return the messages that draining groups did not receive, with both, and the number examined.

    Messages that other rules report as lost are not included.
    """
    return history.once(_judge_drains)


def _judge_drains(history: Record) -> tuple[list[tuple[Sent, str, Span]], int]:
    delivered: dict[str, set[str]] = {step.value.group: set() for step in history.drains}
    for read in history.received if delivered else ():
        if read.group in delivered:
            delivered[read.group].update([message.id for message in read.messages])
    for id_, other in history.elsewhere.items():
        for group in other.groups:
            delivered[group].add(id_)
    missing, looked, lost, expired = [], 0, gone(history), history.once(_expired)
    for sent, group, drain in drained(history):
        looked += 1
        is_left = sent.offset < 0 or sent.offset >= expired.get(sent.queue, 0)
        if is_left and sent.message.id not in delivered[group] and id(sent) not in lost:
            missing.append((sent, group, drain))
    return missing, looked


def drained(history: Record) -> Iterator[tuple[Sent, str, Span]]:
    """Yield the messages that a group must have received when it had drained their topic."""
    drains = {
        (step.value.group, topic): step.span
        for step in history.drains
        if step.span.end < NEVER
        for topic in step.value.topics
    }
    of_topic: dict[str, list[Sent]] = defaultdict(list)
    for sent in history.stored if drains else ():
        of_topic[sent.topic].append(sent)
    within = history.setup.deliver_within_ms
    for (group, topic), drain in drains.items():
        tags = history.tags.get(group, ())
        due = -1 if within is None else drain.began - within * _MS
        for sent in of_topic[topic]:
            if sent.message.deliver_at and sent.message.deliver_at > due:
                continue
            if sent.span.end < drain.start and (not tags or sent.message.tag in tags):
                yield sent, group, drain


def gone(history: Record) -> dict[int, Reason]:
    """Return the sends (`id`) whose message is lost, each with the line that shows it.

    A reader passed them, or an observed queue end is before them.
    """
    return history.once(_judge_gone)


def _judge_gone(history: Record) -> dict[int, Reason]:
    passed = {id(sent): ("passed", line) for sent, line in _passed(history) if line is not None}
    return passed | {sent: ("end", line) for sent, line in history.once(truncated).items()}


def realtime_lag(history: Record) -> Finding:
    """A15: the age of a poll's newest message, at least, while newer messages are acknowledged.

    Groups that drain at the end may lag, and lost messages are not waited for.
    """
    tally = Tally()
    lost = gone(history)
    earliest: dict[str, tuple[list[int], list[int]]] = {}
    for queue, places in history.acked.items():
        offsets = sorted(offset for offset, sent in places.items() if id(sent) not in lost)
        ended = [places[offset].span.ended for offset in offsets]
        earliest[queue] = offsets, list(accumulate(reversed(ended), min))[::-1]
    worst, bound = 0, history.setup.lag_max_ms
    for read, last in polled_to(history):
        acked = earliest.get(read.queue)
        if acked is None:
            continue
        tally.looked += 1
        place = bisect_right(acked[0], last)
        lag = read.span.began - acked[1][place] if place < len(acked[1]) else 0
        worst = max(worst, lag)
        if bound is not None and lag > bound * _MS:
            text = f"{read.client} is {lag // _MS} ms behind in {read.queue} at index {read.at}"
            tally.found(text, queue=read.queue, index=read.at)
    counts = {"polls": tally.looked, "worst_ms": worst // _MS}
    if bound is None:
        return not_judged(counts)
    return tally.finding("polls", worst_ms=worst // _MS)


def polled_to(history: Record) -> Iterator[tuple[Read, int]]:
    """Yield the polls of groups that do not drain, with the furthest offset that the member has reached."""
    newest, draining = dict[tuple[str, str, str], int](), {step.value.group for step in history.drains}
    for read in history.polls:
        if read.group not in draining:
            at = (read.group, read.client, read.queue)
            reached = max(read.offset, read.next) - 1  # a filtered queue's end, too
            if read.messages:
                reached = max(reached, *[message.offset for message in read.messages])
            if (before := newest.get(at)) is not None and before > reached:
                reached = before
            newest[at] = reached
            yield read, reached


def _lose(tally: Tally, sent: Sent, why: str) -> None:
    where = f"at {sent.offset} of {sent.queue}" if sent.offset >= 0 else f"in {sent.topic}"
    text = f"{sent.message.id} was answered {sent.status} {where}; {why}"
    tally.found(text, id=sent.message.id, queue=sent.queue, offset=sent.offset)


def _explain(tally: Tally, sent: Sent, reason: Reason) -> None:
    tally.explain(reason, id=sent.message.id, queue=sent.queue, offset=sent.offset)


def _unseen(sent: Sent) -> Witness:
    where = f"at {sent.offset} of {sent.queue}" if sent.offset >= 0 else f"in {sent.topic}"
    return Witness(f"{sent.message.id} was answered {sent.status} {where}; no client received it")


def _passed(history: Record) -> list[tuple[Sent, int | None]]:
    """Return each send that was delivered or whose place a reader passed.

    Each has the index of the read that passed it, if it is lost.

    A reader passes the places between the first and last messages delivered to its group in a queue, if its
    tags select them. Messages that expired at the front or were truncated at the end are not judged.
    """
    return history.once(_judge_passed)


def _judge_passed(history: Record) -> list[tuple[Sent, int | None]]:
    expired, cut = history.once(_expired), history.once(truncated)
    seen, judged = history.seen, list[tuple[Sent, int | None]]()
    for sent in history.placed:
        if sent.message.id in seen:
            judged.append((sent, None))
        elif id(sent) not in cut and sent.offset >= expired.get(sent.queue, 0):
            line = passed_at(history, sent)
            if line is not None:
                judged.append((sent, line))
    return judged


def passed_at(history: Record, sent: Sent) -> int | None:
    """Return the index of a read by which a group that selects the message passed its place, or None."""
    tags = history.tags
    for group, (low, high, line) in history.once(_reader_spans).get(sent.queue, {}).items():
        if low < sent.offset < high and (group not in tags or sent.message.tag in tags[group]):
            return line
        if sent.offset < low and history.group(group).from_start and group not in tags:
            return line
    return None


def _reader_spans(history: Record) -> dict[str, dict[str, list[int]]]:
    """Return, by queue and group, the lowest and the highest offset at which a read began and ended.

    The third number is the index of the read that first ended at the highest.
    """
    spans: dict[str, dict[str, list[int]]] = defaultdict(dict)
    for read in history.received:
        low, high = read.messages[0].offset, read.messages[-1].offset
        span = spans[read.queue].setdefault(read.group, [low, high, read.at])
        if low < span[0]:
            span[0] = low
        if high > span[1]:
            span[1:] = high, read.at
    return spans


def _expired(history: Record) -> dict[str, int]:
    """Return, for each queue, the largest first offset that any bounds request returned."""
    expired: dict[str, int] = {}
    for step in history.bounds:
        expired[step.value.queue] = max(expired.get(step.value.queue, 0), step.value.min)
    return expired
