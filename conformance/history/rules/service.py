"""Whether a cluster goes on serving, and keeps what it is told of topics."""

from bisect import bisect_right
from typing import NamedTuple

from mqproof.conformance.engine.finding import Finding, Tally, not_judged
from mqproof.conformance.history.record import CLOSERS, NEVER, Outcome, Record, Span

_MS = 1_000_000
_UNKNOWN_TOPIC = ("TOPIC_NOT_EXIST", "SUBSCRIPTION_NOT_EXIST", "SUBSCRIPTION_GROUP_NOT_EXIST", "NO_ROUTE")


def metadata_loss(told: Record) -> Finding:
    """C20: a topic that took a message is not unknown later, unless somebody deleted it."""
    tally = Tally()
    works: dict[str, int] = {}
    deleted = {step.value.topic: step.span.start for step in reversed(told.deletions)}
    for f, topic, span in told.spans:
        if span.outcome is Outcome.OK:
            if f == "send":
                works.setdefault(topic, span.end)
        elif works.get(topic, NEVER) < span.start:
            tally.looked += 1
            missing = next((name for name in _UNKNOWN_TOPIC if name in span.error), "")
            # Without a route it may be the broker that is away, not the topic.
            away = missing == "NO_ROUTE" and calm_at(told.once(calm), span.start) is None
            if missing and not away and deleted.get(topic, NEVER) > span.end:
                text = f"{topic} was there at index {works[topic]}; at {span.end} it is unknown: {span.error}"
                tally.found(text, topic=topic, index=span.end)
    tally.looked += len(works)
    return tally.finding("topics_and_refusals")


def unavailable(told: Record) -> Finding:
    """C21: outside faults, and `serve_within_ms` after the last, sends and polls succeed."""
    worst = _worst_recovery(told)
    within = told.setup.serve_within_ms
    if within is None:
        return not_judged({"worst_recovery_ms": worst})
    tally = Tally()
    stretches = told.once(calm)
    for f, topic, span in told.spans:
        if f not in ("send", "poll"):
            continue
        tally.looked += 1
        if span.outcome is Outcome.OK or any(name in span.error for name in _UNKNOWN_TOPIC):
            continue  # what is unknown is C20's business
        window = calm_at(stretches, span.start)
        if window is not None and window.since + within * _MS < span.began and _within(span, window.end):
            text = f"a {f} of {topic} at index {span.start} did not succeed, and nothing was wrong"
            tally.found(f"{text}: {span.error or 'no answer'}", index=span.start)
    return tally.finding("asked", worst_recovery_ms=worst)


def _within(span: Span, end: int) -> bool:
    """Whether it was over before that index. What has no end is over when the history is."""
    return span.start < end and (span.end < end or (span.end == NEVER and end == NEVER))


class Calm(NamedTuple):
    """A stretch without a fault: indexes of its beginning and its end, and the time since."""

    begin: int
    end: int
    since: int


def calm(told: Record) -> list[Calm]:
    """All of them, in order."""
    stretches, begin, since = [], 0, 0
    on: set[tuple[str, str]] = set()
    for fault in told.faults:
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
    """The stretch in which the index lies, None when a fault was on."""
    place = bisect_right(stretches, index, key=lambda each: each.begin) - 1
    return stretches[place] if place >= 0 and index < stretches[place].end else None


def _worst_recovery(told: Record) -> int:
    """Milliseconds from the end of a fault to the first send that succeeded after it, at most."""
    answered = [span.ended for f, _, span in told.spans if f == "send" and span.outcome is Outcome.OK]
    worst, place = 0, 0
    for window in told.once(calm)[1:]:
        while place < len(answered) and answered[place] < window.since:
            place += 1
        if place < len(answered):
            worst = max(worst, (answered[place] - window.since) // _MS)
    return worst
