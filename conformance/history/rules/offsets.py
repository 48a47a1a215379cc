"""Committed offsets: they go on by what was consumed, and come back as they were stored."""

import heapq
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from conformance.history.finding import Finding, Tally
from conformance.history.record import NEVER, Outcome, Record, Step


@dataclass(slots=True)
class _Floor:
    """What is committed at least, and since when."""

    offset: int = -1
    index: int = -1
    client: str = ""


def offset_regression(told: Record) -> Finding:
    """C06: a group's offset in a queue goes back only by a reset, with the rebalance that gave the queue to
    another member, or to what was persisted when a broker's life ended."""
    tally = Tally()
    floors: dict[tuple[str, str], _Floor] = {}
    asked: dict[int, _Floor] = {}
    running: Counter[tuple[str, str]] = Counter()  # commits that may take effect
    rebalanced: dict[str, int] = {}
    for index, what, step in _timeline(told):
        if what == "assign":
            rebalanced[step.value.group] = index
            continue
        value = step.value
        at = (value.group, value.queue)
        floor = floors.setdefault(at, _Floor())
        if floor.index >= 0 and told.ends.between(floor.index, index):
            floor = floors[at] = _Floor()
        if what == "ask":
            asked[id(step)] = _Floor(floor.offset, floor.index, floor.client)
        elif what == "tell":
            was = asked.pop(id(step))
            tally.looked += was.index >= 0
            # What was lowered meanwhile may be told as well.
            low = min(was.offset, floor.offset)
            if value.offset < low and not told.ends.between(step.span.start, index):
                text = f"{value.group} is at {value.offset} of {value.queue} at index {index}"
                tally.found(f"{text}, {low} was committed", queue=value.queue, offset=value.offset)
            if not running[at]:
                floors[at] = _Floor(value.offset, index, floor.client)
        elif what == "begin":
            running[at] += 1
            if value.reset:
                floors[at] = _Floor(min(value.offset, floor.offset), index, step_client(step))
            elif value.offset < floor.offset:
                tally.looked += 1
                client = step_client(step)
                handed_on = client != floor.client and rebalanced.get(value.group, -1) > floor.index
                if handed_on:
                    tally.explained += 1
                else:
                    text = f"{client} committed {value.offset} of {value.queue} for {value.group}"
                    tally.found(f"{text} after {floor.offset}", queue=value.queue, offset=value.offset)
                floors[at] = _Floor(value.offset, index, client)
        else:
            running[at] -= 1
            if step.span.outcome is Outcome.OK and value.offset > floor.offset:
                tally.looked += floor.index >= 0
                floors[at] = _Floor(value.offset, index, step_client(step))
    return tally.finding("commits_and_queries")


def _timeline(told: Record) -> Iterator[tuple[int, str, Step]]:
    """Beginnings and ends of commits and queries, and assignments, in order."""
    parts = (
        [(step.span.start, "begin", step) for step in told.commits],
        [(step.span.end, "end", step) for step in told.commits if step.span.end < NEVER],
        [(step.span.start, "ask", step) for step in told.queries],
        [(step.span.end, "tell", step) for step in told.queries],
        [(step.span.start, "assign", step) for step in told.assigns],
    )
    return heapq.merge(*(sorted(part, key=_index) for part in parts), key=_index)


def _index(event: tuple[int, str, Step]) -> int:
    return event[0]


def step_client(step: Step) -> str:
    return step.value.client or str(step.span.process)


def offset_to_minimum(told: Record) -> Finding:
    """C07: no consumer is sent back from an offset that is in its queue, nor from one beyond its end to
    anywhere but the end, and none commits -1."""
    tally = Tally()
    for read in told.reads:
        if read.kind == "poll" and read.offset >= 0 and read.next >= 0:
            tally.looked += 1
            if read.next < min(read.offset, read.max):
                text = f"{read.client} asked for {read.offset} of {read.queue}, which ends at {read.max}"
                tally.found(f"{text}, and was sent back to {read.next}", queue=read.queue, offset=read.next)
    for step in told.commits:
        tally.looked += 1
        if step.value.offset < 0:
            text = f"{step_client(step)} committed {step.value.offset} of {step.value.queue}"
            tally.found(text, queue=step.value.queue, offset=step.value.offset)
    return tally.finding("polls_and_commits")


def offset_ahead(told: Record) -> Finding:
    """C08: nothing is committed that the group was not handed: a restart would leave it out."""
    tally = Tally()
    reach: dict[tuple[str, str], int] = {}
    reads = [(read.at, read, None) for read in told.reads if read.messages or read.next >= 0]
    steps = sorted([(s.span.start, None, s) for s in told.commits], key=lambda event: event[0])
    for _, read, step in heapq.merge(reads, steps, key=lambda event: event[0]):
        if read is not None:
            at = (read.group, read.queue)
            end = max(read.next, read.messages[-1].offset + 1 if read.messages else -1, reach.get(at, -1))
            reach[at] = max(end, read.offset)  # it began there, on purpose or where it was left
        elif step is not None:
            value = step.value
            at = (value.group, value.queue)
            tally.looked += 1
            if value.reset or at not in reach:
                reach[at] = max(reach.get(at, -1), value.offset)
            elif value.offset > reach[at]:
                text = f"{step_client(step)} committed {value.offset} of {value.queue}; {value.group} was"
                tally.found(f"{text} handed no more than {reach[at]}", queue=value.queue, offset=value.offset)
                reach[at] = value.offset
    return tally.finding("commits")
