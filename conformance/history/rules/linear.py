"""Each queue is a queue: what was sent before is polled before, whoever sent and whoever polled."""

from collections import defaultdict

from conformance.history.finding import Finding, Tally
from conformance.history.linearize import Element, Empty, Violation, violation
from conformance.history.record import NEVER, Outcome, Read, Record, is_own


def linearizable(told: Record) -> Finding:
    """L01: sends to a queue and a group's first polls of their messages have an order that is a queue's, and
    that respects which operation ended before which began. What was polled by nobody is left to the rules
    that ask whether it is lost. Empty polls count where what is acknowledged can be read at once
    (`visible_within_ms` 0)."""
    tally = Tally()
    immediate = told.setup.visible_within_ms == 0
    polls: dict[tuple[str, str], list[Read]] = defaultdict(list)
    for read in told.reads:
        group = told.group(read.group)
        if read.kind == "poll" and is_own(read.queue) and not (group.tags or group.broadcast):
            polls[read.group, read.queue].append(read)
    for (name, queue), mine in polls.items():
        elements, empties = _operations(told, mine, immediate=immediate)
        tally.looked += len(elements) + len(empties)
        found = violation(elements, empties)
        if found is not None:
            values = [element.value for element in found.elements]
            tally.found(_words(found, name, queue), queue=queue, group=name, ids=" ".join(values))
    return tally.finding("operations")


def _operations(told: Record, polls: list[Read], *, immediate: bool) -> tuple[list[Element], list[Empty]]:
    elements, empties = [], []
    taken: set[str] = set()
    for read in polls:
        for message in read.messages:
            sent = told.by_id.get(message.id)
            # Of several attempts nobody knows which it is; of a phantom there is none.
            if message.id in taken or sent is None or sent.attempts > 1 or sent.message.deliver_at:
                continue
            if sent.span.outcome is Outcome.FAILED or sent.span.start > read.span.end:
                continue
            taken.add(message.id)
            span = sent.span
            # All messages of a batch, and of a poll, have one interval: 1,000 of them fit between two lines.
            put, take = sent.place % 1000, len(taken) % 1000
            put_end = span.end * 1000 + put if span.end < NEVER else NEVER
            elements.append(
                Element(
                    message.id, span.start * 1000 + put, put_end,
                    read.span.start * 1000 + take, read.span.end * 1000 + take,
                )
            )  # fmt: skip
        if immediate and not read.messages and read.max == read.offset >= 0:
            empties.append(Empty(read.span.start * 1000, read.span.end * 1000))
    return elements, empties


def _words(found: Violation, group: str, queue: str) -> str:
    values = [element.value for element in found.elements]
    if found.kind == "order":
        return f"{values[0]} was sent to {queue} before {values[1]}, and {group} polled it after that"
    if found.empty is not None:
        told = f"{group} found nothing in {queue} at index {found.empty.start // 1000}"
        return f"{told}, where {', '.join(values)} were one after the other"
    return f"{group} polled {values[0]} of {queue} before it was sent"
