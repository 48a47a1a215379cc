"""Whether a cluster goes on serving, and keeps what it is told of topics."""

from conformance.history.finding import Finding, Tally, not_judged
from conformance.history.record import CLOSERS, NEVER, Outcome, Record, Span

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
            away = missing == "NO_ROUTE" and _faulty(told, span.start)
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
    calm = told.once(_calm)
    for f, topic, span in told.spans:
        if f not in ("send", "poll"):
            continue
        tally.looked += 1
        if span.outcome is Outcome.OK or any(name in span.error for name in _UNKNOWN_TOPIC):
            continue  # what is unknown is C20's business
        for begin, end in calm:
            if begin + within * _MS < span.began and _within(span, end):
                text = f"a {f} of {topic} at index {span.start} did not succeed, and nothing was wrong"
                tally.found(f"{text}: {span.error or 'no answer'}", index=span.start)
                break
    return tally.finding("asked", worst_recovery_ms=worst)


def _within(span: Span, end: int) -> bool:
    """Whether it was over before that index. What has no end is over when the history is."""
    return span.start < end and (span.end < end or (span.end == NEVER and end == NEVER))


def _calm(told: Record) -> list[tuple[int, int]]:
    """When no fault was on: the time at which that begins, and the index at which it ends."""
    calm, since = [], 0
    on: set[tuple[str, str]] = set()
    for fault in told.faults:
        kind, node = fault.value.kind, fault.value.node
        was = bool(on)
        if kind in CLOSERS:
            on -= {(each, node) for each in CLOSERS[kind]}
        elif kind != "promote":
            on.add((kind, node))
        if on and not was:
            calm.append((since, fault.index))
        elif was and not on:
            since = fault.time
    if not on:
        calm.append((since, NEVER))
    return calm


def _faulty(told: Record, index: int) -> bool:
    """Whether a fault was on at that index, or had begun before it without an end."""
    on: set[tuple[str, str]] = set()
    for fault in told.faults:
        if fault.index > index:
            break
        kind, node = fault.value.kind, fault.value.node
        if kind in CLOSERS:
            on -= {(each, node) for each in CLOSERS[kind]}
        else:
            on.add((kind, node))
    return bool(on)


def _worst_recovery(told: Record) -> int:
    """Milliseconds from the end of a fault to the first send that succeeded after it, at most."""
    answered = [span.ended for f, _, span in told.spans if f == "send" and span.outcome is Outcome.OK]
    worst, place = 0, 0
    for begin, _ in told.once(_calm)[1:]:
        while place < len(answered) and answered[place] < begin:
            place += 1
        if place < len(answered):
            worst = max(worst, (answered[place] - begin) // _MS)
    return worst
