"""Remembers which queue entries were compared with their records, by a checksum for each block of entries.

A read with a filter passes over entries whose records it does not deliver. It must compare them too, because
a damaged tag code would hide a message. Comparing an entry means reading its record, so a block is compared
once, and afterwards only its checksum is.
"""

import zlib
from typing import Final

from mqproof.impl.store.files.consume_queue import ConsumeQueue, QueueKey

BLOCK_ENTRIES: Final = 100
_BLOCKS_MAX: Final = 100_000
"""How many blocks of all queues are remembered; the oldest are compared again."""


class VerifiedEntries:
    """The checksums of the blocks of one store's queues in which every entry was sound."""

    def __init__(self) -> None:
        self._sums: dict[tuple[QueueKey, int], int] = {}

    def has(self, queue: ConsumeQueue, number: int) -> bool:
        """Return whether the block is as it was when its entries were compared."""
        known = self._sums.get((queue.key, number))
        return known is not None and known == self._sum(queue, number)

    def add(self, queue: ConsumeQueue, begin: int, end: int) -> None:
        """Record that all entries from one offset to before another are sound, as far as blocks are whole."""
        for number in range(-(-begin // BLOCK_ENTRIES), end // BLOCK_ENTRIES):
            self._sums[queue.key, number] = self._sum(queue, number)
        while len(self._sums) > _BLOCKS_MAX:
            del self._sums[next(iter(self._sums))]

    def _sum(self, queue: ConsumeQueue, number: int) -> int:
        return zlib.crc32(queue.raw(number * BLOCK_ENTRIES, BLOCK_ENTRIES))
