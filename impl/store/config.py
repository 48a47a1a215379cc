"""The configuration of a store.

The names follow RocketMQ's properties, with the unit as the last part.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from mqproof.impl.store.delay import LEVELS, parse_levels

QUEUE_UNIT_BYTES: Final = 20


class FlushMode(StrEnum):
    """The property flushDiskType: whether an answer waits for the disk."""

    SYNC_FLUSH = "SYNC_FLUSH"
    ASYNC_FLUSH = "ASYNC_FLUSH"


@dataclass(frozen=True, slots=True)
class StoreConfig:
    """The settings of a store. An impossible value raises ValueError with the name of the field."""

    flush_mode: FlushMode = FlushMode.ASYNC_FLUSH
    """The property flushDiskType: with SYNC_FLUSH, an answer waits until its message is on disk."""
    commit_log_segment_bytes: int = 1 << 30
    """The property mappedFileSizeCommitLog: the size of a segment. Do not change it for an existing store."""
    consume_queue_segment_bytes: int = 300_000 * QUEUE_UNIT_BYTES
    """The property mappedFileSizeConsumeQueue: the size of a segment.

    It is rounded up to a multiple of the 20 bytes of a unit. Do not change it for an existing store.
    """
    index_enabled: bool = True
    """The property messageIndexEnable: whether messages can be found by key."""
    index_slots: int = 5_000_000
    """The property maxHashSlotNum: the hash slots of an index file. Do not change it for an existing store.
    """
    index_entries: int = 20_000_000
    """The property maxIndexNum: one more than the entries of an index file. Do not change it for an
    existing store.
    """
    message_bytes_max: int = 4 << 20
    """The property maxMessageSize: the limit on the size of the body."""
    sync_flush_timeout_ms: int = 5000
    """The property syncFlushTimeout: after this time the put is answered FLUSH_DISK_TIMEOUT."""
    flush_log_interval_ms: int = 500
    """The property flushIntervalCommitLog: the pause between two flushes under ASYNC_FLUSH."""
    flush_log_least_bytes: int = 4 * 4096
    """The property flushCommitLogLeastPages, in bytes: fewer bytes wait for the thorough flush."""
    flush_log_thorough_interval_ms: int = 10_000
    """The property flushCommitLogThoroughInterval: after this time, even a few bytes are flushed."""
    flush_queues_interval_ms: int = 1000
    """The property flushIntervalConsumeQueue: the pause between two flushes of consume queues."""
    checkpoint_interval_ms: int = 5_000
    """The property flushConsumeQueueThoroughInterval: how often the checkpoint is written."""
    delete_when_hours: tuple[int, ...] = (4,)
    """The property deleteWhen: the hours of the day at which expired segments are deleted."""
    file_reserved_ms: int = 72 * 3_600_000
    """The property fileReservedTime, in hours: how long a segment is kept."""
    disk_used_percent_max: int = 75
    """The property diskMaxUsedSpaceRatio: above it, expired segments are deleted at any hour."""
    disk_forcibly_percent: int = 85
    """The property diskSpaceCleanForciblyRatio: above it, segments are deleted regardless of their age."""
    disk_warning_percent: int = 90
    """The property diskSpaceWarningLevelRatio: above it, puts are refused."""
    clean_forcibly: bool = True
    """The property cleanFileForciblyEnable: whether segments that have not expired may be deleted."""
    clean_interval_ms: int = 10_000
    """The property cleanResourceInterval: the pause between two searches for segments to delete."""
    scrub_enabled: bool = True
    """The property scrubEnable: whether records that no client reads are compared in the background."""
    scrub_bytes_per_s: int = 1 << 20
    """The property scrubBytesPerSecond: how much of the log a scrub reads in a second."""
    scrub_interval_ms: int = 24 * 3_600_000
    """The property scrubInterval: the pause between two passes of the scrub."""
    delay_levels_ms: tuple[int, ...] = parse_levels(LEVELS)
    """The property messageDelayLevel: the delay of each level, level 1 first."""

    def __post_init__(self) -> None:
        if self.consume_queue_segment_bytes % QUEUE_UNIT_BYTES:
            raise ValueError(
                f"consume_queue_segment_bytes is {self.consume_queue_segment_bytes},"
                f" a multiple of {QUEUE_UNIT_BYTES} expected"
            )
        for name in self.__slots__:
            value = getattr(self, name)
            if type(value) is int and value <= 0:
                raise ValueError(f"{name} is {value}, more than 0 expected")
