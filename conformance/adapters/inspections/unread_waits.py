"""A broker that cannot read its waiting messages at its start: what it refuses until then, and what counts.

See docs/reference/protocol/timers.md, "Recalls" and "Times", transactions.md, and offsets.md.
"""

import asyncio
import errno
from typing import Any, Final

from mqproof.conformance.adapters.inspections import java_values
from mqproof.conformance.adapters.inspections.disk_log import queue_of
from mqproof.conformance.adapters.inspections.site import Inspection, Site
from mqproof.conformance.adapters.inspections.traffic import commit, make_group, make_topic, send
from mqproof.conformance.answers.stored_record import StoredRecord
from mqproof.conformance.hosts.simulated import MASTER
from mqproof.conformance.wire import chapters

_TOPIC: Final = "t"
_HALF: Final = "RMQ_SYS_TRANS_HALF_TOPIC"
_COMMIT, _ROLLBACK = 8, 12
_BUSY, _NOT_AVAILABLE = 2, 14
_READERS: Final = ("delivery of timers", "checks of transactions")
"""The tasks that read what waits."""
_FLUSH_S: Final = 5


async def unread_waits(site: Site) -> None:
    await make_topic(site, _TOPIC)
    await _versions(site)
    site.rule = chapters.TIMERS
    halves = [await _half(site, f"half {number}", 0) for number in range(2)]
    await _half(site, "half 2", _BUSY)
    handles = [await _wait(site, f"timer-{number}", 60, 0) for number in range(3)]
    await _wait(site, "timer-3", 60, _BUSY)
    disk = site.cluster.machines[MASTER].disk

    def fail(path: str) -> None:
        task = asyncio.current_task()
        if "/commitlog/" in path and task is not None and task.get_name() in _READERS:
            raise OSError(errno.EIO, "the disk failed")

    await site.cluster.stop(MASTER)
    disk.on_read = fail
    await site.cluster.start(MASTER)
    await asyncio.sleep(3)
    await _unread(site, halves, handles)
    disk.on_read = None
    await asyncio.sleep(3)
    await _read(site, halves, handles)


async def _unread(site: Site, halves: list[StoredRecord], handles: list[str]) -> None:
    """Until they are read, the messages that wait fill the limits, and none is ended or recalled."""
    await _half(site, "half 3", _BUSY)
    await _wait(site, "timer-4", 60, _BUSY)
    await _end(site, halves[0], _COMMIT, _NOT_AVAILABLE)
    await _recall(site, handles[0], _NOT_AVAILABLE)
    await send(site, _TOPIC, "now")
    site.compare("the messages", [b"now"], [each.body for each in queue_of(site, _TOPIC)])


async def _read(site: Site, halves: list[StoredRecord], handles: list[str]) -> None:
    """Once they are read, each is ended, recalled and delivered, and the limits have room for others."""
    await _half(site, "half 4", _BUSY)
    await _end(site, halves[0], _COMMIT, 0)
    await _end(site, halves[1], _ROLLBACK, 0)
    await asyncio.sleep(4)
    for number in range(3):
        await _half(site, f"half {5 + number}", 0 if number < 2 else _BUSY)
    await _wait(site, "timer-5", 60, _BUSY)
    await _recall(site, handles[0], 0)
    await _wait(site, "timer-6", 1, 0)
    await _wait(site, "timer-7", 1, _BUSY)
    await asyncio.sleep(60)
    found = [each.body for each in queue_of(site, _TOPIC)]
    site.compare("the messages", [b"now", b"half 0", b"timer-6", b"timer-1", b"timer-2"], found)
    await _wait(site, "timer-8", 1, 0)


async def _half(site: Site, name: str, expects: int) -> StoredRecord:
    of = {"TRAN_MSG": "true", "PGROUP": "p", "UNIQ_KEY": name, "CHECK_IMMUNITY_TIME_IN_SECONDS": "10000"}
    await send(site, _TOPIC, name, f=4, of=of, expects=expects)
    return queue_of(site, _HALF)[-1]


async def _wait(site: Site, name: str, seconds: int, expects: int) -> str:
    of = {"TIMER_DELAY_SEC": str(seconds), "UNIQ_KEY": name}
    answer = await send(site, _TOPIC, name, of=of, expects=expects)
    return answer.fields.get("recallHandle", "")


async def _recall(site: Site, handle: str, expects: int) -> None:
    await site.ask("RECALL_MESSAGE", expects=expects, producerGroup="p", topic=_TOPIC, recallHandle=handle)


async def _end(site: Site, half: StoredRecord, flag: int, expects: int) -> None:
    key = half.properties["UNIQ_KEY"]
    fields: dict[str, Any] = {
        "producerGroup": "p", "tranStateTableOffset": half.queue_offset, "msgId": key, "transactionId": key,
        "commitLogOffset": half.commit_offset, "commitOrRollback": flag, "fromTransactionCheck": False,
    }  # fmt: skip
    await site.ask("END_TRANSACTION", expects=expects, **fields)


async def _versions(site: Site) -> None:
    """The version of the offsets grows by one with each write of the file, and has the time of the write."""
    site.rule = chapters.CONSUMER_OFFSETS
    await make_group(site, "g")
    await asyncio.sleep(2 * _FLUSH_S)
    before = await _version(site)
    for commits in (1, 0, 2, 0):
        for offset in range(commits):
            await commit(site, "g", _TOPIC, 0, offset)
        began_ms = site.now_ms
        await asyncio.sleep(_FLUSH_S + 0.01)
        now = await _version(site)
        site.compare(f"the new versions after {commits} commits", int(commits > 0), now[0] - before[0])
        if commits:
            is_recent = began_ms <= now[1] <= site.now_ms
            site.compare("whether the version has the time of the write", True, is_recent)
        else:
            site.compare("the version without a commit", before, now)
        before = now


async def _version(site: Site) -> tuple[int, int]:
    shown = java_values.read((await site.ask("GET_ALL_CONSUMER_OFFSET")).body)["dataVersion"]
    return int(shown["counter"]), int(shown["timestamp"])


UNREAD_WAITS: Final = Inspection(
    "unread waits", unread_waits, {"timers_waiting_max": 3, "transactions_open_max": 2}
)
