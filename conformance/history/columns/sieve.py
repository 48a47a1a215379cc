"""Finds the queues in which no rule can be violated, from their columns.

`cleared` examines one queue. It raises `Irregular` unless the queue is regular: a strong condition, under
which every rule is held or has nothing to examine. It returns the findings that the rules would have, with
their counts. An irregular queue may be without an anomaly: the ordinary rules judge it.

A regular queue has contiguous offsets. All its messages were delivered, with the contents that were sent,
after their sends began, and at most once to each group, or to each member of a broadcast group. Polls
continue where the last one ended, unless the consumer was moved, and pass nothing that their group selects.
Commits do not decrease, and are not ahead of the reads.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np

from mqproof.conformance.engine.finding import Finding, Tally, not_judged
from mqproof.conformance.history.columns.encoding import Array
from mqproof.conformance.history.columns.tables import Columns, Queue
from mqproof.conformance.history.lines import topic_of
from mqproof.conformance.history.record import NEVER, Record
from mqproof.conformance.history.rules.linear import INSTANTS
from mqproof.conformance.history.rules.order import causes_of
from mqproof.report.model import Verdict

_MS: Final = 1_000_000


class Irregular(Exception):  # noqa: N818  # not an error: other rules judge the queue
    """A queue is not regular. The message says why."""


def expect(holds: object, otherwise: str) -> None:
    """Raise Irregular unless a part of the definition holds."""
    if not holds:
        raise Irregular(otherwise)


class Cleared(NamedTuple):
    """What is known of a regular queue."""

    findings: dict[str, Finding]
    messages: int
    offset_ids: int
    """The number of messages that have an offset id."""


def cleared(columns: Columns, queue: Queue, rest: Record) -> Cleared:
    """Return the findings of the rules on a regular queue; `rest` has the operations that are not in columns.

    That its ids and offset ids occur nowhere else is not examined.

    Raises:
        Irregular: the queue is not regular.
    """
    sieve = _Sieve(columns, queue, rest)
    findings = sieve.findings()
    return Cleared(findings, sieve.size, int(((sieve.offset_id >= 0) | (sieve.sent_id >= 0)).sum()))


class _Sieve:
    """The columns of one queue, with messages by their place: the offset from the first one."""

    def __init__(self, columns: Columns, queue: Queue, rest: Record) -> None:
        self.queue, self.rest, self.setup = queue, rest, rest.setup
        self.names = columns.names
        self.looked: dict[str, int] = {}
        """By rule, the number of checks."""
        reads = queue.reads
        self.group, self.committer = columns.texts[reads.group], columns.texts[queue.commits.group]
        self.client = columns.texts[np.where(reads.client < 0, reads.process, reads.client)]
        self.at = queue.read_at
        self.row_read = np.repeat(np.arange(reads.rows), reads.count)
        """The read of each delivered message."""

    def findings(self) -> dict[str, Finding]:
        self._sends()
        self._contents()
        self._reads()
        self._ends()
        self._polls()
        self._lag()
        for code in _present(self.group):
            self._group(code)
        self._broadcast_members()
        self._drains()
        self._commits()
        return _findings(self.looked, self.rest, self.worst_ns // _MS)

    def _sends(self) -> None:
        sends = self.queue.sends
        expect(sends.rows, "no message was sent")
        self.size = int(sends.count.sum(dtype=np.int64))
        send = np.repeat(np.arange(sends.rows), sends.count)
        number = np.arange(self.size) - np.repeat(np.cumsum(sends.count) - sends.count, sends.count)
        offsets = sends.offset[send] + number
        self.low = int(offsets.min())
        order = np.full(self.size, -1)
        expect(int(offsets.max()) - self.low + 1 == self.size, "offsets of sends are not contiguous")
        order[offsets - self.low] = np.arange(self.size)
        expect(order.min() >= 0, "two sends have one offset")
        expect(sends.count.max() < INSTANTS, "a batch is too long")
        send, number = send[order], number[order]
        self.message = sends.message[send] + number
        """The row of the message at each place."""
        self.sent_start, self.sent_end, self.sent_at = sends.start[send], sends.end[send], sends.ended[send]
        self.sent_id = np.where(number == 0, sends.offset_id[send], -1)
        """The row of the answered offset id at each place, -1 if there is none."""
        put = np.maximum.accumulate(self.sent_start)
        expect((self.sent_end > put).all(), "sends are not in the order of offsets")
        batched = int(sends.count[sends.count > 1].sum())
        self._looked(A01=self.size, A02=self.size, A11=sends.rows, A12=batched, C01=self.size)

    def _contents(self) -> None:
        contents, messages = self.queue.contents, self.queue.messages
        self.place = contents.offset - self.low
        expect(contents.rows and 0 <= self.place.min() <= self.place.max() < self.size, "unknown offsets")
        used = np.zeros(contents.rows, bool)
        used[self.queue.delivered.content] = True
        expect(used.all(), "contents without a delivery")
        row = self.message[self.place]
        other = np.flatnonzero(contents.message != row)
        for name in ("id", "body", "tag", "key") if len(other) else ():
            texts = getattr(messages, name)
            same = texts[contents.message[other]] == texts[row[other]]
            expect(same.all(), f"a {name} differs from the one that was sent")
        first = np.full(self.size, -1)
        first[self.place[::-1]] = np.arange(contents.rows - 1, -1, -1)
        expect(first.min() >= 0, "a message was not delivered")
        if contents.rows > self.size:
            equal = np.array_equal
            for name, is_same in (("born", equal), ("stored", equal), ("offset_id", self._are_same)):
                column = getattr(contents, name)
                expect(is_same(column, column[first[self.place]]), f"{name} of a place differ")
        self.offset_id = contents.offset_id[first]
        answered = (self.sent_id >= 0) & (self.offset_id >= 0)
        sent, read = self.sent_id[answered], self.offset_id[answered]
        expect(self._are_same(sent, read), "an offset id differs from the answer")
        stored, born = contents.stored[first], contents.born[first]
        is_dated = stored > 0
        expect((np.diff(stored[is_dated]) >= 0).all(), "store times go back")
        expect((born <= stored)[is_dated].all(), "a message was stored before its birth")
        bodies = int((messages.body != b"")[self.message].sum())
        named = self.queue.reads.node >= 0
        expect(not named.any() or named.all(), "only some polls name their node")
        ids = self.size + (0 if named.any() else int((self.offset_id >= 0).sum()))
        self._looked(
            A04=self.size, A06=self.size, A08=self.size, C16=ids, C17=bodies, C18=int(is_dated.sum())
        )

    def _are_same(self, rows: Array, others: Array) -> bool:
        """Return whether rows of offset ids have the same text; -1 is none."""
        where = np.flatnonzero(rows != others)
        rows, others = rows[where], others[where]
        if not len(where) or min(rows.min(), others.min()) < 0:
            return not len(where)
        texts = self.queue.offset_ids.text
        return bool((texts[rows] == texts[others]).all())

    def _reads(self) -> None:
        reads, contents = self.queue.reads, self.queue.delivered.content
        self.row_place = self.place[contents]
        expect((self.sent_start[self.row_place] < self.at[self.row_read]).all(), "read before its send")
        rises = (np.diff(self.row_place) > 0) | (np.diff(self.row_read) > 0)
        expect(rises.all(), "a read is not in the order of offsets")
        end = np.cumsum(reads.count)
        full = reads.count > 0
        self.last = np.full(reads.rows, -1)
        """The last offset of each read, -1 if it is empty."""
        self.last[full] = self.row_place[end[full] - 1] + self.low
        self.first = np.full(reads.rows, NEVER)
        self.first[full] = self.row_place[(end - reads.count)[full]] + self.low
        self.is_poll = self.queue.is_poll
        self.row_is_poll = self.is_poll[self.row_read]
        polled = int(self.row_is_poll.sum())
        named = int((reads.node >= 0)[self.row_read].sum())
        self._looked(A07=len(contents), A09=polled, A10=polled, C05=named)
        self._looked(**{"C04.1": polled, "C04.2": polled})

    def _ends(self) -> None:
        """No stated end of the queue is before a message that was known when the request began."""
        sends, reads = self.queue.sends, self.queue.reads
        stating = self.is_poll & ((reads.max >= 0) | (reads.count == 0))
        ends = np.where(reads.max >= 0, reads.max, reads.offset)[stating]
        bounds = [
            each for each in self.rest.bounds if each.value.queue == self.queue.name and each.value.max >= 0
        ]
        ends = np.append(ends, np.array([each.value.max for each in bounds], np.int64))
        start = np.append(reads.start[stating], np.array([each.span.start for each in bounds], np.int64))
        full = reads.count > 0
        for index, offset in (
            (sends.end, sends.offset + sends.count - 1),
            (self.at[full], self.last[full]),
        ):
            order = np.argsort(index)
            highest = np.append(-1, np.maximum.accumulate(offset[order]))
            known = highest[np.searchsorted(index[order], start)]
            expect((known < ends).all(), "an end is stated before a known message")
        count = int(stating.sum())
        self._looked(A14=count, C02=count, C03=count if self.rest.starts.at else 0)

    def _polls(self) -> None:
        """Polls pass what they do not select, and continue where the last one ended."""
        reads, poll = self.queue.reads, self.is_poll
        expect((reads.offset[poll] >= 0).all(), "a poll has no offset")
        expect((reads.next >= reads.offset)[poll].all(), "a poll was moved back")
        full = poll & (reads.count > 0)
        expect((self.first >= reads.offset)[full].all(), "a poll returned an earlier offset")
        expect((self.last < reads.next)[full].all(), "a poll returned an offset beyond its next")
        rows = np.flatnonzero(poll)
        rows = rows[np.lexsort((reads.end[rows], self.client[rows], self.group[rows]))]
        before, after = rows[:-1], rows[1:]
        same = (self.group[before] == self.group[after]) & (self.client[before] == self.client[after])
        jumps = same & (reads.offset[after] != reads.next[before])
        causes = causes_of(self.rest)
        for one, two in zip(before[jumps].tolist(), after[jumps].tolist(), strict=True):
            group = str(self.names[self.group[one]])
            is_moved = causes.between(group, int(reads.end[one]), int(reads.start[two]))
            expect(is_moved, "a consumer continued elsewhere")
        self.chain, self.starts = rows, np.append(True, ~same)[: len(rows)]
        """The polls of one member after the other, and whether each is the member's first one."""
        self._looked(C07=int(poll.sum()) + self.queue.commits.rows)

    def _lag(self) -> None:
        """A15. Groups that drain may lag."""
        reads = self.queue.reads
        draining = {step.value.group for step in self.rest.drains}
        codes = [code for code in _present(self.group) if str(self.names[code]) in draining]
        counts = ~np.isin(self.group[self.chain], codes)
        chain, starts = self.chain[counts], self.starts[counts]
        member = np.cumsum(starts)
        # Offsets of later members are raised above those of earlier ones, so that one maximum serves all.
        step = int(reads.next[chain].max(initial=0)) + 1
        expect(step * (len(chain) + 1) < NEVER, "offsets are too large")
        reached = np.maximum.accumulate(reads.next[chain] + member * step) - member * step
        ended = np.append(self.sent_at, NEVER)
        earliest = np.minimum.accumulate(ended[::-1])[::-1]
        lag = reads.began[chain] - earliest[np.clip(reached - self.low, 0, self.size)]
        self.worst_ns = max(0, int(lag.max(initial=0)))
        bound = self.setup.lag_max_ms
        expect(bound is None or self.worst_ns <= bound * _MS, "a poll lags")
        self._looked(A15=len(chain))

    def _group(self, code: int) -> None:
        name, queue = str(self.names[code]), self.queue
        group, reads = self.rest.group(name), queue.reads
        is_mine = self.group == code
        rows = is_mine[self.row_read]
        if not group.broadcast:
            received = np.bincount(self.row_place[rows], minlength=self.size)
            expect(received.max(initial=0) <= 1, "a group received a message twice")
            self._looked(C13=int((rows & ~self.row_is_poll).sum()))
        polls = is_mine & self.is_poll
        if not group.tags:
            expect((reads.next - reads.offset == reads.count)[polls].all(), "a poll passed a message")
        else:
            tags = [tag.encode() for tag in group.tags]
            selected = np.isin(queue.messages.tag[self.message], tags)
            expect(selected[self.row_place[rows]].all(), "a group received another tag")
            low, high = reads.offset[polls] - self.low, reads.next[polls] - self.low
            expect(low.min(initial=0) >= 0 and high.max(initial=0) <= self.size, "a poll passed the end")
            before = np.append(0, np.cumsum(selected))
            expect(
                (before[high] - before[low] == reads.count[polls]).all(), "a poll passed a selected message"
            )
            self._looked(C14=int(rows.sum()))
        if not group.tags and not group.broadcast:
            self._linear(rows & self.row_is_poll, polls)
        if group.orderly:
            expect(not group.broadcast, "an orderly group is broadcast")
            self._orderly(np.flatnonzero(is_mine & ~self.is_poll))

    def _linear(self, rows: Array, polls: Array) -> None:
        """L01: in the order of offsets, no message is put or taken before an earlier one.

        Two messages then overtake each other only if one is read before its send, which is excluded.
        """
        reads = self.queue.reads
        if self.setup.visible_within_ms == 0:
            empty = polls & (reads.count == 0) & (reads.max == reads.offset)
            expect(not empty.any(), "an empty poll counts")
        place, read = self.row_place[rows], self.row_read[rows]
        order = np.argsort(place)
        place, read = place[order], read[order]
        take = np.maximum.accumulate(reads.start[read])
        expect((reads.end[read] > take).all(), "polls overtake each other")
        self._looked(L01=len(place))

    def _orderly(self, calls: Array) -> None:
        reads = self.queue.reads
        if not len(calls):
            return
        calls = calls[np.argsort(reads.start[calls])]
        start, end = reads.start[calls], reads.end[calls]
        expect((end[:-1] < start[1:]).all(), "calls overlap")
        expect(reads.count[calls].min() > 0, "a call without messages")
        first, last = self.first[calls], self.last[calls]
        expect((last[:-1] < first[1:]).all(), "calls are not in the order of offsets")
        if self.setup.stall_within_ms is not None:
            expect(last[-1] == self.low + self.size - 1, "an orderly group is not at the end")
            self._looked(**{"C10.2": 1})
        is_call = np.zeros(reads.rows, bool)
        is_call[calls] = True
        keyed = (self.queue.messages.key[self.message] != b"")[self.row_place]
        self._looked(A13=int((keyed & is_call[self.row_read]).sum()))
        self._looked(**{"C10.1": len(calls)})

    def _broadcast_members(self) -> None:
        members: set[int] = set()
        for code in _present(self.group):
            if not self.rest.group(str(self.names[code])).broadcast:
                continue
            for client in _present(self.client[self.group == code]):
                expect(client not in members, "a client is in two broadcast groups")
                members.add(client)
                is_mine = (self.group == code) & (self.client == client)
                mine = np.bincount(self.row_place[is_mine[self.row_read]], minlength=self.size)
                expect(mine.max(initial=0) <= 1, "a member received a message twice")
                held = np.flatnonzero(mine)
                if len(held):
                    expect(held[-1] - held[0] + 1 == len(held), "a member missed a message")
                self._looked(C15=len(held))

    def _drains(self) -> None:
        for group, topic, drain in _drains(self.rest):
            if topic == topic_of(self.queue.name):
                tags = [tag.encode() for tag in self.rest.tags.get(group, ())]
                due = self.sent_end < drain
                if tags:
                    due &= np.isin(self.queue.messages.tag[self.message], tags)
                codes = [code for code, name in enumerate(self.names) if str(name) == group]
                got = np.zeros(self.size, bool)
                got[self.row_place[np.isin(self.group, codes)[self.row_read]]] = True
                expect(got[due].all(), "a group drained without a message")
                self._looked(A03=int(due.sum()))

    def _commits(self) -> None:
        commits, reads = self.queue.commits, self.queue.reads
        at, reach = self.at, np.maximum(np.maximum(reads.next, self.last + 1), reads.offset)
        restarts = np.array(self.rest.ends.at, np.int64)
        for code in _present(self.committer):
            mine = np.flatnonzero(self.committer == code)
            mine = mine[np.argsort(commits.start[mine])]
            start, end, offset = commits.start[mine], commits.end[mine], commits.offset[mine]
            expect((np.diff(offset) >= 0).all(), "commits go back")
            expect((end[:-1] < start[1:]).all(), "commits overlap")
            read = np.flatnonzero((self.group == code) & ((reads.count > 0) | (reads.next >= 0)))
            read = read[np.argsort(at[read])]
            reached = np.append(-1, np.maximum.accumulate(reach[read]))
            expect((offset <= reached[np.searchsorted(at[read], start)]).all(), "a commit is ahead")
            # Each rise above the last commit of a broker's life counts.
            life = np.searchsorted(restarts, end)
            rises = (np.diff(offset) > 0) & (np.diff(life) == 0)
            self._looked(C06=int(rises.sum()))
        self._looked(C08=commits.rows)

    def _looked(self, **counts: int) -> None:
        for rule, count in counts.items():
            self.looked[rule] = self.looked.get(rule, 0) + count


