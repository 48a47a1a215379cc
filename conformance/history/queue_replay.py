"""Replays a queue of a history in columns, and refuses it unless it is regular.

"Regular queues" in docs/explanation/conformance/histories.md has the definition. `queue_log.py` examines the
messages. `Replay` follows the lines of the queue in their order. Neither shares code with the sieve.
"""

from collections import defaultdict
from itertools import accumulate
from types import SimpleNamespace
from typing import Any

import numpy as np

from mqproof.conformance.history.column_files import Columns, expect
from mqproof.conformance.history.queue_log import Log
from mqproof.conformance.history.verification import NEVER, History

MS = 1_000_000


class Rest:
    """What the operations outside of the columns mean for regular queues."""

    def __init__(self, history: History) -> None:
        self.history, self.named, self.draining = history, set[str](), set[str]()
        self.drains, self.bounds = dict[tuple[str, str], int](), defaultdict[str, list[tuple[int, int]]](list)
        for op in history.ops:
            is_ok = op.outcome == "ok"
            if op.f in ("consume", "ack", "commit") or (op.f in ("send", "poll", "pop", "query") and is_ok):
                self.named.add(op.queue)
            if op.f == "bounds" and is_ok and op.answered.get("max", -1) >= 0:
                self.bounds[op.queue].append((op.start, op.answered["max"]))
            if op.f == "drain":
                self.draining.add(op.group)
                ended = op.asked.get("topics", ()) if op.end < NEVER else ()
                self.drains.update(((op.group, topic), op.start) for topic in ended)


class Group:
    """What one group has done in the queue so far."""

    def __init__(self, name: str, setup: dict[str, Any], log: Log) -> None:
        self.name, self.tags = name, [tag.encode() for tag in setup.get("tags", ())]
        self.is_broadcast, self.is_orderly = setup.get("broadcast", False), setup.get("orderly", False)
        self.selects = (np.isin(log.tag, self.tags) if self.tags else np.ones(log.size, bool)).tobytes()
        self.until = list(accumulate(self.selects, initial=0)) if self.tags else []
        """With tags: how many messages before each place the group selects."""
        self.got = defaultdict[str, bytearray](lambda: bytearray(log.size))
        """Which messages were received, by each member of a broadcast group or by the whole group."""
        self.members = dict[str, tuple[int, int, int]]()
        """Where the last poll of each member ended: its place, its line, and the furthest place so far."""
        self.taken, self.called, self.reached, self.committed = -1, -1, -NEVER, -NEVER
        self.is_calling = False


