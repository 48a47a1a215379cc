"""Rules about acknowledged messages: lost, truncated, temporarily hidden, or not read yet."""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Final, NamedTuple

from mqproof.conformance.engine.finding import Finding, Tally, not_judged
from mqproof.conformance.history.record import NEVER, SEND_OK, Read, Record, Sent, Span, is_own
from mqproof.conformance.history.rules.service import calm
from mqproof.report.model import Verdict, Witness

_MS: Final = 1_000_000


def lost_write(history: Record) -> Finding:
    """A01: a message answered SEND_OK whose place a reader has passed was delivered to some client."""
    tally = Tally()
    for sent, lost in _passed(history):
        if sent.status == SEND_OK:
            tally.looked += 1
            if lost and history.excuse(sent):
                tally.explained += 1
            elif lost:
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
                if history.excuse(sent):
                    tally.explained += 1
                else:
                    _lose(tally, sent, "no failure that this status warns of happened")
    return tally.finding("stored")


def acked_then_truncated(history: Record) -> Finding:
    """C02: a queue never permanently ends before an acknowledged message."""
    tally = Tally()
    vanished = _vanished(history)
    tally.looked = vanished.looked
    for sent in vanished.cut:
        if sent.status == SEND_OK:
            if history.excuse(sent):
                tally.explained += 1
            else:
                _lose(tally, sent, "its queue ends before it")
    return tally.finding("ends")


def stale(history: Record) -> Finding:
    """A14: readable messages stay readable, and acknowledged ones become so within `visible_within_ms`."""
    tally = Tally()
    vanished = _vanished(history)
    tally.looked = vanished.looked
    for text, queue, offset in vanished.flickered:
        tally.found(text, queue=queue, offset=offset)
    return tally.finding("ends", late=vanished.late)


def resurrected(history: Record) -> Finding:
    """C03: messages that a restart removed do not reappear."""
    tally = Tally()
    vanished = _vanished(history)
    tally.looked = vanished.looked if history.starts.at else 0
    for text, queue, offset in vanished.back:
        tally.found(text, queue=queue, offset=offset)
    return tally.finding("ends")


def unseen(history: Record) -> Finding:
    """A02: acknowledged messages that were not delivered by the end: lost or late, which is unknown."""
    lost = gone(history) | {id(sent) for sent, _ in _left_out(history)[0]}
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
    missing, tally.looked = _left_out(history)
    for sent, group in missing:
        if history.excuse(sent):
            tally.explained += 1
        else:
            _lose(tally, sent, f"{group} read everything without it")
    return tally.finding("acknowledged")


def _left_out(history: Record) -> tuple[list[tuple[Sent, str]], int]:
    """Return messages that draining groups did not receive, and the number examined.

    Messages that other rules report as lost are not included.
    """
    return history.once(_judge_drains)


def _judge_drains(history: Record) -> tuple[list[tuple[Sent, str]], int]:
    drained: dict[tuple[str, str], Span] = {}
    for step in history.drains:
        if step.span.end < NEVER:
            for topic in step.value.topics:
                drained[step.value.group, topic] = step.span
    if not drained:
        return [], 0
    delivered: dict[str, set[str]] = {group: set() for group, _ in drained}
    for read in history.reads:
        if read.group in delivered:
            delivered[read.group].update([message.id for message in read.messages])
    of_topic: dict[str, list[Sent]] = defaultdict(list)
    for sent in history.stored:
        of_topic[sent.topic].append(sent)
    missing, looked, lost, expired = [], 0, gone(history), history.once(_expired)
    within = history.setup.deliver_within_ms
    for (group, topic), drain in drained.items():
        tags = history.tags.get(group, ())
        due = -1 if within is None else drain.began - within * _MS
        for sent in of_topic[topic]:
            if sent.message.deliver_at and sent.message.deliver_at > due:
                continue
            selected = not tags or sent.message.tag in tags
            if sent.span.end < drain.start and selected:
                looked += 1
                left = sent.offset < 0 or sent.offset >= expired.get(sent.queue, 0)
                if left and sent.message.id not in delivered[group] and id(sent) not in lost:
                    missing.append((sent, group))
    return missing, looked


