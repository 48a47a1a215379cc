"""The facts of the rules that need a reason for each fact, not only for those that look like anomalies.

A fact is an acknowledged message, a delivered one, or another subject of a rule. Its reason is a kind and the
index of the line of the history that shows it.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterator
from itertools import accumulate
from operator import itemgetter
from typing import Final, NamedTuple

from mqproof.conformance.history.lines import topic_of
from mqproof.conformance.history.record import FAILED, NEVER, OK, SEND_OK, Read, Reason, Record, Sent, is_own
from mqproof.conformance.history.rules.groups import stalled
from mqproof.conformance.history.rules.loss import drained, gone, left_out, passed_at, polled_to
from mqproof.conformance.history.rules.order import assignments, causes_of
from mqproof.conformance.history.rules.vanished import truncated

_MS: Final = 1_000_000
Subject = tuple[int | str, ...]


class Fact(NamedTuple):
    """A fact that needs a reason; None if it has none."""

    subject: Subject
    reason: Reason | None


def _first_reads(history: Record) -> dict[str, int]:
    """Return the index of the first read of each message."""
    found: dict[str, int] = {}
    for read in history.reads:
        for message in read.messages:
            found.setdefault(message.id, read.at)
    for id_, other in history.elsewhere.items():
        found[id_] = min(found.get(id_, NEVER), other.at)
    return found


def _lost_writes(history: Record) -> Iterator[Fact]:
    first, cut = history.once(_first_reads), history.once(truncated)
    for sent in history.placed:
        if sent.status != SEND_OK:
            continue
        subject = sent.span.start, sent.place
        if (index := first.get(sent.message.id)) is not None:
            yield Fact(subject, ("read", index))
        elif passed_at(history, sent) is not None:
            end = ("end", cut[id(sent)]) if id(sent) in cut else None
            yield Fact(subject, history.excuse(sent) or _expired(history, sent) or end)


def _expired(history: Record, sent: Sent) -> Reason | None:
    """Return an answer that the queue begins after the message."""
    steps = history.once(_fronts).get(sent.queue, ()) if sent.offset >= 0 else ()
    return next((("expired", end) for low, end in steps if low > sent.offset), None)


def _fronts(history: Record) -> dict[str, list[tuple[int, int]]]:
    """Return the answers that a queue does not begin at 0: its first offset, and the index of the line."""
    fronts: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for step in history.bounds:
        if step.value.min > 0:
            fronts[step.value.queue].append((step.value.min, step.span.end))
    return fronts


def _undelivered(history: Record) -> Iterator[Fact]:
    first, lost = history.once(_first_reads), gone(history)
    left = {id(sent): drain.start for sent, _, drain in left_out(history)[0]}
    for sent in history.stored:
        if sent.status == SEND_OK and is_own(sent.topic):
            subject = sent.span.start, sent.place
            if (index := first.get(sent.message.id)) is not None:
                yield Fact(subject, ("read", index))
            elif id(sent) in left:
                yield Fact(subject, ("drained", left[id(sent)]))
            else:
                yield Fact(subject, lost.get(id(sent)) or ("open", sent.span.start))


def _drained(history: Record) -> Iterator[Fact]:
    first: dict[tuple[str, str], int] = {}
    for read in history.reads:
        for message in read.messages:
            first.setdefault((read.group, message.id), read.at)
    for id_, other in history.elsewhere.items():
        for group, at in other.groups.items():
            first[group, id_] = min(first.get((group, id_), NEVER), at)
    lost = gone(history)
    for sent, group, _ in drained(history):
        subject = group, sent.span.start, sent.place
        if (index := first.get((group, sent.message.id))) is not None:
            yield Fact(subject, ("read", index))
        else:
            yield Fact(subject, _expired(history, sent) or lost.get(id(sent)) or history.excuse(sent))


def _overdue(history: Record) -> Iterator[Fact]:
    bound, lost = history.setup.lag_max_ms, gone(history)
    polls: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for read, last in polled_to(history) if bound is not None else ():
        polls[read.queue].append((last, read.span.began))
    for queue, mine in polls.items():
        mine.sort()
        latest = list(accumulate((began for _, began in mine), max))
        for offset, sent in history.acked.get(queue, {}).items():
            place = bisect_left(mine, offset, key=itemgetter(0))
            if place and latest[place - 1] - sent.span.ended > (bound or 0) * _MS:
                yield Fact((sent.span.start, sent.place), lost.get(id(sent)))


def _stalled(history: Record) -> Iterator[Fact]:
    lost = gone(history)
    for group, waiting in stalled(history):
        for sent in waiting:
            yield Fact((group, sent.span.start, sent.place), lost.get(id(sent)))


def _phantoms(history: Record) -> Iterator[Fact]:
    by_id = history.by_id
    first = history.once(_first_reads)
    topics: dict[str, set[str]] = {}
    for read, message in history.sights:
        if is_own(read.queue):
            topics.setdefault(message.id, set()).add(topic_of(read.queue))
    sends: dict[str, list[Sent]] = {}
    for sent in history.sends:
        if sent.message.id in first:
            sends.setdefault(sent.message.id, []).append(sent)
    for id_, at in first.items():
        mine = sends.get(id_, [])
        is_sound = any(sent.span.outcome is not FAILED for sent in mine) and topics.get(id_, set()) <= {
            by_id[id_].topic
        }
        start = next((sent.span.start for sent in mine if is_sound and sent.span.start < at), None)
        yield Fact((id_,), None if start is None else ("sent", start))


def _second_places(history: Record) -> Iterator[Fact]:
    places: dict[str, tuple[str, int]] = {}
    again: dict[str, int] = {}
    seen = [(s.message.id, (s.queue, s.offset), s.span.end) for s in history.placed if not s.place]
    seen += [(m.id, (r.queue, m.offset), r.at) for r, m in history.sights if is_own(r.queue)]
    for id_, place, at in seen:
        if places.setdefault(id_, place) != place:
            again.setdefault(id_, at)
    sends: dict[str, list[Sent]] = {}
    for sent in history.sends if again else ():
        sends.setdefault(sent.message.id, []).append(sent)
    for id_, at in again.items():
        mine = sends.get(id_, [])
        retried = next((sent.span.start for sent in mine if sent.attempts > 1 or len(mine) > 1), None)
        if retried is not None:
            yield Fact((id_,), ("retry", retried))
            continue
        delayed = mine[-1].span.start if mine and mine[-1].message.deliver_at else NEVER
        index = history.ends.first(delayed, at)
        yield Fact((id_,), None if index is None else ("fault", index))


def _overtaken_sends(history: Record) -> Iterator[Fact]:
    last: dict[tuple[int | str, str], Sent] = {}
    for sent in history.placed:
        if sent.place:
            continue
        at = sent.span.process, sent.queue
        before = last.get(at)
        if before is not None and sent.offset < before.offset:
            yield Fact((sent.span.start,), history.excuse(before, sent.span.end))
        last[at] = sent


def _repetitions(history: Record) -> Iterator[Fact]:
    last: dict[tuple[str, str], dict[int, Read]] = defaultdict(dict)
    for read in history.reads:
        if read.kind == "pop":
            continue
        receiver = f"{read.group} {read.client}" if read.group in history.broadcasts else read.group
        places = last[receiver, read.queue]
        for message in read.messages:
            before = places.get(message.offset)
            places[message.offset] = read
            if before is not None:
                yield Fact((read.span.start, message.offset), _again(history, before, read))


def _again(history: Record, before: Read, read: Read) -> Reason | None:
    """Return why a group received a place again."""
    if before.kind == "consume" and before.span.outcome is not OK:
        return "failed", before.span.start
    if read.seek:
        return "seek", read.span.start
    causes = causes_of(history)
    for kind, events in (("fault", causes.of_all), ("move", causes.of_group.get(read.group))):
        index = events.first(before.span.start, read.at) if events else None
        if index is not None:
            return kind, index
    steps = history.once(assignments).get((read.group, read.client), [])
    place = bisect_left(steps, before.at, key=itemgetter(0))
    if read.client != before.client and place and read.queue in steps[place - 1][1]:
        return "owner", steps[place - 1][0]
    return None


FACTS: Final[dict[str, Callable[[Record], Iterator[Fact]]]] = {
    "A01": _lost_writes,
    "A02": _undelivered,
    "A03": _drained,
    "A04": _phantoms,
    "A06": _second_places,
    "A07": _repetitions,
    "A11": _overtaken_sends,
    "A15": _overdue,
    "C10.2": _stalled,
}
"""Maps these rules to their facts."""
