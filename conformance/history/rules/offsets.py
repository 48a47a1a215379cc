"""Rules about committed offsets: they advance with consumption, and are returned as they were stored."""

from bisect import bisect_left
from collections import defaultdict
from dataclasses import dataclass, field
from itertools import chain
from operator import itemgetter
from typing import Final

from mqproof.conformance.engine.finding import Finding, Tally
from mqproof.conformance.history.record import NEVER, OK, Read, Reason, Record, Step
from mqproof.conformance.history.rules.order import first_readable

_Place = tuple[str, str]
"""Group and queue."""


@dataclass(slots=True)
class _Floor:
    """The minimum committed offset, and since when it holds."""

    offset: int = -1
    index: int = -1
    client: str = ""


@dataclass(slots=True)
class _Running:
    """A commit that may take effect."""

    client: str
    offset: int
    least: int
    """The minimum of this commit's offset and those of concurrent commits: any of them may be the last."""
    unanswered: bool


def offset_regression(history: Record) -> Finding:
    """C06: a group's committed offset in a queue goes back only for a known reason.

    Reasons are a reset, a rebalance, and the end of a broker's life. A rebalance counts if it assigned the
    queue to another member; both may have owned it for a while. At the end of a broker's life, commits that
    were not persisted may be lost. After a takeover, a member's listener begins no lower than the offset that
    the member received.
    """
    tally = Tally()
    for taken in history.once(_taken_over):
        tally.looked += 1
        if taken.first < taken.queried_offset:
            text = f"{taken.client} took over {taken.queue} with committed offset {taken.queried_offset}"
            tally.found(
                f"{text}, but its listener received {taken.first}", queue=taken.queue, offset=taken.first
            )
    offsets = _CommittedOffsets(history, tally)
    for index, what, step in _timeline(history):
        if what == "assign":
            offsets.assign(index, step)
            continue
        offsets.forget_before_crash(index, step)
        match what:
            case "query":
                offsets.begin_query(step)
            case "query_end":
                offsets.end_query(index, step)
            case "begin":
                offsets.begin(index, step)
            case _:
                offsets.end(index, step)
    return tally.finding("commits_and_queries")


@dataclass(slots=True)
class _CommittedOffsets:
    """Tracks the minimum committed offset of each group in each queue, in history order."""

    history: Record
    tally: Tally
    floors: dict[_Place, _Floor] = field(default_factory=lambda: defaultdict(_Floor))
    floors_at_query: dict[int, _Floor] = field(default_factory=dict)
    """For each open query, the minimum offset at the time when it was sent."""
    running: dict[_Place, dict[int, _Running]] = field(default_factory=lambda: defaultdict(dict))
    rebalanced: dict[str, int] = field(default_factory=dict)
    """The line index of each group's last assignment of queues, by group."""
    owned: dict[tuple[str, str], Step] = field(default_factory=dict)
    """The last assignment of each member, by group and member."""

    def assign(self, index: int, step: Step) -> None:
        self.rebalanced[step.value.group] = index
        self.owned[step.value.group, step_client(step)] = step

    def forget_before_crash(self, index: int, step: Step) -> None:
        """Reset the floor if a broker's life ended since it was set, as the commits may be lost."""
        at = _place(step)
        if self.floors[at].index >= 0 and self.history.ends.between(self.floors[at].index, index):
            self.floors[at] = _Floor()

    def begin_query(self, step: Step) -> None:
        floor = self.floors[_place(step)]
        self.floors_at_query[id(step)] = _Floor(floor.offset, floor.index, floor.client)

    def end_query(self, index: int, step: Step) -> None:
        value, at = step.value, _place(step)
        was, floor = self.floors_at_query.pop(id(step)), self.floors[at]
        self.tally.looked += was.index >= 0
        # The answer may also be an offset that was lowered in the meantime.
        low = min(was.offset, floor.offset)
        if value.offset < low and not self.history.ends.between(step.span.start, index):
            text = f"{value.group} is at {value.offset} of {value.queue} at index {index}"
            self.tally.found(f"{text}, but {low} was committed", queue=value.queue, offset=value.offset)
        if not self.running[at]:
            self.floors[at] = _Floor(value.offset, index, floor.client)

    def begin(self, index: int, step: Step) -> None:
        value, at, client = step.value, _place(step), step_client(step)
        floor = self.floors[at]
        _begin(self.running[at], step)
        if value.reset:
            self.floors[at] = _Floor(min(value.offset, floor.offset), index, client)
        elif value.offset < floor.offset:
            self.tally.looked += 1
            if reason := self._reassigned(step, floor):
                self.tally.explain(reason, queue=value.queue, offset=value.offset)
            else:
                text = f"{client} committed {value.offset} of {value.queue} for {value.group}"
                self.tally.found(
                    f"{text} after offset {floor.offset}", queue=value.queue, offset=value.offset
                )
            self.floors[at] = _Floor(value.offset, index, client)

    def _reassigned(self, step: Step, floor: _Floor) -> Reason | None:
        """Return the assignment by which another member than that of the floor may commit."""
        group, client = step.value.group, step_client(step)
        if client == floor.client:
            return None
        if (index := self.rebalanced.get(group, -1)) > floor.index:
            return "move", index
        own = self.owned.get((group, client))
        return ("owner", own.span.start) if own and step.value.queue in own.value.queues else None

    def end(self, index: int, step: Step) -> None:
        at = _place(step)
        least = self.running[at].pop(id(step)).least
        if step.span.outcome is OK:
            _answered(self.running[at], step_client(step))
            floor = self.floors[at]
            if least > floor.offset:
                self.tally.looked += floor.index >= 0
                self.floors[at] = _Floor(least, index, step_client(step))