def gone(history: Record) -> set[int]:
    """Return the sends (`id`) whose message is lost.

    A reader passed them, or an observed queue end is before them.
    """
    return history.once(_judge_gone)


def _judge_gone(history: Record) -> set[int]:
    return {id(sent) for sent, lost in _passed(history) if lost} | history.once(truncated)


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
    worst, newest = 0, dict[tuple[str, str, str], int]()
    bound, draining = history.setup.lag_max_ms, {step.value.group for step in history.drains}
    for read in history.reads:
        acked = earliest.get(read.queue)
        if read.kind != "poll" or read.group in draining or acked is None:
            continue
        at = (read.group, read.client, read.queue)
        reached = max(read.offset, read.next) - 1  # a filtered queue's end, too
        last = newest[at] = max([newest.get(at, reached), reached, *(m.offset for m in read.messages)])
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


def _lose(tally: Tally, sent: Sent, why: str) -> None:
    where = f"at {sent.offset} of {sent.queue}" if sent.offset >= 0 else f"in {sent.topic}"
    text = f"{sent.message.id} was answered {sent.status} {where}; {why}"
    tally.found(text, id=sent.message.id, queue=sent.queue, offset=sent.offset)


def _unseen(sent: Sent) -> Witness:
    where = f"at {sent.offset} of {sent.queue}" if sent.offset >= 0 else f"in {sent.topic}"
    return Witness(f"{sent.message.id} was answered {sent.status} {where}; no client received it")


def _passed(history: Record) -> list[tuple[Sent, bool]]:
    """Return each send that was delivered or whose place a reader passed, with whether it is lost.

    A reader passes the places between the first and last messages delivered to its group in a queue, if its
    tags select them. Messages that expired at the front or were truncated at the end are not judged.
    """
    return history.once(_judge_passed)


def _judge_passed(history: Record) -> list[tuple[Sent, bool]]:
    expired, cut = history.once(_expired), history.once(truncated)
    seen, judged = history.seen, []
    for sent in history.placed:
        if sent.message.id in seen:
            judged.append((sent, False))
        elif id(sent) not in cut and sent.offset >= expired.get(sent.queue, 0) and is_passed(history, sent):
            judged.append((sent, True))
    return judged


def is_passed(history: Record, sent: Sent) -> bool:
    """Return whether a reader that selects the message passed its place."""
    tags = history.tags
    for group, (low, high) in history.once(_reader_spans).get(sent.queue, {}).items():
        if low < sent.offset < high and (group not in tags or sent.message.tag in tags[group]):
            return True
        if sent.offset < low and history.group(group).from_start and group not in tags:
            return True
    return False


def _reader_spans(history: Record) -> dict[str, dict[str, list[int]]]:
    """Return, by queue and group, the lowest and the highest offset at which a read began and ended."""
    spans: dict[str, dict[str, list[int]]] = defaultdict(dict)
    for read in history.reads:
        if read.messages:
            low, high = read.messages[0].offset, read.messages[-1].offset
            span = spans[read.queue].setdefault(read.group, [low, high])
            if low < span[0]:
                span[0] = low
            if high > span[1]:
                span[1] = high
    return spans


def truncated(history: Record) -> set[int]:
    """Return the sends (`id`) whose queue permanently ended before their message."""
    return {id(sent) for sent in _vanished(history).cut}


def _expired(history: Record) -> dict[str, int]:
    """Return, for each queue, the largest first offset that any bounds request returned."""
    expired: dict[str, int] = {}
    for step in history.bounds:
        expired[step.value.queue] = max(expired.get(step.value.queue, 0), step.value.min)
    return expired


