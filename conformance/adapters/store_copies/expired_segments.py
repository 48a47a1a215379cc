"""Deletes the old segments of a stopped store's copy, and compares everything that is left.

See docs/reference/protocol/recovery.md, "Expiry". The log then begins at the first segment that is kept.
Every queue begins at its first record there, and messages before it are not found in any way.
"""

import asyncio
import random
from collections.abc import Iterator, Sequence
from typing import Final

from mqproof.conformance.adapters.store_copies.recovered_copies import RecoveredCopies
from mqproof.conformance.answers.request_and_answer import Wrong
from mqproof.conformance.answers.store_on_disk import LOG, Log, expected_queues, read_log
from mqproof.conformance.answers.watch import Watch
from mqproof.conformance.wire import chapters
from mqproof.impl.remoting.message import Message
from mqproof.impl.runtime.simulated_disk import SimulatedDisk
from mqproof.impl.store.message_store import MessageStore
from mqproof.impl.store.results import GetStatus

_SEGMENTS_A_ROUND: Final = 10
_OLD_S: Final = 0.01
"""Longer than segments are kept."""


class ExpiredSegments:
    """Stores on copies of a stopped store, in which old segments expire."""

    def __init__(
        self,
        stopped: SimulatedDisk,
        directory: str,
        copies: RecoveredCopies,
        watch: Watch,
    ) -> None:
        self._stopped = stopped
        self._directory = directory
        self._copies = copies
        self._watch = watch

    async def examine(self, chance: random.Random) -> None:
        """Delete segments, read everything, stop, lose power or kill, and read everything again."""
        disk = self._stopped.copy()
        whole = read_log(self._copies.files(disk), self._copies.shape)
        await asyncio.sleep(_OLD_S)
        store = await self._copies.started("expiry", disk)
        if store is None:
            return
        begins = sorted(int(name) for name in disk.names(f"{self._directory}/{LOG.rstrip('/')}"))
        needed = chance.choice((None, None, chance.randrange(whole.begin, whole.end + 1)))
        store.keep_log_from("the examiner", lambda: needed)
        begin = _begin_after(begins, whole, needed)
        count = await store.clean(manually=True)
        what = f"old segments are deleted, {needed} is needed"
        self._compare(f"{count} segments deleted", begins.index(begin), count, what)
        self._watch.found(what, self._wrong(store, whole, begin))
        if chance.random() < 0.5:
            await store.stop()
        else:
            store.kill()
        if chance.random() < 0.5:
            disk.lose_power()
        else:
            disk.crash_process()
        store = await self._copies.started(f"{what}, and a restart", disk)
        if store is None:
            return
        self._watch.found(f"{what}, and a restart", self._wrong(store, whole, begin))
        for queue in expected_queues(whole, self._copies.shape, store.deleted_topics):
            offset = store.next_queue_offset(*queue)
            properties = {"UNIQ_KEY": "after", "DELAY": str(queue[1] + 1)}
            await store.put(Message(queue[0], b"after", properties, queue_id=queue[1]))
            found = store.get(*queue, offset)
            self._compare(f"the message at {offset} of {queue}", 1, len(found.records), what)
        await store.stop()
        disk.crash_process()
        names = [int(name) for name in disk.names(f"{self._directory}/{LOG.rstrip('/')}")]
        self._compare("the first segment", begin, min(names), what)
        await self._copies.restart(what, disk)

    def _wrong(self, store: MessageStore, whole: Log, begin: int) -> Iterator[Wrong]:
        """Compare every read with the records from `begin` on."""
        raw = {record.commit_offset: record.raw for record in whole.records if record.commit_offset >= begin}
        for queue, entries in expected_queues(whole, self._copies.shape, store.deleted_topics).items():
            left = [offset for offset, (at, _, _) in sorted(entries.items()) if at >= begin]
            first, end = min(left, default=max(entries) + 1), max(entries) + 1
            yield from _differs(
                f"the extent of {queue}", (first, end), (store.min_offset(*queue), store.max_offset(*queue))
            )
            for offset in sorted(entries):
                found = store.get(*queue, offset, max_count=1)
                if offset < first:
                    expected = (GetStatus.OFFSET_TOO_SMALL if first else found.status, first, ())
                    yield from _differs(
                        f"{queue} at {offset}", expected, (found.status, found.next_offset, found.records)
                    )
                else:
                    yield from _differs(f"{queue} at {offset}", (raw[entries[offset][0]],), found.records)
        for record in whole.records:
            at = record.commit_offset
            yield from _differs(f"the record at {at}", raw.get(at), store.record_at(at))
            is_deleted = at < store.deleted_topics.get(record.topic, 0)
            if (key := record.properties.get("UNIQ_KEY")) and not record.system_flag & 12 and not is_deleted:
                found_by_key = store.find(record.topic, key, 1, 0, 1 << 60)
                yield from _differs(f"the message {key}", [raw[at]] if at in raw else [], found_by_key)

    def _compare(self, name: str, expected: object, observed: object, what: str) -> None:
        self._watch.found(what, _differs(name, expected, observed))


def _begin_after(starts: Sequence[int], log: Log, needed: int | None) -> int:
    """Return where the log begins after the expiry of all segments but the last one."""
    firsts = {start for start in starts if any(start <= each.commit_offset for each in log.records)}
    begin = starts[0]
    for start in starts[1 : 1 + _SEGMENTS_A_ROUND]:
        if start not in firsts or (needed is not None and needed < start):
            break
        begin = start
    return begin


def _differs(name: str, expected: object, observed: object) -> Iterator[Wrong]:
    if expected != observed:
        yield Wrong(chapters.DAMAGED_FILES, f"{name}: {observed!r}, expected {expected!r}")
