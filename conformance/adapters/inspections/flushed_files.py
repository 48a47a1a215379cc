"""When a broker's files are durable, how large they are, and what it does while its disk does not work.

See docs/reference/protocol/storing.md, "Durability", and recovery.md, "Expiry".
"""

import asyncio
import errno
from dataclasses import replace
from typing import Any, Final

from mqproof.conformance.adapters.inspections.kept_messages import (
    CLUSTER,
    fill,
    flushed,
    kept_now,
)
from mqproof.conformance.adapters.inspections.raw_client import Answer
from mqproof.conformance.adapters.inspections.site import CODES, Inspection, Site, written
from mqproof.conformance.adapters.inspections.stopped_files import compare_files
from mqproof.conformance.adapters.inspections.store_damages import INDEX, LOG, LOG_SEGMENT, SMALL
from mqproof.conformance.adapters.inspections.traffic import make_group, make_topic, pull, records, send
from mqproof.conformance.answers.stored_record import read_records
from mqproof.conformance.hosts.simulated import MASTER
from mqproof.conformance.wire import chapters
from mqproof.impl.runtime.clock import local_hour
from mqproof.impl.runtime.disk import Space
from mqproof.impl.runtime.simulated_disk import Step
from mqproof.impl.store.config import FlushMode, StoreConfig

_HOUR_US: Final = 3_600_000_000
_LATE_FLUSHES: Final = replace(
    SMALL, flush_log_interval_ms=300, flush_log_least_bytes=2000, flush_log_thorough_interval_ms=1500,
    flush_queues_interval_ms=600_000, checkpoint_interval_ms=600_000,
)  # fmt: skip


async def flushed_in_time(site: Site) -> None:
    """A power loss loses no message that is older than the pause between two flushes."""
    site.rule = chapters.DURABILITY
    await make_topic(site, "t")
    await flushed()
    waits = ((10, 1.7), (2500, 0.4), (10, 1.7), (1000, 1.7), (2500, 0.4))
    for stored, (bytes_, wait_s) in enumerate(waits, 1):
        await send(site, "t", "x" * bytes_)
        await asyncio.sleep(wait_s)
        site.forget()
        await site.lose_power()
        site.compare(
            f"the messages after {bytes_} bytes and {wait_s} s", stored, len(await records(site, "t"))
        )
    await flushed()
    checkpoint = await _checkpoint(site)
    await asyncio.sleep(5)
    site.compare("the checkpoint of an idle broker", checkpoint, await _checkpoint(site))


async def checkpoints(site: Site) -> None:
    """The checkpoint shows everything that is durable, at most 5 s later, and what a start wrote."""
    site.rule = chapters.CHECKPOINT
    for number in range(4):
        await fill(site) if not number else await send(site, "plain", of={"KEYS": "k3"})
        await asyncio.sleep(6)
        end = (await kept_now(site)).records[-1]
        times, position = await _checkpoint(site)
        site.compare("whether the checkpoint counts all", True, position > end.commit_offset)
        if number:  # the first ones end with a delayed message's own record
            site.compare("the times of log and queues", [end.store_ms] * 2, times[:2])
        if number == 1:
            await site.restart(killed=True)
            site.compare("the counted position after a start", position, (await _checkpoint(site))[1])
    await site.cluster.stop(MASTER)
    disk = site.cluster.machines[MASTER].disk
    compare_files(site, "after a stop", SMALL)
    full = disk.files(INDEX)[-2]
    times, _ = await _checkpoint(site)
    site.compare(
        "the time of the last full index file", int.from_bytes(disk.written(full)[8:16], "big"), times[2]
    )
    steps = disk.steps
    await asyncio.sleep(30)
    site.compare("what a stopped broker writes", 0, disk.steps - steps)
    names = disk.files(INDEX)
    disk.damage("/store/checkpoint", 1024, bytes(84))
    await site.cluster.start(MASTER)
    site.compare("the index files after a released broker", names, disk.files(INDEX))
    await site.cluster.stop(MASTER)
    compare_files(site, "after a released broker", SMALL)


async def _checkpoint(site: Site) -> tuple[list[int], int]:
    """Return the times of the checkpoint, and the position up to which it counts."""
    data = site.cluster.machines[MASTER].disk.written("/store/checkpoint")
    times = [int.from_bytes(data[at : at + 8], "big") for at in (0, 8, 16)]
    return times, int.from_bytes(data[1032:1040], "big")


async def default_files(site: Site) -> None:
    """The files of a broker with the default settings have the documented sizes."""
    site.rule = chapters.STORE_DIRECTORY
    await make_topic(site, "t")
    await send(site, "t", "m", of={"KEYS": "k"})
    for size, code in (((4 << 20) - 1, 0), (4 << 20, 0), ((4 << 20) + 1, 13), (70_000, 0), (3 << 20, 0)):
        answer = await send(site, "t", b"x" * size, expects=code)
        if not code:
            found = await records(site, "t", int(answer.fields["queueOffset"]))
            site.compare(f"the body of {size} bytes", [size], [len(each.body) for each in found])
    disk = site.cluster.machines[MASTER].disk
    for folder, size in ((LOG, 1 << 30), ("/store/consumequeue/t", 6_000_000), (INDEX, 420_000_040)):
        found_sizes = [disk.open(path).size() for path in disk.files(folder)]
        site.compare(f"the sizes of {folder}", [size], found_sizes)