@dataclass(slots=True)
class _Vanished:
    """Conclusions from observations of queue ends about messages that were known to be stored."""

    looked: int = 0
    late: int = 0
    """Number of acknowledged messages that were not readable yet, within the allowed time."""
    cut: list[Sent] = field(default_factory=list)
    flickered: list[tuple[str, str, int]] = field(default_factory=list)
    """Each element is (text of the finding, queue, offset)."""
    back: list[tuple[str, str, int]] = field(default_factory=list)


@dataclass(slots=True)
class _Ends:
    """Observations of one queue's end at one node that contradict a known message, ordered by their start."""

    start: list[int] = field(default_factory=list)
    stop: list[int] = field(default_factory=list)
    began: list[int] = field(default_factory=list)
    offset: list[int] = field(default_factory=list)
    _least: list[list[int]] = field(default_factory=list)
    """At index i of list k: the minimum offset of i .. i + 2**k - 1."""

    def deny(self, offset: int, begin: int, stop: int) -> bool:
        """Return whether an observation in [begin, stop) ends the queue at or before the offset."""
        if begin >= stop:
            return False
        if not self._least:
            self._least.append(self.offset)
            while len(row := self._least[-1]) > (step := 1 << (len(self._least) - 1)):
                self._least.append(list(map(min, row, row[step:])))
        level = (stop - begin).bit_length() - 1
        row = self._least[level]
        return min(row[begin], row[stop - (1 << level)]) <= offset


class _Sightings(NamedTuple):
    first: Read
    last: Read


def _vanished(history: Record) -> _Vanished:
    return history.once(_judge_vanished)


def _judge_vanished(history: Record) -> _Vanished:
    result = _Vanished()
    ends = _denials(history, result)
    # An offset freed by a crash later holds another message: that is not a reappearance of the first one.
    sightings: dict[tuple[str, str], dict[tuple[int, str], _Sightings]] = {view: {} for view in ends}
    for read in history.reads if ends else ():
        if (seen := sightings.get((read.queue, read.node))) is not None:
            for message in read.messages:
                place = message.offset, message.id
                before = seen.get(place)
                seen[place] = _Sightings(before.first if before else read, read)
    for (queue, node), observed in ends.items():
        seen = sightings[queue, node]
        acked = {(sent.offset, sent.message.id): sent for sent in history.acked.get(queue, {}).values()}
        for place in sorted({*acked, *seen}):
            _judge_offset(history, result, observed, queue, place[0], acked.get(place), seen.get(place))
    return result


def _denials(history: Record, result: _Vanished) -> dict[tuple[str, str], _Ends]:
    """Return, by queue and node, the observed ends that are before a message already known at the request."""
    acks: dict[str, tuple[list[int], list[int]]] = {}
    for sent in history.placed:
        _rise(acks.setdefault(sent.queue, ([], [])), sent.span.end, sent.offset)
    reads: dict[tuple[str, str], tuple[list[int], list[int]]] = {}
    reported_ends: list[tuple[str, str, int, Span]] = []
    for read in history.reads:
        view = read.queue, read.node
        risen = reads.get(view)
        if risen is None:
            risen = reads[view] = ([], [])
        messages = read.messages
        if messages and (not risen[1] or messages[-1].offset > risen[1][-1]):
            _rise(risen, read.at, messages[-1].offset)
        if read.kind == "poll" and (read.max >= 0 or not messages):
            result.looked += 1
            end = read.max if read.max >= 0 else read.offset
            indexes, offsets = acks.get(read.queue, _NOTHING)
            place = bisect_left(indexes, read.span.start)
            # Most polls contradict nothing: no message beyond the observed end was known at the request.
            if (place and offsets[place - 1] >= end) or (risen[1] and risen[1][-1] >= end):
                reported_ends.append((read.queue, read.node, end, read.span))
    result.looked += len(history.bounds)
    reported_ends += [
        (step.value.queue, step.value.node, step.value.max, step.span) for step in history.bounds
    ]
    denials: dict[tuple[str, str], _Ends] = {}
    for queue, node, end, span in reported_ends:
        known = acks.get(queue, _NOTHING), reads.get((queue, node), _NOTHING)
        if end >= 0 and any(_highest(each, span.start) >= end for each in known):
            ends = denials.setdefault((queue, node), _Ends())
            ends.start.append(span.start)
            ends.stop.append(span.end)
            ends.began.append(span.began)
            ends.offset.append(end)
    for ends in denials.values():
        order = sorted(range(len(ends.start)), key=ends.start.__getitem__)
        for name in ("start", "stop", "began", "offset"):
            values = getattr(ends, name)
            setattr(ends, name, [values[place] for place in order])
    return denials


