"""A broker whose files are altered while it is stopped: what it delivers, finds, refuses and uses again.

See docs/reference/protocol/storing.md, "Damaged files", and recovery.md, "Recovery".
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from mqproof.conformance.adapters.inspections import store_damages
from mqproof.conformance.adapters.inspections.kept_messages import (
    CLUSTER,
    QUEUES,
    Kept,
    fill,
    flushed,
    kept_now,
    same,
    seen,
    sent_after,
)
from mqproof.conformance.adapters.inspections.site import Inspection, Site
from mqproof.conformance.adapters.inspections.stopped_files import compare_files
from mqproof.conformance.adapters.inspections.store_damages import (
    EXPIRED,
    FILES,
    INDEX,
    LOG,
    LOG_SEGMENT,
    REBUILT,
    RECORDS,
    SMALL,
    UNCOUNTED,
    Case,
    entry_place,
    log_path,
)
from mqproof.conformance.adapters.inspections.traffic import pull, send
from mqproof.conformance.hosts.simulated import MASTER
from mqproof.conformance.wire import chapters
from mqproof.impl.runtime.simulated_disk import SimulatedCrashError, SimulatedDisk, Step
from mqproof.impl.store.config import FlushMode
from mqproof.impl.store.errors import StoreError

_BROKER: Final = {"store": SMALL, "cluster": CLUSTER}
_CRASHES: Final = 5
"""At how many steps of a start the power is cut."""
_RESERVED_MS: Final = 72 * 3_600_000


async def damaged_records(site: Site) -> None:
    """Damage records of the counted part of a log, with and without the files of queues."""
    await _counted(site, RECORDS)


async def damaged_files(site: Site) -> None:
    """Damage entries of queues, the index and the checkpoint, and remove files."""
    await _counted(site, FILES)


async def _counted(site: Site, cases: Sequence[Case]) -> None:
    site.rule = chapters.DAMAGED_FILES
    kept = await fill(site)
    same(site, "the messages before a stop", kept, await seen(site))
    await site.cluster.stop(MASTER)
    await examine(site, cases, kept)


async def damaged_end(site: Site) -> None:
    """Damage records behind the part that the checkpoint counts, after a kill."""
    site.rule = chapters.DAMAGED_FILES
    await fill(site)
    for number in range(16):
        await send(site, "plain", "x" * 300, number % 2, of={"KEYS": f"even{number % 2}"})
    kept = await kept_now(site)
    site.cluster.kill(MASTER)
    await examine(site, UNCOUNTED, kept)


async def expired_segments(site: Site) -> None:
    """Delete the old segments of the log by request; then damage what is left, as before."""
    site.rule = chapters.EXPIRY
    await fill(site)
    machine = site.cluster.machines[MASTER]
    machine.clock.skew_us += 80 * 3_600_000_000
    for number in range(24):
        topic, queue_id = QUEUES[number % 3]
        values = {"KEYS": f"k3 even{queue_id}", "TAGS": "tag1"}
        await send(site, topic, f"{number:02}" * 150, queue_id, of=values)
    await flushed()
    kept = await kept_now(site)
    left = await _expired(site, kept)
    same(site, "after the deletion", left, await seen(site))
    for queue in QUEUES:
        if left.first[queue]:
            answer = await pull(site, queue[0], 0, queue[1], expects=21)
            site.compare(
                f"the next offset of {queue}", str(left.first[queue]), answer.fields["nextBeginOffset"]
            )
    await site.ask("DELETE_EXPIRED_COMMITLOG")
    left = await sent_after(site, "after the deletion", left)
    same(site, "with later messages", left, await seen(site))
    await flushed()
    files = _files(machine.disk)
    await site.cluster.stop(MASTER)
    site.compare("the files after a stop", files, _files(machine.disk))
    await examine(site, EXPIRED, left)


def _files(disk: SimulatedDisk) -> set[str]:
    return {path for folder in (LOG, store_damages.QUEUES, INDEX) for path in disk.files(folder)}


async def _expired(site: Site, kept: Kept) -> Kept:
    """Request the deletion, compare the files that are left, and return the messages that are."""
    disk = site.cluster.machines[MASTER].disk
    before = _files(disk)
    starts = sorted({each.commit_offset // LOG_SEGMENT * LOG_SEGMENT for each in kept.records})
    old = [
        start
        for start in starts[1:11]
        if next(each for each in kept.records if each.commit_offset >= start).store_ms
        < site.now_ms - _RESERVED_MS
    ]
    begin = old[-1]
    left = kept.from_place(begin)
    ends = {path: int.from_bytes(disk.written(path)[24:32], "big") for path in disk.files(INDEX)[:-1]}
    await site.ask("DELETE_EXPIRED_COMMITLOG")
    await asyncio.sleep(1)
    gone = {path for path in before if path.startswith(LOG) and path < log_path(begin)}
    for topic, queue in QUEUES:
        folder = f"{store_damages.QUEUES}/{topic}/{queue}"
        needed = min(entry_place(topic, queue, left.first[topic, queue])[0], max(disk.files(folder)))
        gone |= {path for path in before if path.startswith(f"{folder}/") and path < needed}
    gone |= {path for path, end in ends.items() if end < begin}
    site.compare("the deleted files", sorted(gone), sorted(before - _files(disk)))
    return left


async def crashed_starts(site: Site) -> None:
    """Cut the power at a step of a start that writes files again; the next start completes it."""
    site.rule = chapters.RECOVERY
    kept = await fill(site)
    await site.cluster.stop(MASTER)
    disk = site.cluster.machines[MASTER].disk
    for case in REBUILT:
        last = await _steps(site, case, disk.copy(), kept)
        for step in {1, 2, *range(3, last, max(1, last // _CRASHES)), last}:
            if not site.watch.wrong:
                await _crash(site, case, disk.copy(), kept, step)


async def _steps(site: Site, case: Case, disk: SimulatedDisk, kept: Kept) -> int:
    """Return how many changes of files a start makes after the damage."""
    case.damage(disk, kept)
    site.replace_disk(disk)
    before = disk.steps
    await site.cluster.start(MASTER)
    await site.cluster.stop(MASTER)
    return disk.steps - before


async def _crash(site: Site, case: Case, disk: SimulatedDisk, kept: Kept, at: int) -> None:
    case.damage(disk, kept)
    site.replace_disk(disk)
    end = disk.steps + at

    def crash(_: Step) -> None:
        if disk.steps >= end:
            raise SimulatedCrashError

    disk.on_step = crash
    with suppress(SimulatedCrashError):
        await site.cluster.start(MASTER)
    disk.on_step = None
    await site.lose_power()
    same(site, f"{case.name}, after a crash at step {at}", kept, await seen(site))
    await site.cluster.stop(MASTER)
    compare_files(site, f"{case.name}, after a crash at step {at}", SMALL)


async def examine(site: Site, cases: Sequence[Case], kept: Kept) -> None:
    """Start the stopped broker again after each damage of its files, until something is wrong."""
    disk = site.cluster.machines[MASTER].disk
    for case in cases:
        if not site.watch.wrong:
            site.replace_disk(disk.copy())
            await _examine(site, case, kept)


async def _examine(site: Site, case: Case, kept: Kept) -> None:
    """Damage the files and start the broker; compare everything, send, and start again."""
    disk = site.cluster.machines[MASTER].disk
    case.damage(disk, kept)
    try:
        await site.cluster.start(MASTER)
    except StoreError as error:
        site.compare(
            f"{case.name}: the refusal", True, bool(case.refused) and case.refused in str(error), str(error)
        )
        return
    if case.refused:
        site.report(f"{case.name}: the broker starts")
    left = kept.without(case.lost(kept), case.cut_from(kept))
    same(site, case.name, left, await seen(site))
    await site.lose_power()
    more = await sent_after(site, case.name, left)
    await flushed()
    await site.lose_power()
    same(site, f"{case.name}, with later messages", more, await seen(site))
    await site.cluster.stop(MASTER)
    if not case.lost(kept):  # a log with damaged records has others than its files say
        compare_files(site, case.name, SMALL)


DAMAGED_RECORDS: Final = Inspection("damaged records", damaged_records, _BROKER)
DAMAGED_FILES: Final = Inspection("damaged files", damaged_files, _BROKER)
DAMAGED_END: Final = Inspection("damaged end", damaged_end, _BROKER)
DAMAGED_END_SYNC: Final = Inspection("damaged flushed end", damaged_end, _BROKER, flush=FlushMode.SYNC_FLUSH)
EXPIRED_SEGMENTS: Final = Inspection("expired segments", expired_segments, _BROKER)
CRASHED_STARTS: Final = Inspection("crashed starts", crashed_starts, _BROKER)