class Replay:
    """The state of a queue after some of its lines.

    `send` and `sent` are the two lines of a send, `poll` and `polled` those of a poll, and so on. `bound` is
    a request for the end of the queue. The end of a commit decides nothing.
    """

    def __init__(self, name: str, queue: Any, columns: Columns, rest: Rest) -> None:
        expect(name not in rest.named, "operations outside of the columns name it")
        self.name, self.queue, self.rest, self.names = name, queue, rest, columns.texts
        self.log, self.groups, self.setup = Log(queue), dict[str, Group](), rest.history.setup
        self.low, self.size, reads = self.log.low, self.log.size, queue.reads
        self.sends, self.reads, self.commits = map(lists, (queue.sends, reads, queue.commits))
        self.client = np.where(reads.client < 0, reads.process, reads.client).tolist()
        self.first = (np.cumsum(reads.count) - reads.count).tolist()
        self.delivered, self.began = self.log.delivered.tolist(), reads.began.tolist()
        answered = np.minimum.accumulate(self.log.ended[::-1])[::-1]
        self.due = [*answered.tolist(), NEVER]
        """For each place, the time at which the first message from there on was answered."""
        self.begun, self.answered, self.known = bytearray(self.size), -1, -self.low
        """Which sends began, the last answered message, and the end of the answered and read ones."""

    def run(self) -> None:
        sends, reads, commits = self.queue.sends, self.queue.reads, self.queue.commits
        polls, calls = np.flatnonzero(reads.kind == 0), np.flatnonzero(reads.kind != 0)
        every_send, every_commit = np.arange(len(sends.start)), np.arange(len(commits.start))
        bounds = np.array(self.rest.bounds[self.name], np.int64).reshape(-1, 2)
        steps: list[tuple[Any, Any, Any]] = [
            (self.send, sends.start, every_send), (self.sent, sends.end, every_send),
            (self.poll, reads.start[polls], polls), (self.polled, reads.end[polls], polls),
            (self.call, reads.start[calls], calls), (self.returned, reads.end[calls], calls),
            (self.commit, commits.start, every_commit), (self.bound, bounds[:, 0], bounds[:, 1]),
        ]  # fmt: skip
        order = np.argsort(np.concatenate([lines for _, lines, _ in steps]))
        what = np.repeat(np.arange(len(steps)), [len(lines) for _, lines, _ in steps])[order]
        row = np.concatenate([rows for _, _, rows in steps])[order]
        for step, argument in zip(what.tolist(), row.tolist(), strict=True):
            steps[step][0](argument)
        self.finish()

    def group(self, name: str) -> Group:
        if name not in self.groups:
            self.groups[name] = Group(name, self.rest.history.groups[name], self.log)
        return self.groups[name]

    def send(self, row: int) -> None:
        place, count = self.sends.offset[row] - self.low, self.sends.count[row]
        expect(place > self.answered, "a send begins after a later message was answered")
        self.begun[place : place + count] = b"\1" * count

    def sent(self, row: int) -> None:
        end = self.sends.offset[row] - self.low + self.sends.count[row]
        self.answered, self.known = max(self.answered, end - 1), max(self.known, end)

    def bound(self, end: int) -> None:
        expect(end - self.low >= self.known, "an end is stated before a known message")

    def poll(self, row: int) -> None:
        reads, group = self.reads, self.group(self.names[self.reads.group[row]])
        if reads.max[row] >= 0 or not reads.count[row]:
            self.bound(reads.max[row] if reads.max[row] >= 0 else reads.offset[row])
        if reads.count[row] and not group.tags and not group.is_broadcast:
            expect(self.delivered[self.first[row]] > group.taken, "polls overtake each other")

    def polled(self, row: int) -> None:
        reads, group = self.reads, self.group(self.names[self.reads.group[row]])
        begin, end = reads.offset[row] - self.low, reads.next[row] - self.low
        client, count = self.names[self.client[row]], end - begin
        places = self.deliver(group, client, row)
        if group.tags:
            expect(0 <= begin <= end <= self.size, "a poll goes back, or beyond the end")
            count = group.until[end] - group.until[begin]
        elif self.setup.get("visible_within_ms") == 0 and not group.is_broadcast:
            expect(places or reads.max[row] != reads.offset[row], "an empty poll counts")
        expect(count == len(places), "a poll passed a message")
        expect(not places or begin <= places[0] <= places[-1] < end, "a message is outside of its poll")
        at, line, furthest = group.members.get(client, (begin, 0, end))
        is_moved = at != begin and self.rest.history.causes(group.name, line, reads.start[row])
        expect(at == begin or is_moved, "a consumer continued elsewhere")
        group.members[client] = end, reads.end[row], max(furthest, end)
        if (lag := self.setup.get("lag_max_ms")) is not None and group.name not in self.rest.draining:
            due = self.due[min(max(furthest, end, 0), self.size)]
            expect(self.began[row] - due <= lag * MS, "a poll lags")
        group.taken, group.reached = max([group.taken, *places[-1:]]), max(group.reached, end)

    def call(self, row: int) -> None:
        group = self.group(self.names[self.reads.group[row]])
        places = self.deliver(group, self.names[self.client[row]], row)
        group.reached = max([group.reached, *(place + 1 for place in places[-1:])])
        if group.is_orderly:
            expect(not group.is_calling, "calls overlap")
            expect(places and places[0] > group.called, "calls are not in the order of offsets")
            group.is_calling, group.called = True, places[-1]

    def returned(self, row: int) -> None:
        self.group(self.names[self.reads.group[row]]).is_calling = False

    def deliver(self, group: Group, client: str, row: int) -> list[int]:
        """Examine the messages that a read delivers; return their places."""
        places: list[int] = self.delivered[self.first[row] : self.first[row] + self.reads.count[row]]
        got, last = group.got[client if group.is_broadcast else ""], -1
        for place in places:
            expect(place > last, "a read is not in the order of offsets")
            expect(self.begun[place], "a message was read before its send")
            expect(group.selects[place], "a group received another tag")
            expect(not got[place], "a message was received twice")
            got[place], last = 1, place
        self.known = max(self.known, last + 1)
        return places

    def commit(self, row: int) -> None:
        group, place = self.group(self.names[self.commits.group[row]]), self.commits.offset[row] - self.low
        expect(place >= group.committed, "commits go back")
        expect(place <= group.reached, "a commit is ahead")
        group.committed = place

    def finish(self) -> None:
        """Examine what each group has received by the end."""
        topic = self.name.split("/")[0]
        drains = [(group, line) for (group, each), line in self.rest.drains.items() if each == topic]
        for group, line in ((self.group(name), line) for name, line in drains):
            every = [np.zeros(self.size, bool), *(np.frombuffer(each, bool) for each in group.got.values())]
            left = (self.log.end < line) & np.frombuffer(group.selects, bool) & ~np.any(every, axis=0)
            expect(not left.any(), "a group drained without a message")
        members = [client for group in self.groups.values() if group.is_broadcast for client in group.got]
        expect(len(members) == len(set(members)), "a client is in two broadcast groups")
        for group in self.groups.values():
            for got in group.got.values() if group.is_broadcast else ():
                expect(0 not in got.strip(b"\0"), "a member missed a message")
            is_bound = group.called >= 0 and self.setup.get("stall_within_ms") is not None
            expect(not is_bound or group.called == self.size - 1, "an orderly group is not at the end")


def lists(table: Any) -> Any:
    """Return the numbers of a table's columns as lists."""
    numbers = {name: column for name, column in vars(table).items() if column.dtype.kind != "S"}
    return SimpleNamespace(**{name: column.tolist() for name, column in numbers.items()})
