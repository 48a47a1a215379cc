"""Rules about availability: whether a cluster keeps serving, and keeps its topics."""

from bisect import bisect_right
from typing import NamedTuple

from mqproof.conformance.engine.finding import Finding, Tally, not_judged
from mqproof.conformance.history.record import CLOSERS, NEVER, OK, Record, Span

_MS = 1_000_000
_UNKNOWN_TOPIC = ("TOPIC_NOT_EXIST", "SUBSCRIPTION_NOT_EXIST", "SUBSCRIPTION_GROUP_NOT_EXIST", "NO_ROUTE")


def metadata_loss(history: Record) -> Finding:
    """C20: a topic that accepted a message does not become unknown, unless a client deleted it."""
    tally = Tally()
    works: dict[str, int] = {}
    deleted = {step.value.topic: step.span.start for step in reversed(history.deletions)}
    for span in history.spans:
        topic = span.topic
        if span.outcome is OK:
            if span.f == "send":
                works.setdefault(topic, span.end)
        elif works.get(topic, NEVER) < span.start:
            tally.looked += 1
            missing = next((name for name in _UNKNOWN_TOPIC if name in span.error), "")
            # Without a route, the broker may be unavailable, not the topic.
            away = missing == "NO_ROUTE" and calm_at(history.once(calm), span.start) is None
            if missing and not away and deleted.get(topic, NEVER) < span.end:
                tally.explain(("deleted", deleted[topic]), topic=topic, index=span.end)
            elif missing and not away and span.end < NEVER:
                text = f"{topic} existed at index {works[topic]}; at {span.end} it is unknown: {span.error}"
                tally.found(text, topic=topic, index=span.end)
    tally.looked += len(works)
    return tally.finding("topics_and_refusals")


def unavailable(history: Record) -> Finding:
    """C21: outside faults, and from `serve_within_ms` after the last one, sends and polls succeed."""
    worst = _worst_recovery(history)
    within = history.setup.serve_within_ms
    if within is None:
        return not_judged({"worst_recovery_ms": worst})
    tally = Tally()
    stretches = history.once(calm)
    tally.looked = history.asked
    for span in history.spans:
        if span.outcome is OK or span.f == "pop" or any(name in span.error for name in _UNKNOWN_TOPIC):
            continue  # C20 judges unknown topics
        window = calm_at(stretches, span.start)
        if window is not None and window.since + within * _MS < span.began and _within(span, window.end):
            text = f"a {span.f} of {span.topic} at index {span.start} did not succeed, without a fault"
            tally.found(f"{text}: {span.error or 'no answer'}", index=span.start)
    return tally.finding("asked", worst_recovery_ms=worst)


def _within(span: Span, end: int) -> bool:
    """Return whether the span ended before that index. A span without an end ends with the history."""
    return span.start < end and (span.end < end or (span.end == NEVER and end == NEVER))


class Calm(NamedTuple):
    """An interval without faults: indexes of its beginning and end, and the time of its beginning."""

    begin: int
    end: int
    since: int


def calm(history: Record) -> list[Calm]:
    """Return all fault-free intervals, in order."""
    stretches, begin, since = [], 0, 0
    on: set[tuple[str, str]] = set()
    for fault in history.faults:
        kind, node = fault.value.kind, fault.value.node
        was = bool(on)
        if kind in CLOSERS:
            on -= {(each, node) for each in CLOSERS[kind]}
        elif kind != "promote":
            on.add((kind, node))
        if on and not was:
            stretches.append(Calm(begin, fault.index, since))
        elif was and not on:
            begin, since = fault.index, fault.time
    if not on:
        stretches.append(Calm(begin, NEVER, since))
    return stretches


def calm_at(stretches: list[Calm], index: int) -> Calm | None:
    """Return the fault-free interval that contains the index; None if a fault was active."""
    place = bisect_right(stretches, index, key=lambda each: each.begin) - 1
    return stretches[place] if place >= 0 and index < stretches[place].end else None


def _worst_recovery(history: Record) -> int:
    """Return the longest time from the end of a fault to the next successful send, in milliseconds."""
    answered = [span.ended for span in history.spans if span.f == "send" and span.outcome is OK]
    worst, place = 0, 0
    for window in history.once(calm)[1:]:
        while place < len(answered) and answered[place] < window.since:
            place += 1
        if place < len(answered):
            worst = max(worst, (answered[place] - window.since) // _MS)
    return worst