_NOTHING: Final[tuple[list[int], list[int]]] = ([], [])


def _due(history: Record, ends: _Ends, sent: Sent) -> int:
    """Return the index of the first observation that should have found the message.

    A fault delays it until the fault is over. A message with a weaker status than SEND_OK is never due.
    """
    within, everything = history.setup.visible_within_ms, len(ends.start)
    if within is None or sent.status != SEND_OK:
        return everything
    due = sent.span.ended + within * _MS
    for begin, end in history.once(_disturbed):
        if begin <= due and end > sent.span.ended:
            due = max(due, end + within * _MS)
    return bisect_right(ends.began, due)


def _disturbed(history: Record) -> list[tuple[int, int]]:
    """Return the intervals in which faults were active, in nanoseconds."""
    times = {fault.index: fault.time for fault in history.faults}
    stretches = calm(history)
    over = [*(stretch.since for stretch in stretches[1:]), NEVER]
    return [
        (times[stretch.end], end)
        for stretch, end in zip(stretches, over, strict=False)
        if stretch.end < NEVER
    ]


def _rise(known: tuple[list[int], list[int]], index: int, offset: int) -> None:
    """Record that the queue has this offset from this index on; only if it exceeds earlier ones."""
    indexes, offsets = known
    if not offsets or offset > offsets[-1]:
        indexes.append(index)
        offsets.append(offset)


def _highest(known: tuple[list[int], list[int]], index: int) -> int:
    place = bisect_left(known[0], index)
    return known[1][place - 1] if place else -1


def _judge_offset(
    history: Record, result: _Vanished, ends: _Ends, queue: str, offset: int,
    sent: Sent | None, seen: _Sightings | None,
) -> None:  # fmt: skip
    where, everything = f"offset {offset} of {queue}", len(ends.start)
    if seen:
        after = bisect_right(ends.start, seen.first.at)
        before = bisect_left(ends.start, seen.last.span.start)
        # For the last reader's own operation, the order of the two is unknown.
        while before > after and ends.stop[before - 1] > seen.last.span.start:
            before -= 1
        if ends.deny(offset, after, before):
            if history.starts.between(ends.start[after], seen.last.at):
                result.back.append(
                    (f"{where} was readable, disappeared, and returned after a restart", queue, offset)
                )
            else:
                result.flickered.append(
                    (f"{where} was readable, disappeared, and was readable again", queue, offset)
                )
        if sent and ends.deny(offset, bisect_right(ends.start, seen.last.at), everything):
            result.cut.append(sent)
            return
    if sent is None:
        return
    known = sent.span.end
    until = bisect_left(ends.start, seen.first.span.start) if seen else everything
    if not ends.deny(offset, bisect_right(ends.start, known), until):
        return
    # A restarted broker has recovered everything when it serves; before a restart, reads may lag behind
    # appends.
    restart = bisect_right(history.starts.at, known)
    since = (
        bisect_right(ends.start, history.starts.at[restart])
        if restart < len(history.starts.at)
        else everything
    )
    due = _due(history, ends, sent)
    if seen:
        if ends.deny(offset, due, until):
            result.flickered.append((f"{where} was acknowledged, but not readable in time", queue, offset))
        elif ends.deny(offset, since, until):
            text = f"{where} was acknowledged, disappeared after a restart, and returned"
            result.back.append((text, queue, offset))
        else:
            result.late += 1
    elif ends.deny(offset, min(due, since), until):
        result.cut.append(sent)
    else:
        result.late += 1
