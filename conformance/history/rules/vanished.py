"""What observations of queue ends show about stored messages: cut off, late, or temporarily hidden."""

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from mqproof.conformance.history.record import NEVER, SEND_OK, Read, Record, Sent, Span
from mqproof.conformance.history.rules.service import calm

_MS: Final = 1_000_000


@dataclass(slots=True)
class Vanished:
    """Conclusions from observations of queue ends about messages that were known to be stored."""

    looked: int = 0
    late: int = 0
    """Number of acknowledged messages that were not readable yet, within the allowed time."""
    cut: list[tuple[Sent, int]] = field(default_factory=list)
    """Each with the index of an answer that shows it."""
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

    def denied_at(self, offset: int, begin: int) -> int | None:
        """Return the line of the first observation from `begin` on that ends the queue before the offset."""
        stop = len(self.start)
        if not self.deny(offset, begin, stop):
            return None
        return next(self.stop[place] for place in range(begin, stop) if self.offset[place] <= offset)


class _Sightings(NamedTuple):
    first: Read
    last: Read


def vanished(history: Record) -> Vanished:
    return history.once(_judge_vanished)


def truncated(history: Record) -> dict[int, int]:
    """Return the sends (`id`) whose queue permanently ended before their message, and a line for each."""
    return {id(sent): line for sent, line in vanished(history).cut}


def _judge_vanished(history: Record) -> Vanished:
    result = Vanished()
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


def _denials(history: Record, result: Vanished) -> dict[tuple[str, str], _Ends]:
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
    history: Record, result: Vanished, ends: _Ends, queue: str, offset: int,
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
        if sent and (line := ends.denied_at(offset, bisect_right(ends.start, seen.last.at))) is not None:
            result.cut.append((sent, line))
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
    elif (line := ends.denied_at(offset, min(due, since))) is not None:
        result.cut.append((sent, line))
    else:
        result.late += 1
