"""Deletion of expired segments, and of further segments when the disk is full.

See docs/reference/protocol/recovery.md, "Expiry". Whole segments of the log are deleted, oldest first but
never the last one; then the corresponding queue and index files. It does not matter whether the messages were
consumed: a consumer that is behind receives the queue's new first offset.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from mqproof.impl.runtime.clock import local_hour
from mqproof.impl.runtime.disk import Disk
from mqproof.impl.runtime.runtime import Offload
from mqproof.impl.store.config import StoreConfig
from mqproof.impl.store.files.commit_log import CommitLog
from mqproof.impl.store.files.consume_queue import ConsumeQueues
from mqproof.impl.store.files.index import Index
from mqproof.impl.store.files.segments import Removal

_log = logging.getLogger(__name__)

_SEGMENTS_A_ROUND: Final = 10


def expired_before(
    log: CommitLog, config: StoreConfig, now_ms: int, used_percent: float, *, manually: bool
) -> int:
    """Return the commit offset before which the log may be deleted; its begin if nothing may be deleted."""
    forced = config.clean_forcibly and used_percent > config.disk_forcibly_percent
    is_time = local_hour(now_ms) in config.delete_when_hours
    if not (forced or manually or is_time or used_percent > config.disk_used_percent_max):
        return log.begin
    before = log.begin
    for start in log.segments.starts[1 : 1 + _SEGMENTS_A_ROUND]:
        if start > log.needed_from:
            break
        stored_ms = _store_time_ms(log, start)
        # A segment is as old as the next one's first record; the last segment has none after it, and stays.
        if stored_ms is None or not (forced or now_ms - stored_ms >= config.file_reserved_ms):
            break
        before = start
    return before


def _store_time_ms(log: CommitLog, start: int) -> int | None:
    """Return the store time of a segment's first record; None if there is none that is durable."""
    if start >= log.flushed:
        return None
    stored = next((stored for _, stored in log.scan(start) if stored is not None), None)
    return stored.store_timestamp_ms if stored else None


class Cleaner:
    """Deletes expired segments. `is_disk_full` is the result of the last check."""

    def __init__(
        self,
        log: CommitLog,
        queues: ConsumeQueues,
        index: Index | None,
        disk: Disk,
        offload: Offload,
        write_checkpoint: Callable[[], Awaitable[None]],
        may_forget: Callable[[int], bool],
        may_remove: Callable[[int], bool],
    ) -> None:
        self.is_disk_full = False
        self.readers: dict[str, Callable[[], int | None]] = {}
        """Reader of the log to a function, which returns the first commit offset that it needs, or None."""
        self.wanted_before = 0
        """The commit offset before which the log would be deleted if no record were needed."""
        self._log = log
        self._queues = queues
        self._index = index
        self._disk = disk
        self._offload = offload
        self._write_checkpoint = write_checkpoint
        self._may_forget = may_forget
        self._may_remove = may_remove
        self._removals: list[Removal] = []
        """The segments of the log that are not read any more, but still exist."""
        self._followed = 0
        """Commit offset up to which the queues and the index have removed what the log no longer has."""
        self._one_round = asyncio.Lock()

    def needed_from(self) -> int | None:
        """Return the commit offset of the first record that must not be deleted; None if there is none."""
        return min((at for needed in self.readers.values() if (at := needed()) is not None), default=None)

    async def clean(self, directory: str, config: StoreConfig, now_ms: int, *, manually: bool) -> int:
        """Delete what may be deleted; return the number of deleted log segments. Raises OSError."""
        async with self._one_round:
            return await self._clean(directory, config, now_ms, manually=manually)

    def look(self, directory: str, config: StoreConfig) -> float:
        """Return the used part of the disk in percent, and update `is_disk_full`. Raises OSError."""
        used_percent = self._disk.space(directory).used_percent
        is_full = used_percent > config.disk_warning_percent
        if is_full and not self.is_disk_full:
            _log.error(
                "%s: the disk is %.1f %% full, more than %d %%: messages are refused until space is free",
                directory,
                used_percent,
                config.disk_warning_percent,
            )
        elif self.is_disk_full and not is_full:
            _log.warning(
                "%s: the disk is %.1f %% full: messages are accepted again, no restart is needed",
                directory,
                used_percent,
            )
        self.is_disk_full = is_full
        return used_percent

    async def _clean(self, directory: str, config: StoreConfig, now_ms: int, *, manually: bool) -> int:
        used_percent = self.look(directory, config)
        before = expired_before(self._log, config, now_ms, used_percent, manually=manually)
        removal = self._log.segments.detach_before(self._without_needed(before))
        if removal.files:
            self._removals.append(removal)
        if self._log.begin > self._followed:
            for queue in self._queues:
                queue.first = queue.find(self._log.begin)
            await self._follow(self._log.begin)
        return len(removal.files)

    def _without_needed(self, before: int) -> int:
        """Return the start of the segment with the first needed record, if that is before an offset."""
        needed = self.needed_from() if before > self._log.begin else None
        self.wanted_before = before if needed is not None and needed < before else 0
        if not self.wanted_before or needed is None:
            return before
        return max((start for start in self._log.segments.starts if start <= needed), default=self._log.begin)

    async def _follow(self, log_begin: int) -> None:
        """Delete the segments of the log before its begin, and then the queue and index files for them.

        The checkpoint is written first: it has the begin of the log and counts entries, and the next recovery
        must not treat the files deleted now as lost.
        """
        await self._write_checkpoint()
        if self._may_remove(log_begin):
            gone, self._removals = self._removals, []
            await self._offload(lambda: _carry_out(gone))
        if not self._may_forget(log_begin):
            return
        removals = [queue.expire(log_begin) for queue in self._queues]
        if self._index is not None:
            removals.append(self._index.detach_before(log_begin))
        await self._offload(lambda: _carry_out(removals))
        self._followed = log_begin


def _carry_out(removals: list[Removal]) -> None:
    for removal in removals:
        removal.carry_out()
