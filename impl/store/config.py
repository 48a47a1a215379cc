"""What can be set on a store; names follow RocketMQ's properties, with the unit last."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from mqproof.impl.store.delay import LEVELS, parse_levels

QUEUE_UNIT_BYTES: Final = 20


class FlushMode(StrEnum):
    """flushDiskType: whether an answer waits for the disk."""

    SYNC_FLUSH = "SYNC_FLUSH"
    ASYNC_FLUSH = "ASYNC_FLUSH"


@dataclass(frozen=True, slots=True)
class StoreConfig:
    """Raises ValueError, naming the field, when a value cannot work."""

    flush_mode: FlushMode = FlushMode.ASYNC_FLUSH
    commit_log_segment_bytes: int = 1 << 30
    """mappedFileSizeCommitLog"""
    consume_queue_segment_bytes: int = 300_000 * QUEUE_UNIT_BYTES
    """mappedFileSizeConsumeQueue times the 20 bytes of a unit"""
    index_enabled: bool = True
    """messageIndexEnable"""
    index_slots: int = 5_000_000
    """maxHashSlotNum"""
    index_entries: int = 20_000_000
    """maxIndexNum: one more than fit an index file"""
    message_bytes_max: int = 4 << 20
    """maxMessageSize: of the body"""
    sync_flush_timeout_ms: int = 5000
    """syncFlushTimeout: then the put is answered FLUSH_DISK_TIMEOUT"""
    flush_log_interval_ms: int = 500
    """flushIntervalCommitLog: the pause between two flushes under ASYNC_FLUSH"""
    flush_log_least_bytes: int = 4 * 4096
    """flushCommitLogLeastPages: less than this waits for the thorough flush"""
    flush_log_thorough_interval_ms: int = 10_000
    flush_queues_interval_ms: int = 1000
    checkpoint_interval_ms: int = 5_000
    """flushConsumeQueueThoroughInterval: how often the checkpoint is written"""
    delete_when_hours: tuple[int, ...] = (4,)
    """deleteWhen: hours of the day at which old segments are deleted"""
    file_reserved_ms: int = 72 * 3_600_000
    """fileReservedTime: how long a segment is kept"""
    disk_used_percent_max: int = 75
    """diskMaxUsedSpaceRatio: above it old segments are deleted at any hour"""
    disk_forcibly_percent: int = 85
    """diskSpaceCleanForciblyRatio: above it segments are deleted however young"""
    disk_warning_percent: int = 90
    """diskSpaceWarningLevelRatio: above it nothing is stored"""
    clean_forcibly: bool = True
    """cleanFileForciblyEnable"""
    clean_interval_ms: int = 10_000
    """cleanResourceInterval"""
    delay_levels_ms: tuple[int, ...] = parse_levels(LEVELS)
    """messageDelayLevel: how long messages of each level wait, level 1 first"""

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
