"""Rule: each queue is linearizable. Earlier sends are polled earlier, for all producers and consumers."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Final, NamedTuple

from mqproof.conformance.engine.finding import Finding, Tally
from mqproof.conformance.history.linearize import Element, Empty, Violation, violation
from mqproof.conformance.history.record import FAILED, NEVER, Read, Record, is_own

INSTANTS: Final = 1000
"""Number of instants between two lines: the messages of a batch or poll share one interval."""


class Seen(NamedTuple):
    """A queue as one group observed it. Instants are line indexes times INSTANTS."""

    group: str
    queue: str
    elements: list[Element]
    """The messages, with their ids as values."""
    empties: list[Empty]


def linearizable(history: Record) -> Finding:
    """L01: the sends to a queue and a group's first polls of the messages are linearizable.

    The order must respect which operations ended before others began. Messages that were never polled are
    left to the rules about loss. Empty polls count only if acknowledged messages can be read at once
    (`visible_within_ms` 0).
    """
    tally = Tally()
    for seen in queues(history):
        tally.looked += len(seen.elements) + len(seen.empties)
        found = violation(seen.elements, seen.empties)
        if found is not None:
            values = [element.value for element in found.elements]
            tally.found(words(history, seen, found), queue=seen.queue, group=seen.group, ids=" ".join(values))
    return tally.finding("operations")


def queues(history: Record) -> Iterator[Seen]:
    """Yield the operations that must have an order, separately for each queue of each group."""
    immediate = history.setup.visible_within_ms == 0
    polls: dict[tuple[str, str], list[Read]] = defaultdict(list)
    for read in history.polls:
        polls[read.group, read.queue].append(read)
    for (name, queue), mine in polls.items():
        group = history.group(name)
        if is_own(queue) and not (group.tags or group.broadcast):
            yield Seen(name, queue, *_operations(history, mine, immediate=immediate))


def _operations(history: Record, polls: list[Read], *, immediate: bool) -> tuple[list[Element], list[Empty]]:
    elements, empties = [], []
    taken: set[str] = set()
    by_id = history.by_id
    for read in polls:
        take_start, take_end = read.span.start * INSTANTS, read.span.end * INSTANTS
        for message in read.messages:
            id_ = message.id
            sent = by_id.get(id_)
            # With several attempts, the one that was stored is unknown; a phantom has none.
            if id_ in taken or sent is None or sent.attempts > 1 or sent.message.deliver_at:
                continue
            span = sent.span
            if span.outcome is FAILED or span.start > read.span.end:
                continue
            taken.add(id_)
            put, take = sent.place % INSTANTS, len(taken) % INSTANTS
            put_end = span.end * INSTANTS + put if span.end < NEVER else NEVER
            elements.append(
                Element(id_, span.start * INSTANTS + put, put_end, take_start + take, take_end + take)
            )
        if immediate and not read.messages and read.max == read.offset >= 0:
            empties.append(Empty(read.span.start * INSTANTS, read.span.end * INSTANTS))
    return elements, empties


def words(history: Record, seen: Seen, found: Violation) -> str:
    """Describe the operations that no order explains, each with the indexes of its two lines."""
    group, first = seen.group, found.elements[0]
    if found.kind == "order":
        second = found.elements[1]
        sent = f"{_put(history, first)} to {seen.queue} before {_put(history, second)}"
        return f"{sent}, and {group} polled {_take(second)} before {_take(first)}"
    if found.empty is not None:
        lived = (f"{each.value} (sent by {_index(each.put_end)}, polled from {_index(each.take_start)})"
                 for each in found.elements)  # fmt: skip
        nothing = f"{group} found nothing in {seen.queue} {_lines(found.empty.start, found.empty.end)}"
        return f"{nothing}, where {', then '.join(lived)} was not empty at any time"
    return f"{group} polled {_take(first)} of {seen.queue} before {_put(history, first)}"


def _put(history: Record, element: Element) -> str:
    process = history.by_id[element.value].span.process
    return f"{process} sent {element.value} {_lines(element.put_start, element.put_end)}"


def _take(element: Element) -> str:
    return f"{element.value} {_lines(element.take_start, element.take_end)}"


def _lines(start: int, end: int) -> str:
    return f"(index {_index(start)} to {'?' if end == NEVER else _index(end)})"


def _index(instant: int) -> int:
    return instant // INSTANTS