def _present(codes: Array) -> list[int]:
    """Return the different numbers of names, ascending."""
    found: list[int] = np.flatnonzero(np.bincount(codes)).tolist()
    return found


def _drains(rest: Record) -> Iterator[tuple[str, str, int]]:
    """Yield the last drain of each group and topic that ended, with its start."""
    drains = {
        (step.value.group, topic): step.span.start
        for step in rest.drains
        if step.span.end < NEVER
        for topic in step.value.topics
    }
    yield from ((group, topic, start) for (group, topic), start in drains.items())


NAMES: Final = {
    "A01": "acknowledged", "A03": "acknowledged", "A04": "messages", "A06": "messages", "A07": "delivered",
    "A08": "places", "A09": "polled", "A10": "polled", "A11": "acknowledged", "A12": "batched",
    "A13": "delivered", "A14": "ends", "C01": "acknowledged", "C02": "ends", "C03": "ends", "C04.1": "polled",
    "C04.2": "polled", "C05": "places_read_twice", "C06": "commits_and_queries", "C07": "polls_and_commits",
    "C08": "commits", "C10.1": "calls", "C11": "popped", "C13": "delivered", "C14": "delivered",
    "C15": "delivered", "C16": "ids", "C17": "bodies", "C18": "stored", "C19": "stored", "L01": "operations",
}  # fmt: skip
"""What each rule counts. A02, A15, C10.2 and C12 have findings of another form.

C09, C20 and C21 examine no queues.
"""
_EXTRA: Final = {"A04": {"recovered": 0}, "A14": {"late": 0}, "C13": {"dead_letters": 0}}


def _findings(looked: dict[str, int], rest: Record, worst_ms: int) -> dict[str, Finding]:
    found = {
        rule: Tally(looked.get(rule, 0)).finding(name, **_EXTRA.get(rule, {})) for rule, name in NAMES.items()
    }
    found["A02"] = Finding(Verdict.HELD, {"acknowledged": looked["A02"], "unseen": 0})
    polls = {"polls": looked["A15"], "worst_ms": worst_ms}
    lag = Tally(looked["A15"]).finding("polls", worst_ms=worst_ms)
    found["A15"] = not_judged(polls) if rest.setup.lag_max_ms is None else lag
    is_bound = rest.setup.stall_within_ms is not None
    found["C10.2"] = Tally(looked.get("C10.2", 0)).finding("queues") if is_bound else not_judged()
    found["C12"] = not_judged()
    return found
