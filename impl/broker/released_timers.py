"""The timer files of released brokers, which are read once, when our broker opens such a store.

See docs/reference/protocol/timers.md, "Files of released brokers".
"""

import struct
from typing import Final

from mqproof.impl.broker.timed_messages import Point
from mqproof.impl.runtime.disk import Disk, read_whole
from mqproof.impl.store.base import Store

_CHECKPOINT: Final = struct.Struct(">qqqq")
"""The time up to which slots were read, the flushed end of the timer log, and two ends of the timer queue."""
_TIME_MAX: Final = 10**15


def released_progress(disk: Disk, store: Store) -> Point | None:
    """Return what a released broker has delivered, from config/timercheck; None without a valid file.

    A message that may or may not have been delivered counts as not delivered. Raises OSError.
    """
    path = f"{store.directory}/config/timercheck"
    if not disk.exists(path):
        return None
    data = read_whole(disk, path)
    if len(data) < _CHECKPOINT.size:
        return None
    read_ms, _, queue_end, _ = _CHECKPOINT.unpack_from(data)
    if not 0 <= read_ms < _TIME_MAX or queue_end < 0:
        return None
    return Point(0, queue_end, read_ms, store.next_commit_offset)