async def without_index(site: Site) -> None:
    """A broker with messageIndexEnable=false finds no message by key, and everything else works."""
    site.rule = chapters.KEY_INDEX
    await make_topic(site, "t")
    for _ in range(3):
        sent = await send(site, "t", "m", of={"KEYS": "k", "UNIQ_KEY": "u"})
        await site.ask(
            "QUERY_MESSAGE", expects=22, topic="t", key="k", maxNum=32, beginTimestamp=0, endTimestamp=1 << 60
        )
        place = int(sent.fields["msgId"][-16:], 16)
        await site.ask("VIEW_MESSAGE_BY_ID", offset=place)
        await site.restart(killed=True)
    site.compare("the messages", 3, len(await records(site, "t")))
    site.compare("the index files", [], site.cluster.machines[MASTER].disk.files(INDEX))
    site.machine_clock_add(80 * _HOUR_US)
    await site.ask("DELETE_EXPIRED_COMMITLOG")
    site.compare("the messages after that", 3, len(await records(site, "t")))


async def colliding_keys(site: Site) -> None:
    """Keys with the same hash are distinguished; a query ends after too many others."""
    site.rule = chapters.KEY_INDEX
    await make_topic(site, "t")
    first = await send(site, "t", "first", of={"KEYS": colliding_key(0)})
    for number in range(1, 4):
        await send(site, "t", f"{number}", of={"KEYS": f"{colliding_key(number)} other"})
    began_ms = site.now_ms
    await asyncio.sleep(5)
    await send(site, "t", "late", of={"KEYS": "other"})
    for key, begin_ms, end_ms, most, expected in (
        (colliding_key(0), 0, 1 << 60, 32, ["first"]), (colliding_key(2), 0, 1 << 60, 32, ["2"]),
        ("other", 0, 1 << 60, 32, ["1", "2", "3", "late"]), ("other", 0, 1 << 60, 2, ["3", "late"]),
        ("other", 0, began_ms, 32, ["1", "2", "3"]), ("other", began_ms + 1, 1 << 60, 32, ["late"]),
        ("other", began_ms + 5000, began_ms + 5000, 32, ["late"]), ("other", 0, began_ms - 1, 32, []),
        ("other", began_ms + 5001, 1 << 60, 32, []), ("absent", 0, 1 << 60, 32, []),
    ):  # fmt: skip
        await _finds(site, key, begin_ms, end_ms, most, expected)
    for number in range(1, 1000):
        await send(site, "t", "other", of={"KEYS": colliding_key(number)})
    site.compare("the place of the first", "0", first.fields.get("queueOffset"))
    await _finds(site, colliding_key(0), 0, 1 << 60, 32, [])
    await _finds(site, colliding_key(999), 0, 1 << 60, 1, ["other"])


def colliding_key(number: int) -> str:
    """Return one of 1024 keys with one Java hash code."""
    return "".join("BB" if number >> bit & 1 else "Aa" for bit in range(10))


async def _finds(site: Site, key: str, begin_ms: int, end_ms: int, most: int, expected: list[str]) -> None:
    answer = await site.ask(
        "QUERY_MESSAGE", expects=0 if expected else 22, topic="t", key=key, maxNum=most,
        beginTimestamp=begin_ms, endTimestamp=end_ms,
    )  # fmt: skip
    found = [each.body.decode() for each in read_records(answer.body)]
    site.compare(f"the messages with {key} from {begin_ms} to {end_ms}", expected, found)


async def held_disk(site: Site) -> None:
    """While an fsync is late, its messages are not delivered; when it fails, nothing more is stored."""
    site.rule = chapters.DURABILITY
    await make_topic(site, "t")
    await make_group(site, "g")
    await send(site, "t", "0")
    machine = site.cluster.machines[MASTER]
    machine.fsync.hold()
    waiting = [await _put(site, f"{number}") for number in (1, 2)]
    await asyncio.sleep(0.5)
    site.compare("the sends that are answered early", 0, sum(each.done() for each in waiting))
    for offset, code, following in ((0, 0, 1), (1, 19, 1), (2, 19, 2), (3, 19, 3), (4, 21, 1)):
        answer = await pull(site, "t", offset, expects=code)
        site.compare(f"the next offset after {offset}", str(following), answer.fields.get("nextBeginOffset"))
    await asyncio.sleep(5)
    site.compare("the late sends", [10, 10], [(await each).code for each in waiting])
    machine.fsync.release()
    await asyncio.sleep(1)
    site.compare("the messages then", 3, len(await records(site, "t")))
    await _failing(site)


