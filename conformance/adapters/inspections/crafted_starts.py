"""Starts on stores that an inspection wrote: what the log, the queues and the checkpoint say together.

See docs/reference/protocol/recovery.md, "Recovery" and "Deleted topics", and storing.md, "Damaged files".
"""

import asyncio
import json
from typing import Final

from mqproof.conformance.adapters.inspections.crafted_cases import CASES, EVERY_QUEUE, Left
from mqproof.conformance.adapters.inspections.crafted_store import DELETIONS, CraftedStore, Queue
from mqproof.conformance.adapters.inspections.site import Inspection, Site
from mqproof.conformance.adapters.inspections.stopped_files import compare_files
from mqproof.conformance.adapters.inspections.store_damages import SMALL
from mqproof.conformance.adapters.inspections.traffic import make_group, make_topic, pull, send
from mqproof.conformance.answers.stored_record import read_records
from mqproof.conformance.hosts.simulated import MASTER
from mqproof.conformance.wire import chapters
from mqproof.impl.store.config import FlushMode
from mqproof.impl.store.errors import StoreError


async def crafted_starts(site: Site) -> None:
    """Start on each store, send, and stop: compare what is delivered, the next offsets, and the files."""
    site.rule = chapters.RECOVERY
    site.watch.judges_answers = False
    await make_topic(site, "t", 3)
    await make_topic(site, "o")
    await make_group(site, "g")
    await asyncio.sleep(6)
    await site.cluster.stop(MASTER)
    whole = site.cluster.machines[MASTER].disk
    for name, build in CASES.items():
        if not site.watch.wrong:
            site.replace_disk(whole.copy())
            site.watch.judges_answers = False
            store = CraftedStore(site.now_ms - 60_000)
            await _start(site, name, store, build(store))


async def _start(site: Site, name: str, store: CraftedStore, left: Left) -> None:
    store.install(site)
    try:
        await site.cluster.start(MASTER)
    except StoreError as error:
        is_said = bool(left.refused) and left.refused in str(error)
        site.compare(f"{name}: the refusal", True, is_said, str(error))
        return
    site.compare(f"{name}: whether the broker starts", not left.refused, True)
    for queue in EVERY_QUEUE:
        await _delivered(site, name, store, left, queue)
    place = store.end if left.end is None else left.end
    for number, queue in enumerate(EVERY_QUEUE[:2]):
        answer = await send(site, queue[0], f"{_next(store, left, queue)} later", queue[1])
        offset = str(_next(store, left, queue))
        site.compare(f"{name}: the next offset of {queue}", offset, answer.fields["queueOffset"])
        if not number:
            site.compare(f"{name}: the next place", place, int(answer.fields["msgId"][-16:], 16))
    if store.deleted and store.deleted.get("t", 0) > place:
        kept = json.loads(site.cluster.machines[MASTER].disk.written(DELETIONS).rstrip(b"\0"))
        site.compare(f"{name}: the deletion", place, kept["t"])
    disk = site.cluster.machines[MASTER].disk
    site.compare(f"{name}: whether there is an abort file", True, disk.exists("/store/abort"))
    await site.restart(killed=True)
    for queue in EVERY_QUEUE:
        await _delivered(site, f"{name}, after a kill", store, left, queue, later=queue in EVERY_QUEUE[:2])
    await site.cluster.stop(MASTER)
    site.compare(f"{name}: whether an abort file is left", False, disk.exists("/store/abort"))
    if left.is_whole:
        compare_files(site, name, SMALL)


def _next(store: CraftedStore, left: Left, queue: Queue) -> int:
    """Return the offset of the next message of a queue."""
    numbers = left.messages.get(queue, [])
    after = store.records[numbers[-1]].queue_offset + 1 if numbers else left.first.get(queue, 0)
    return left.next.get(queue, after)


async def _delivered(
    site: Site, name: str, store: CraftedStore, left: Left, queue: Queue, *, later: bool = False
) -> None:
    """Compare the extent of a queue, and the messages that a client receives from its begin on."""
    expected = [store.records[number].body for number in left.messages.get(queue, [])]
    end = _next(store, left, queue)
    if later:
        expected.append(b"%d later" % end)
    for request, offset in (
        ("GET_MIN_OFFSET", left.first.get(queue, 0)), ("GET_MAX_OFFSET", end + later),
    ):  # fmt: skip
        answer = await site.ask(request, topic=queue[0], queueId=queue[1])
        site.compare(f"{name}: {request} of {queue}", str(offset), answer.fields["offset"])
    offset, found = left.first.get(queue, 0), list[bytes]()
    for _ in range(5):
        answer = await pull(site, queue[0], offset, queue[1], expects=None)
        if answer.code not in (0, 20):
            break
        found += [each.body for each in read_records(answer.body)] if not answer.code else []
        offset = int(answer.fields["nextBeginOffset"])
    site.compare(f"{name}: the messages of {queue}", expected, found)


_FORMS: Final = {"store": SMALL}
CRAFTED_STARTS: Final = Inspection("crafted starts", crafted_starts, _FORMS)
CRAFTED_STARTS_SYNC: Final = Inspection(
    "crafted flushed starts", crafted_starts, _FORMS, flush=FlushMode.SYNC_FLUSH
)