def _place(step: Step) -> _Place:
    return step.value.group, step.value.queue


def _begin(running: dict[int, _Running], step: Step) -> None:
    offset = step.value.offset
    for other in running.values():
        other.least = min(other.least, offset)
    least = min([offset, *(other.offset for other in running.values())])
    running[id(step)] = _Running(step_client(step), offset, least, step.span.end == NEVER)


def _answered(running: dict[int, _Running], client: str) -> None:
    """Remove the client's earlier unanswered commits: they have taken effect by now or never will."""
    for key in [key for key, each in running.items() if each.client == client and each.unanswered]:
        del running[key]


def _timeline(history: Record) -> list[tuple[int, str, Step]]:
    """Return the beginnings and ends of commits and queries, and assignments, in order."""
    parts = (
        [(step.span.start, "begin", step) for step in history.commits],
        [(step.span.end, "end", step) for step in history.commits if step.span.end < NEVER],
        [(step.span.start, "query", step) for step in history.queries],
        [(step.span.end, "query_end", step) for step in history.queries],
        [(step.span.start, "assign", step) for step in history.assigns],
    )
    return sorted(chain.from_iterable(parts), key=_index)


_index: Final = itemgetter(0)


def step_client(step: Step) -> str:
    return step.value.client or str(step.span.process)


def offset_to_minimum(history: Record) -> Finding:
    """C07: no consumer is sent back from an offset within its queue, and no client commits -1.

    A consumer beyond the end of the queue may be sent back only to the end.
    """
    tally = Tally()
    for read in history.polls:
        if read.offset >= 0 and read.next >= 0:
            tally.looked += 1
            if read.next < min(read.offset, read.max):
                text = (
                    f"{read.client} requested offset {read.offset} of {read.queue}, which ends at {read.max}"
                )
                tally.found(f"{text}, and was moved back to {read.next}", queue=read.queue, offset=read.next)
    for step in history.commits:
        tally.looked += 1
        if step.value.offset < 0:
            text = f"{step_client(step)} committed {step.value.offset} of {step.value.queue}"
            tally.found(text, queue=step.value.queue, offset=step.value.offset)
    return tally.finding("polls_and_commits")


def _selects(history: Record, at: tuple[str, str], low: int, high: int) -> bool:
    """Return whether a group selects a message of these places of a queue. Without tags it selects all."""
    group, queue = at
    if (tags := history.tags.get(group)) is None:
        return True
    acked = history.acked.get(queue, {})
    return any(sent.message.tag in tags for offset in range(low, high) if (sent := acked.get(offset)))


