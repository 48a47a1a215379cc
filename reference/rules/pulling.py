"""The answers to pull requests, and the offset where a group begins.

These are pure functions of one queue. Delivery.tla leaves out statuses, counts and tags; these functions add
them. See docs/reference/protocol/pulling.md, "Get statuses"; docs/reference/protocol/offsets.md, "Consumer
offsets".
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import Final, NamedTuple

from mqproof.reference.rules import sql_filter

EVERYTHING: Final = "*"
SQL: Final = "sql:"
"""The beginning of an SQL92 expression."""


class Status(StrEnum):
    FOUND = "found"
    NO_NEW = "no new message"
    NO_MATCHED = "no matched message"
    MOVED = "offset moved"


class Queue(NamedTuple):
    """One queue of a topic at one broker."""

    first: int = 0
    """The offset of the first message that has not expired."""
    tags: tuple[str, ...] = ()
    """The tags of all messages from offset 0 on; "" means no tag."""

    @property
    def end(self) -> int:
        """The offset after the last one."""
        return len(self.tags)


class Answer(NamedTuple):
    status: Status
    next_offset: int
    """The latest offset at which the next pull may begin."""
    offsets: tuple[int, ...] = ()
    """The offsets of the messages found."""

    next_least: int | None = None
    """The earliest offset at which the next pull may begin, if it differs.

    After a full answer, messages that are not selected may be skipped in this pull or in the next one.
    """

    def goes_on_at(self, offset: int) -> bool:
        least = self.next_offset if self.next_least is None else self.next_least
        return least <= offset <= self.next_offset


def tag_hash(text: str) -> int:
    """Return a tag's hash as brokers compare it: Java's hash of its UTF-16 text, 32 bits and signed."""
    value = 0
    data = text.encode("utf-16-be")
    for high, low in zip(data[::2], data[1::2], strict=True):
        value = (31 * value + (high << 8 | low)) & 0xFFFFFFFF
    return value - (1 << 32) if value >= 1 << 31 else value


def selects(expression: str, tag: str) -> bool:
    """Return whether a broker selects a message by `A || B`, or `*`. It compares only hashes.

    An SQL92 expression selects by the property TAGS, which a message without a tag lacks.
    """
    if expression.startswith(SQL):
        return sql_filter.selects(expression.removeprefix(SQL), {"TAGS": tag} if tag else {})
    wanted = [each.strip() for each in expression.split("||")]
    return expression == EVERYTHING or tag_hash(tag) in {tag_hash(each) for each in wanted if each}


def pulled(queue: Queue, offset: int, count: int, expression: str = EVERYTHING) -> Answer:
    """Return the answer to a pull of at most `count` messages from an offset on.

    It assumes few and small messages: the answer is not limited by its size or by the number of entries
    examined.
    """
    if queue.end == 0:
        return Answer(Status.MOVED if offset else Status.NO_NEW, 0)
    if offset < queue.first:
        return Answer(Status.MOVED, queue.first)
    if offset > queue.end:
        return Answer(Status.MOVED, queue.end)
    if offset == queue.end:
        return Answer(Status.NO_NEW, offset)
    selected = [at for at in range(offset, queue.end) if selects(expression, queue.tags[at])]
    if not selected:
        return Answer(Status.NO_MATCHED, queue.end)
    if len(selected) < count:
        return Answer(Status.FOUND, queue.end, tuple(selected))
    next_offset = selected[count] if len(selected) > count else queue.end
    return Answer(Status.FOUND, next_offset, tuple(selected[:count]), selected[count - 1] + 1)


def begins(queue: Queue, committed: int | None) -> frozenset[int | None]:
    """Return the offsets that a broker may report to a group.

    It is the committed offset if there is one. Otherwise it is 0 if the first message still exists, or none.
    For a queue that never had a message, 0 (4.9, ours) and none (5.5) mean the same place.
    """
    if committed is not None:
        return frozenset({committed})
    if queue.end == 0:
        return frozenset({0, None})
    return frozenset({None if queue.first else 0})


def found_by_time(times: Sequence[tuple[int, int]], asked: int) -> frozenset[int]:
    """Return the offsets that a search by time may report.

    `times` has the offset and store time of each message. 4.9 and ours report the nearest message, the
    earlier of two at equal distance, and the last one for a time after the end. 5.x reports the first message
    not before that time, and the end offset for a time after the end. A queue without messages gives 0.
    """
    if not times:
        return frozenset({0})
    exact = {offset for offset, time in times if time == asked}
    if exact:
        return frozenset(exact)
    before = max((each for each in times if each[1] < asked), default=None)
    after = min((each for each in times if each[1] > asked), default=None)
    if before is None or after is None:
        last = times[-1][0]
        return frozenset({last, last + 1} if after is None else {after[0]})
    nearer = asked - before[1] <= after[1] - asked
    return frozenset({before[0], after[0]} if nearer else {after[0]})


def held(queue: Queue, offset: int) -> bool:
    """Return whether a pull that may wait is held by the broker: only at the queue's end."""
    return pulled(queue, offset, 1).status is Status.NO_NEW
