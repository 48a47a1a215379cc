"""What the verifiers of lost messages share: the lines that show that a message is lost."""

from bisect import bisect_right
from collections import defaultdict
from itertools import accumulate
from typing import Any

from mqproof.conformance.history.undisturbed import ends, intervals, readable_at
from mqproof.conformance.history.verification import NEVER, History, Op, Reasons, first


class Fates:
    """What the reads and the answers of a history show about its messages."""

    def __init__(self, history: History) -> None:
        self.history, self.calm = history, intervals(history)
        self.read, self.last, self.sent = dict[str, int](), dict[Any, int](), dict[Any, Op]()
        self.spans = defaultdict[str, dict[str, tuple[int, int, int]]](dict)
        self.ends, self.front = defaultdict[str, dict[str, Any]](dict), defaultdict[str, list[Any]](list)
        for op in history.reads:
            low, high, line = self.spans[op.queue].get(op.group, (NEVER, -1, -1))
            if op.read[-1]["offset"] > high:
                high, line = op.read[-1]["offset"], op.at
            self.spans[op.queue][op.group] = min(low, op.read[0]["offset"]), high, line
            for message in op.read:
                self.read.setdefault(message["id"], op.at)
                self.last[op.queue, op.answered.get("node", ""), message["offset"], message["id"]] = op.at
        for sent, number, _ in history.placed:
            self.sent.setdefault((sent.queue, sent.offset + number), sent)
        for op, end in sorted(ends(history), key=lambda each: each[0].start):
            self.ends[op.queue].setdefault(op.answered.get("node", ""), []).append((op.start, end, op))
            if op.f == "bounds" and op.answered.get("min", -1) > 0:
                self.front[op.queue].append((op.answered["min"], op.end))
        for nodes in self.ends.values():
            for node, each in nodes.items():
                least = list(accumulate((end for _, end, _ in reversed(each)), min))[::-1]
                nodes[node] = [start for start, _, _ in each], least, each

    def expired(self, queue: str, offset: int) -> Reasons:
        """Return the answers that the queue begins after the offset."""
        return [("expired", line) for low, line in self.front[queue] if low > offset >= 0]

    def passed(self, sent: Op, number: int) -> Reasons:
        """Return the reads of groups that passed the place of a message, although they select it."""
        offset, tag, found = sent.offset + number, sent.sent[number].get("tag", ""), Reasons()
        for name, (low, high, line) in self.spans[sent.queue].items():
            tags = self.history.groups[name].get("tags", ())
            is_before = offset < low and not tags and self.history.groups[name].get("from_start", True)
            if is_before or (low < offset < high and (not tags or tag in tags)):
                found.append(("passed", line))
        return found

    def cut(self, sent: Op, number: int) -> Reasons:
        """Return the answers that show that the queue permanently ended before a message."""
        offset, id_, found = sent.offset + number, sent.sent[number]["id"], Reasons()
        for node, (starts, least, each) in self.ends[sent.queue].items():
            last = self.last.get((sent.queue, node, offset, id_))
            place = bisect_right(starts, sent.end if last is None else last)
            if place == len(starts) or least[place] > offset or self.sent[sent.queue, offset] is not sent:
                continue
            # An unread message may be late, unless its time is over or the broker was restarted.
            time = readable_at(self.history, self.calm, sent)
            restart = [*first("", self.history.at["start"], sent.end, NEVER), ("", NEVER)][0][1]
            for start, end, op in each[place:]:
                if end <= offset and (last is not None or op.began > time or start > restart):
                    found.append(("end", op.end))
        return found

    def lost(self, sent: Op, number: int) -> Reasons:
        """Return the lines that show that a message is lost: a read passed it, or its queue ended."""
        offset, is_read = sent.offset + number, sent.sent[number]["id"] in self.read
        if sent.offset < 0:
            return []
        may_pass = not is_read and not self.expired(sent.queue, offset)
        return self.cut(sent, number) or (self.passed(sent, number) if may_pass else [])
