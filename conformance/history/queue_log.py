"""Examines the messages of a queue in columns: they are contiguous, and each was read as it was sent.

A message is named by its place: its offset from the first one.
"""

from typing import Any

import numpy as np

from mqproof.conformance.history.column_files import expect


class Log:
    """The messages of a queue by their places."""

    def __init__(self, queue: Any) -> None:
        sends, messages, contents = queue.sends, queue.messages, queue.contents
        self.size = len(messages.id)
        expect(self.size, "no message was sent")
        for counts, rows in ((sends.count, messages.id), (queue.reads.count, queue.delivered.content)):
            expect((counts >= 0).all() and counts.sum() == len(rows), "counts are not those of the rows")
        send, first = (
            np.repeat(np.arange(len(sends.count)), sends.count),
            np.cumsum(sends.count) - sends.count,
        )
        offset = sends.offset[send] + np.arange(self.size) - first[send]
        row = np.argsort(offset)
        self.low, self.tag, self.end = int(offset[row[0]]), messages.tag[row], sends.end[send[row]]
        self.ended = sends.ended[send[row]]
        expect((offset[row] == self.low + np.arange(self.size)).all(), "offsets are not contiguous")
        place = contents.offset - self.low
        expect(((place >= 0) & (place < self.size)).all(), "an unknown offset was read")
        for name in ("id", "body", "tag", "key"):
            is_same = getattr(contents, name) == getattr(messages, name)[row[place]]
            expect(is_same.all(), "a message is not the one that was sent")
        self.delivered = place[queue.delivered.content]
        """The place of each delivered message."""
        expect(np.bincount(self.delivered, minlength=self.size).all(), "a message was not read")
        one = np.zeros(self.size, np.int64)
        one[place] = np.arange(len(place))
        for name in ("born", "stored", "offset_id"):
            column = getattr(contents, name)
            expect((column == column[one[place]]).all(), "a time or offset id of a message changes")
        born, stored, there = contents.born[one], contents.stored[one], contents.offset_id[one]
        expect((np.diff(stored[stored > 0]) >= 0).all(), "store times go back")
        expect(((born <= stored) | (stored == 0)).all(), "a message was stored before its birth")
        answered, place = sends.offset_id, sends.offset - self.low
        is_same = (answered == there[place]) | (answered == b"") | (there[place] == b"")
        expect(is_same.all(), "an offset id is not the one that was answered")
        ids = there.astype(np.promote_types(there.dtype, answered.dtype))
        ids[place] = np.where(answered == b"", there[place], answered)
        self.ids, self.offset_ids = messages.id, ids[ids != b""]
