"""Queries by key over several files of the index: every period, and slots and entries that are damaged.

See docs/reference/protocol/storing.md, "Key index".
"""

import asyncio
import struct
import zlib
from itertools import combinations_with_replacement
from typing import Any, Final

from mqproof.conformance.adapters.inspections.disk_log import log_of
from mqproof.conformance.adapters.inspections.site import CODES, Inspection, Site, written
from mqproof.conformance.adapters.inspections.stopped_files import compare_files
from mqproof.conformance.adapters.inspections.store_damages import CHECKPOINT, INDEX, SMALL, alter
from mqproof.conformance.adapters.inspections.traffic import make_group, make_topic, records, send
from mqproof.conformance.answers.stored_record import StoredRecord, java_hash, read_records
from mqproof.conformance.hosts.simulated import MASTER
from mqproof.conformance.wire import chapters
from mqproof.impl.runtime.simulated_disk import SimulatedDisk

_MESSAGES: Final = 22
_SLOTS_AT: Final = 40
_ENTRIES_AT: Final = _SLOTS_AT + 4 * SMALL.index_slots


async def periods(site: Site) -> None:
    """Each period finds what was stored in it, to the millisecond, however the files are divided."""
    site.rule = chapters.KEY_INDEX
    await make_topic(site, "t")
    for number in range(_MESSAGES):
        values = {"KEYS": f"k both{number % 2}", "UNIQ_KEY": f"u{number // 2}"}
        await send(site, "t", f"{number:02}", of=values if number % 5 else {"KEYS": " k "})
        await asyncio.sleep((0, 0.001, 0.4, 0.999, 1, 1.001, 2.5)[number % 7])
    stored = log_of(site)
    site.compare("the files of the index", True, len(site.cluster.machines[MASTER].disk.files(INDEX)) > 4)
    for when in ("at first", "after a kill", "after a stop"):
        await _periods(site, when, stored)
        await site.restart(killed=when == "at first")