def offset_ahead(history: Record) -> Finding:
    """C08: a group commits no offset beyond the messages it received, because a restart would skip them.

    A group that filters may pass messages that it does not select. After a takeover, a member's listener
    skips no message that was delivered to others; for groups that filter, this is not judged.
    """
    tally = Tally()
    for taken in history.once(_taken_over):
        if taken.group in history.tags:
            continue
        tally.looked += 1
        if (passed := _passed_over(history, taken)) is not None:
            text = f"{taken.client} took over {taken.queue} with committed offset {taken.queried_offset}"
            tally.found(f"{text}, but began at {taken.first}", queue=taken.queue, offset=passed)
    reach: dict[tuple[str, str], int] = {}
    committed = {(step.value.group, step.value.queue) for step in history.commits}
    events: list[tuple[int, Read | None, Step | None]] = [
        (read.at, read, None)
        for read in history.reads
        if (read.group, read.queue) in committed and (read.messages or read.next >= 0)
    ]
    events += [(step.span.start, None, step) for step in history.commits]
    for _, read, step in sorted(events, key=itemgetter(0)):
        if read is not None:
            at = (read.group, read.queue)
            end = max(read.next, read.messages[-1].offset + 1 if read.messages else -1, reach.get(at, -1))
            reach[at] = max(end, read.offset)  # it began there, explicitly or as before
        elif step is not None:
            value = step.value
            at = (value.group, value.queue)
            tally.looked += 1
            if value.reset or at not in reach:
                reach[at] = max(reach.get(at, -1), value.offset)
            elif value.offset > reach[at] and _selects(history, at, reach[at], value.offset):
                text = (
                    f"{step_client(step)} committed {value.offset} of {value.queue}; {value.group} received"
                )
                tally.found(f"{text} nothing beyond {reach[at]}", queue=value.queue, offset=value.offset)
                reach[at] = value.offset
    return tally.finding("commits")


@dataclass(slots=True)
class _Taken:
    """A queue that a member took over after it queried the group's committed offset."""

    group: str
    queue: str
    client: str
    queried_offset: int
    index: int
    first: int = NEVER
    """The lowest offset delivered to its listener."""


def _taken_over(history: Record) -> list[_Taken]:
    """Return the takeovers with a listener call.

    Calls after a reset or the end of a broker's life do not count.
    """
    found: list[_Taken] = []
    owned: dict[tuple[str, str], frozenset[str]] = {}
    queries: dict[tuple[str, str, str], _Taken] = {}
    resets: dict[tuple[str, str], int] = {}
    for index, what, step in sorted([*_timeline(history), *_calls(history)], key=_index):
        value = step.value
        if what == "assign":
            member = (value.group, value.client)
            before, now = owned.get(member, frozenset()), frozenset(() if value.left else value.queues)
            for queue in before - now:
                queries.pop((*member, queue), None)
            found += [
                queries[*member, queue] for queue in sorted(now - before) if (*member, queue) in queries
            ]
            owned[member] = now
        elif what == "begin" and value.reset:
            resets[value.group, value.queue] = index
        elif what == "query_end" and value.offset >= 0:
            # The owner itself also queries the offset, before it gives the queue up.
            if value.queue not in owned.get((value.group, value.client), ()):
                taken = _Taken(value.group, value.queue, value.client, value.offset, index)
                queries[value.group, value.client, value.queue] = taken
        elif what == "call" and (begun := queries.get((value.group, value.client, value.queue))):
            moved = resets.get((value.group, value.queue), -1) > begun.index
            if not moved and not history.ends.between(begun.index, index):
                begun.first = min(begun.first, value.messages[0].offset)
    return [taken for taken in found if taken.first < NEVER]


def _calls(history: Record) -> list[tuple[int, str, Step]]:
    queried = {(step.value.group, step.value.queue) for step in history.queries}
    return [
        (read.span.start, "call", Step(read.span, read))
        for read in history.calls
        if read.messages and (read.group, read.queue) in queried
    ]


def _passed_over(history: Record, taken: _Taken) -> int | None:
    """Return the first offset delivered to others between the expected and the actual start of the member."""
    known = history.known.get(taken.queue, [])
    low = max(taken.queried_offset, first_readable(history, taken.queue))
    readable = history.places.get(taken.queue, {})
    between = known[bisect_left(known, low) : bisect_left(known, taken.first)]
    return next((offset for offset in between if offset in readable), None)