async def _failing(site: Site) -> None:
    machine = site.cluster.machines[MASTER]

    def fail(step: Step) -> None:
        if step.kind == "sync" and step.path.startswith(LOG):
            raise OSError(errno.EIO, "the disk is broken", step.path)

    machine.disk.on_step = fail
    waiting = [await _put(site, f"{number}") for number in (3, 4)]
    await asyncio.sleep(7)
    site.compare("whether both sends are answered", [True, True], [each.done() for each in waiting])
    site.compare("the answers", True, all(each.done() and each.result().code in (10, 14) for each in waiting))
    for refused in (
        await site.ask("DELETE_TOPIC_IN_BROKER", expects=1, topic="t"),
        await send(site, "t", "5", expects=14),
    ):
        site.compare("whether the refusal says why", True, "the disk is broken" in (refused.remark or ""),
                     refused.remark)  # fmt: skip
    _forgive_errors(site)
    site.compare("the messages of a broken disk", 3, len(await records(site, "t")))
    machine.disk.on_step = None
    site.forget()
    await site.lose_power()
    site.compare("the messages after a restart", 3, len(await records(site, "t")))
    await send(site, "t", "6")


async def _put(site: Site, body: str) -> Answer:
    fields: dict[str, Any] = {
        "a": "p", "b": "t", "c": "TBW102", "d": 4, "e": 0, "f": 0, "g": site.now_ms, "h": 0, "i": "",
        "j": 0, "k": False, "m": False,
    }  # fmt: skip
    line = await site.client(f"sender {body}")
    waiting = line.put(
        CODES["SEND_MESSAGE_V2"], {key: written(value) for key, value in fields.items()}, body.encode()
    )
    await asyncio.sleep(0)
    return waiting


async def used_disk(site: Site) -> None:
    """The used part of the disk and the hour decide what is deleted, and whether sends are refused."""
    site.rule = chapters.EXPIRY
    await make_topic(site, "t")
    count = await _filled(site, 30)
    site.compare("whether there are several segments", True, count > 4)
    await _leaves(site, "young ones", 76, count)
    await _leaves(site, "young ones at the bound", 85, count)
    site.machine_clock_add(73 * _HOUR_US)
    await _leaves(site, "old ones at the bound", 75, count)
    await _leaves(site, "old ones and a used disk", 76, 1)
    count = await _filled(site, 60)
    await _leaves(site, "young ones and a full disk", 86, max(1, count - 20))
    await _filled(site, 20, wait_s=0)
    _use(site, 90)
    await asyncio.sleep(40)
    await _leaves(site, "a disk at the last bound", 90, 1)
    await _filled(site, 20, wait_s=0)
    await _leaves(site, "a disk that is too full", 91, 1, 14)
    await _leaves(site, "a disk that is free again", 50, 1)
    count = await _filled(site, 20)
    site.machine_clock_add(73 * _HOUR_US)
    await _leaves(site, "old ones at another hour", 50, count)
    site.machine_clock_add((4 - local_hour(site.now_ms)) % 24 * _HOUR_US)
    await _leaves(site, "old ones at the hour", 50, 1)


async def _filled(site: Site, count: int, wait_s: float = 12) -> int:
    """Send messages of a third of a segment; return the number of segments."""
    for _ in range(count):
        await send(site, "t", "x" * (LOG_SEGMENT // 3))
    await asyncio.sleep(wait_s)
    return len(site.cluster.machines[MASTER].disk.files(LOG))


def _use(site: Site, percent: float) -> None:
    site.cluster.machines[MASTER].disk.room = Space(1000, round(1000 - 10 * percent))


async def _leaves(site: Site, name: str, percent: float, segments: int, code: int = 0) -> None:
    """Compare the segments that are left after two rounds, and the answer to a send."""
    _use(site, percent)
    await asyncio.sleep(25)
    found = len(site.cluster.machines[MASTER].disk.files(LOG))
    site.compare(f"the segments with {name}", segments, found)
    answer = await send(site, "t", "small", expects=code)
    said = "full" in (answer.remark or "")
    site.compare(f"whether a send with {name} is refused for the full disk", code == 14, said, answer.remark)
    if code:
        refused = await site.ask("DELETE_TOPIC_IN_BROKER", expects=1, topic="t")
        site.compare("whether the refused deletion says why", True, "full" in (refused.remark or ""))
        _forgive_errors(site)


def _forgive_errors(site: Site) -> None:
    """Drop what the rule about errors of the server itself found: a disk that does not work is one."""
    site.watch.wrong = [each for each in site.watch.wrong if "an error of the server itself" not in each.text]


_SMALL: Final = {"store": SMALL, "cluster": CLUSTER}
FLUSHED_IN_TIME: Final = Inspection("flushes", flushed_in_time, {"store": _LATE_FLUSHES})
CHECKPOINTS: Final = Inspection("checkpoints", checkpoints, _SMALL)
DEFAULT_FILES: Final = Inspection("default files", default_files, {"store": StoreConfig()})
WITHOUT_INDEX: Final = Inspection("no index", without_index, {"store": replace(SMALL, index_enabled=False)})
COLLIDING_KEYS: Final = Inspection("colliding keys", colliding_keys)
HELD_DISK: Final = Inspection("held disk", held_disk, flush=FlushMode.SYNC_FLUSH)
USED_DISK: Final = Inspection("used disk", used_disk, {"store": replace(SMALL, clean_forcibly=True)})