async def _periods(site: Site, when: str, stored: tuple[StoredRecord, ...]) -> None:
    times = sorted({each.store_ms + more for each in stored[::3] for more in (-1, 0, 1)})
    bounds = [*combinations_with_replacement(times[::2], 2), (0, 1 << 60), (times[-1] + 1, 1 << 60)]
    for number, (begin, end) in enumerate(bounds):
        keys = ("k", "both0", "both1", "u3", "absent")
        await _finds(site, when, stored, keys[number % 5], begin, end, (32, 3)[number % 2])
    for number in range(_MESSAGES // 2):
        await _finds(site, when, stored, f"u{number}", 0, 1 << 60, 32)


async def _finds(
    site: Site, when: str, stored: tuple[StoredRecord, ...], key: str, begin: int, end: int, most: int
) -> None:
    expected = [
        each.body
        for each in stored
        if key in (each.properties.get("UNIQ_KEY"), *each.properties.get("KEYS", "").split(" "))
        and begin <= each.store_ms <= end
    ][-most:]
    found = await _query(site, key, begin, end, most)
    site.compare(f"the messages with {key} from {begin} to {end}, at most {most}, {when}", expected, found)


async def _query(site: Site, key: str, begin: int = 0, end: int = 1 << 60, most: int = 32) -> list[bytes]:
    answer = await site.ask(
        "QUERY_MESSAGE", expects=None, topic="t", key=key, maxNum=most, beginTimestamp=begin, endTimestamp=end
    )
    site.compare(f"whether the code for {key} is one of both", True, answer.code in (0, 22))
    return [each.body for each in read_records(answer.body)] if not answer.code else []


async def damaged_index(site: Site) -> None:
    """A damaged slot or entry hides messages of its chain from queries, and only these."""
    site.rule = chapters.DAMAGED_FILES
    await make_topic(site, "t")
    await make_group(site, "g")
    for number in range(6):
        await send(site, "t", f"{number}", of={"KEYS": ("one", _beside("one"))[number % 2]})
    await asyncio.sleep(12)
    await site.cluster.stop(MASTER)
    whole = site.cluster.machines[MASTER].disk
    one, other = [b"0", b"2", b"4"], [b"1", b"3", b"5"]
    (path,) = whole.files(INDEX)
    slot = _SLOTS_AT + 4 * (_hash("one") % SMALL.index_slots)
    last, third = _ENTRIES_AT + 6 * 20, _ENTRIES_AT + 3 * 20
    for name, at, data, found, others in (
        ("nothing", slot, b"", one, other),
        ("an empty slot", slot, _int(0), [], []), ("a slot of the next entry", slot, _int(7), [], []),
        ("a slot of a large number", slot, _int(0x7FFFFFFF), [], []),
        ("a negative slot", slot, _int(-1), [], []),
        ("a slot of an older entry", slot, _int(4), one[:2], other[:2]),
        ("a slot of the first entry", slot, _int(1), one[:1], []),
        ("an entry of another slot", last, _int(_hash("one") + 1), [], []),
        ("an entry that follows itself", last + 16, _int(6), [], []),
        ("an entry that follows a later one", third + 16, _int(5), one[2:], other[1:]),
        ("an entry of a negative number before it", third + 16, _int(-1), one[2:], other[1:]),
        ("an entry at the end of its chain", third + 16, _int(0), one[1:], other[1:]),
        ("an entry of another key", third, _int(_hash("one") + SMALL.index_slots), one[::2], other),
        ("an entry of a place beyond the log", third + 4, (1 << 40).to_bytes(8, "big"), one[::2], other),
        ("an entry of a negative place", third + 4, b"\xff" * 8, one[::2], other),
        ("an entry within a record", third + 4, (100).to_bytes(8, "big"), one[::2], other),
    ):  # fmt: skip
        if site.watch.wrong:
            return
        disk = whole.copy()
        disk.damage(path, at, data)
        site.replace_disk(disk)
        site.watch.judges_answers = False
        await site.cluster.start(MASTER)
        site.compare(f"what a query finds with {name}", found, await _query(site, "one"))
        site.compare(f"what another query finds with {name}", others, await _query(site, _beside("one")))
        await send(site, "t", "later", of={"KEYS": "one"})
        later = await _query(site, "one")
        site.compare(f"the later message with {name}", b"later", later[-1] if later else b"")
        site.compare(f"the messages with {name}", 7, len(await records(site, "t")))
        await site.cluster.stop(MASTER)


def _int(number: int) -> bytes:
    return number.to_bytes(4, "big", signed=True)


def _hash(key: str) -> int:
    return abs(java_hash(f"t#{key}"))


def _beside(key: str) -> str:
    """Return another key of the same slot."""
    slot = _hash(key) % SMALL.index_slots
    return next(each for each in map(str, range(100)) if _hash(each) % SMALL.index_slots == slot)


async def partly_indexed(site: Site) -> None:
    """The index was durable up to any of its entries, also in the middle of a record's keys."""
    site.rule = chapters.KEY_INDEX
    await make_topic(site, "t")
    await make_group(site, "g")
    for number in range(5):
        await send(
            site, "t", f"{number}", of={"KEYS": f"k{number} two two" if number % 2 else f"k{number} both two"}
        )
        await asyncio.sleep(1.3)
    await send(site, "t", "without a key")
    await asyncio.sleep(12)
    await site.cluster.stop(MASTER)
    whole, stored = site.cluster.machines[MASTER].disk, log_of(site)
    for durable in range(1, 16):
        if site.watch.wrong:
            return
        disk = whole.copy()
        _make_durable(disk, stored, durable)
        site.replace_disk(disk)
        site.watch.judges_answers = False
        await site.cluster.start(MASTER)
        for key in ("k0", "k1", "k2", "k3", "k4", "both", "two", "absent"):
            await _finds(site, f"with {durable} durable entries", stored, key, 0, 1 << 60, 32)
        await site.cluster.stop(MASTER)
        compare_files(site, f"with {durable} durable entries", SMALL)
    for lost in range(6):
        if not site.watch.wrong:
            await _shortened(site, whole.copy(), stored, lost)


async def _shortened(site: Site, disk: SimulatedDisk, stored: tuple[StoredRecord, ...], lost: int) -> None:
    """The log ends before some records that the index has: only the files with these are built again."""
    data = bytearray(disk.written(CHECKPOINT).ljust(4096, b"\0"))
    data[1024:1048] = b"\xff" * 24  # no count
    _seal(disk, data)
    alter(disk, stored[lost], 88, b"\xff")
    site.replace_disk(disk)
    site.watch.judges_answers = False
    await site.cluster.start(MASTER)
    what = f"with {lost} messages left"
    for key in ("k0", "k1", "k2", "k3", "k4", "both", "two", "absent"):
        await _finds(site, what, stored[:lost], key, 0, 1 << 60, 32)
    site.compare(f"the messages {what}", lost, len(await records(site, "t")))
    await send(site, "t", "later", of={"KEYS": "k9 two"})
    site.compare(f"the later message {what}", [b"later"], await _query(site, "k9"))
    await site.cluster.stop(MASTER)
    compare_files(site, what, SMALL)


def _make_durable(disk: SimulatedDisk, stored: tuple[StoredRecord, ...], count: int) -> None:
    """Let the checkpoint say that so many entries are durable, three of each record; add the abort file."""
    first = (count - 1) // _A_FILE * _A_FILE
    begin, end = stored[first // 3], stored[(count - 1) // 3]
    path = disk.files(INDEX)[first // _A_FILE]
    position = stored[count // 3].commit_offset
    header = struct.pack(
        ">qqqqii", begin.store_ms, end.store_ms, begin.commit_offset, end.commit_offset, 0, count - first + 1
    )
    data = bytearray(disk.written(CHECKPOINT).ljust(4096, b"\0"))
    data[1048:1104] = struct.pack(">qq", position, int(path.rpartition("/")[2])) + header
    _seal(disk, data)
    disk.process().create("/store/abort", 0).sync()
    disk.process().sync_directory("/store")


def _seal(disk: SimulatedDisk, data: bytearray) -> None:
    data[1104:1108] = zlib.crc32(bytes(data[:1104])).to_bytes(4, "big")
    disk.resize(CHECKPOINT, bytes(data))


_A_FILE: Final = SMALL.index_entries - 1
"""How many entries a file of the index has."""


async def sends_and_deletions(site: Site) -> None:
    """Sends and the deletion of their topic arrive at one time: each message belongs to the old topic."""
    site.rule = chapters.RECOVERY
    await make_group(site, "g")
    site.cluster.machines[MASTER].fsync.slowness = 0
    for before in range(3):
        await make_topic(site, "t")
        for _ in range(before):
            await send(site, "t", "before")
        codes = await _at_once(site)
        site.compare("the codes of the sends before and after the deletion", sorted(codes), codes)
        site.compare("whether there are both", {0, _NO_TOPIC}, set(codes))
        site.forget()
        await make_topic(site, "t")
        await send(site, "t", f"new {before}")
        for when in ("at first", "after a kill"):
            found = [(each.queue_offset, each.body) for each in await records(site, "t")]
            site.compare(f"the messages of the new topic {when}", [(0, b"new %d" % before)], found)
            await site.restart(killed=True)
            site.forget()
        await site.ask("DELETE_TOPIC_IN_BROKER", topic="t")
        site.forget()


async def _at_once(site: Site) -> list[int]:
    """Request the deletion, and send in each of the following turns of the event loop; return the codes."""
    fields: dict[str, Any] = {
        "a": "p", "b": "t", "c": "TBW102", "d": 4, "e": 0, "f": 0, "g": site.now_ms, "h": 0, "i": "",
        "j": 0, "k": False, "m": False,
    }  # fmt: skip
    texts = {key: written(value) for key, value in fields.items()}
    lines = [await site.client(f"sender {number}") for number in range(2)]
    deleted = lines[0].put(CODES["DELETE_TOPIC_IN_BROKER"], {"topic": "t"}, b"")
    sent = []
    for _ in range(_TURNS):
        sent.append(lines[1].put(CODES["SEND_MESSAGE_V2"], texts, b"old"))
        await _turn()
    site.compare("the code of the deletion", 0, (await deleted).code)
    return [(await each).code for each in sent]


async def _turn() -> None:
    """Wait for what is due at this time; no time passes."""
    loop = asyncio.get_running_loop()
    ended = loop.create_future()
    loop.call_later(0, ended.set_result, None)
    await ended


_TURNS: Final = 24
_NO_TOPIC: Final = 17
PERIODS: Final = Inspection("periods of queries", periods, {"store": SMALL})
DAMAGED_INDEX: Final = Inspection("damaged index", damaged_index, {"store": SMALL})
PARTLY_INDEXED: Final = Inspection("partly indexed", partly_indexed, {"store": SMALL})
SENDS_AND_DELETIONS: Final = Inspection(
    "sends and deletions", sends_and_deletions, {"auto_create_topics": False}
)
