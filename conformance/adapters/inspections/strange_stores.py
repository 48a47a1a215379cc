"""Files of a stopped broker that should not be there, are too short, or are older than their backups.

See docs/reference/protocol/storing.md, "Segments", "Checkpoint" and "Configuration files".
"""

import asyncio
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from mqproof.conformance.adapters.inspections.kept_messages import flushed
from mqproof.conformance.adapters.inspections.site import Inspection, Site
from mqproof.conformance.adapters.inspections.stopped_files import compare_files
from mqproof.conformance.adapters.inspections.store_damages import (
    CHECKPOINT,
    INDEX,
    LOG,
    QUEUES,
    SMALL,
    alter,
    lose,
)
from mqproof.conformance.adapters.inspections.traffic import commit, make_group, make_topic, pull, send
from mqproof.conformance.answers.stored_record import StoredRecord, read_records
from mqproof.conformance.hosts.simulated import MASTER
from mqproof.conformance.wire import chapters
from mqproof.impl.runtime.simulated_disk import SimulatedDisk
from mqproof.impl.store.errors import StoreError

_COUNT: Final = 26
_ENTRIES_AT, _INDEX_AT, _CRC_AT = 1040, 1048, 1104
_OFFSETS: Final = "/store/config/consumerOffset.json"


@dataclass(frozen=True, slots=True)
class _Case:
    name: str
    change: Callable[[SimulatedDisk], None]
    refused: str = ""
    """A part of the error, if the broker does not start."""


def _with(path: str, size: int) -> Callable[[SimulatedDisk], None]:
    """Add a file."""

    def change(disk: SimulatedDisk) -> None:
        disk.process().create(path, size).sync()
        disk.process().sync_directory(path.rpartition("/")[0])

    return change


def _after_last(folder: str, step: int, size: int) -> Callable[[SimulatedDisk], None]:
    """Add a file whose name is that of the last one plus a number."""

    def change(disk: SimulatedDisk) -> None:
        last = disk.files(folder)[-1].rpartition("/")[2]
        _with(f"{folder}/{int(last) + step:0{len(last)}}", size)(disk)

    return change


def _sized(folder: str, number: int, size: int) -> Callable[[SimulatedDisk], None]:
    def change(disk: SimulatedDisk) -> None:
        path = disk.files(folder)[number]
        disk.resize(path, disk.written(path)[:size].ljust(size, b"\0"))

    return change


def _moved(folder: str, step: int) -> Callable[[SimulatedDisk], None]:
    """Rename each file to a place that is so much later."""

    def change(disk: SimulatedDisk) -> None:
        for path in disk.files(folder):
            data, name = disk.written(path), path.rpartition("/")[2]
            size = disk.open(path).size()
            disk.lose(path)
            moved = f"{folder}/{int(name) + step:0{len(name)}}"
            _with(moved, size)(disk)
            disk.damage(moved, 0, data)

    return change


def _without(folder: str, number: int) -> Callable[[SimulatedDisk], None]:
    return lambda disk: disk.lose(disk.files(folder)[number])


def _checkpoint(
    size: int, changes: dict[int, int], *, sealed: bool, no_queues: bool = False
) -> Callable[[SimulatedDisk], None]:
    """Change numbers of the checkpoint, with a right or wrong CRC, and cut the file."""

    def change(disk: SimulatedDisk) -> None:
        data = bytearray(disk.written(CHECKPOINT).ljust(4096, b"\0"))
        for at, number in changes.items():
            data[at : at + 8] = number.to_bytes(8, "big", signed=True)
        if sealed:
            data[_CRC_AT : _CRC_AT + 4] = zlib.crc32(bytes(data[:_CRC_AT])).to_bytes(4, "big")
        disk.resize(CHECKPOINT, bytes(data[:size]))
        if no_queues:
            lose(disk, QUEUES)

    return change


_QUEUE: Final = f"{QUEUES}/t/0"
_MANY: Final = {_ENTRIES_AT: 1000}
_NO_INDEX: Final = {_INDEX_AT: -1}
_SIZES: Final = (0, 8, 23, 24, 25, 1023, 1024, 1025, 1103, 1104, 1105, 1107, 1108, 1109, 4095)
_CASES: Final = (
    _Case("nothing", lambda _: None),
    _Case("a short name in the log", _with(f"{LOG}/0000000000000081920", 4096), LOG),
    _Case("a long name in the log", _with(f"{LOG}/000000000000000081920", 4096), LOG),
    _Case("a word in the log", _with(f"{LOG}/{'a' * 20}", 4096), LOG),
    _Case("another digit in the log", _with(f"{LOG}/0000000000000000819\u0662", 4096), LOG),
    _Case("a place within a segment", _after_last(LOG, 100, 4096), LOG),
    _Case("segments at other places", _moved(LOG, 91), LOG),
    _Case("files of a queue at other places", _moved(_QUEUE, 20), QUEUES),
    _Case("a gap behind the log", _after_last(LOG, 8192, 4096), LOG),
    _Case("an empty last segment", _after_last(LOG, 4096, 0)),
    _Case("a blank last segment", _after_last(LOG, 4096, 4096)),
    _Case("an empty first segment", _sized(LOG, 0, 0), LOG),
    _Case("a short last segment", _sized(LOG, -1, 4095), LOG),
    _Case("a long first segment", _sized(LOG, 0, 4097), LOG),
    _Case("no second segment", _without(LOG, 1), LOG),
    _Case("a word in a queue", _with(f"{_QUEUE}/{'a' * 20}", 160), QUEUES),
    _Case("a queue that is no number", _with(f"{QUEUES}/t/x/{0:020}", 160), QUEUES),
    _Case("a queue with another digit", _with(f"{QUEUES}/t/\u0661/{0:020}", 160), QUEUES),
    _Case("a file beside the queues", _with(f"{QUEUES}/t/7", 160), QUEUES),
    _Case("a file beside the topics", _with(f"{QUEUES}/u", 160), QUEUES),
    _Case("a place within a file of a queue", _after_last(_QUEUE, 20, 160), QUEUES),
    _Case("an empty last file of a queue", _after_last(_QUEUE, 160, 0)),
    _Case("a blank last file of a queue", _after_last(_QUEUE, 160, 160)),
    _Case("a long file of a queue", _sized(_QUEUE, 0, 180), QUEUES),
    _Case("no second file of a queue", _without(_QUEUE, 1), QUEUES),
    _Case("a short name in the index", _with(f"{INDEX}/{'2' * 16}", 100), INDEX),
    _Case("a word in the index", _with(f"{INDEX}/{'a' * 17}", 100), INDEX),
    _Case("a long file of the index", _sized(INDEX, 0, 40 + 10 * 4 + 9 * 20 + 1), INDEX),
    _Case("an empty last file of the index", _after_last(INDEX, 1, 0)),
    *(_Case(f"{size} bytes of the checkpoint", _checkpoint(size, {}, sealed=True)) for size in _SIZES),
    *(_Case(f"{size} bytes of a wrong checkpoint", _checkpoint(size, _MANY, sealed=False))
      for size in (1104, 1107, 1108, 4096)),
    _Case("1107 bytes and no queues", _checkpoint(1107, {}, sealed=True, no_queues=True)),
    _Case("a count of too many", _checkpoint(4096, _MANY, sealed=True), QUEUES),
    _Case("a count of too many, no queues", _checkpoint(4096, _MANY, sealed=True, no_queues=True), QUEUES),
    _Case("a count beyond the log", _checkpoint(4096, {1032: 1 << 30}, sealed=True), LOG),
    _Case("a count before the log", _checkpoint(4096, {1024: -1}, sealed=True), LOG),
    _Case("no count", _checkpoint(4096, {1024: -1, 1032: -1, _ENTRIES_AT: -1}, sealed=True)),
    _Case("no state of the index", _checkpoint(4096, _NO_INDEX, sealed=True)),
    _Case("late times", _checkpoint(4096, {0: 1 << 60, 8: 1 << 60, 16: 1 << 60}, sealed=True)),
    _Case("early times", _checkpoint(4096, {0: 0, 8: 0, 16: 0}, sealed=True)),
)  # fmt: skip


async def strange_files(site: Site) -> None:
    """Start with each strange file: it stops the broker, or changes nothing."""
    site.rule = chapters.STORE_DIRECTORY
    site.watch.judges_answers = False
    await make_topic(site, "t")
    await make_group(site, "g")
    for number in range(_COUNT):
        await send(site, "t", f"{number:02}" * 150, of={"KEYS": f"k{number}"})
    await flushed()
    await site.cluster.stop(MASTER)
    whole = site.cluster.machines[MASTER].disk
    for case in _CASES:
        if not site.watch.wrong:
            disk = whole.copy()
            case.change(disk)
            site.replace_disk(disk)
            site.watch.judges_answers = False
            await _examined(site, case)


async def _examined(site: Site, case: _Case) -> None:
    names = _names(site)
    try:
        await site.cluster.start(MASTER)
    except StoreError as error:
        site.compare(
            f"{case.name}: the refusal", True, bool(case.refused) and case.refused in str(error), str(error)
        )
        if "no queues" not in case.name:
            site.compare(f"{case.name}: the files after a refusal", names, _names(site))
        return
    site.compare(f"{case.name}: whether the broker starts", not case.refused, True)
    await _whole(site, case.name, _COUNT)
    answer = await send(site, "t", "later", of={"KEYS": f"k{_COUNT}"})
    site.compare(f"{case.name}: the next offset", str(_COUNT), answer.fields["queueOffset"])
    await site.lose_power()
    await _whole(site, f"{case.name}, after a power loss", _COUNT)
    await site.cluster.stop(MASTER)
    compare_files(site, case.name, SMALL)


def _names(site: Site) -> list[str]:
    disk = site.cluster.machines[MASTER].disk
    return [path for folder in (LOG, QUEUES, INDEX) for path in disk.files(folder)]


async def _whole(site: Site, name: str, count: int) -> None:
    found: list[int] = []
    while True:
        answer = await pull(site, "t", len(found), expects=None)
        if answer.code:
            break
        found += [int(each.body[:2]) for each in read_records(answer.body) if each.body != b"later"]
        if len(found) >= count:
            break
    site.compare(f"{name}: the messages", list(range(count)), found)
    for number in (0, 8, 17, count - 1):
        answer = await site.ask(
            "QUERY_MESSAGE", topic="t", key=f"k{number}", maxNum=32, beginTimestamp=0, endTimestamp=1 << 60
        )
        bodies = [int(each.body[:2]) for each in read_records(answer.body)]
        site.compare(f"{name}: the messages with k{number}", [number], bodies)


async def times_of_a_checkpoint(site: Site) -> None:
    """With the times of a released broker only, a start begins with the newest segment that they cover.

    Damage before this segment is not seen, and ends nothing. Damage after its begin ends the log.
    """
    site.rule = chapters.RECOVERY
    site.watch.judges_answers = False
    await make_topic(site, "t")
    await make_group(site, "g")
    for number in range(14):
        await send(site, "t", f"{number:02}" * 600)
        await asyncio.sleep(4)
    kept = await _readable(site)
    await flushed()
    await site.cluster.stop(MASTER)
    whole = site.cluster.machines[MASTER].disk
    first = {each.commit_offset // 4096: each for each in reversed(kept)}
    second = [each for each in kept if each.commit_offset // 4096 == 2][1]
    before = [each for each in kept if each.commit_offset // 4096 == 1][1]
    exact, far = first[2].store_ms + 3000, 1 << 60
    for log_ms, queues_ms, damaged, is_cut in (
        (exact, far, before, False), (far, exact, before, False), (exact, exact, before, False),
        (exact - 1, far, before, True), (far, exact - 1, before, True), (exact, exact, second, True),
        (exact, exact, first[2], True), (far, far, second, False), (far, far, kept[-1], True),
        (0, far, before, True), (far, 0, before, True), (0, 0, kept[0], True), (far, far, kept[0], False),
        (first[3].store_ms + 3000, far, first[2], False), (first[3].store_ms + 2999, far, second, True),
    ):  # fmt: skip
        disk = whole.copy()
        times = b"".join(each.to_bytes(8, "big") for each in (log_ms, queues_ms, 0))
        disk.resize(CHECKPOINT, times.ljust(4096, b"\0"))
        alter(disk, damaged, 100, b"\xff")
        site.replace_disk(disk)
        site.watch.judges_answers = False
        await site.cluster.start(MASTER)
        what = f"{log_ms - exact}, {queues_ms - exact} and damage at {damaged.queue_offset}"
        found = [each.queue_offset for each in await _readable(site)]
        expected = [
            each.queue_offset
            for each in kept
            if each is not damaged and not (is_cut and each.commit_offset > damaged.commit_offset)
        ]
        site.compare(f"the messages with {what}", expected, found)
        answer = await send(site, "t", "later")
        following = damaged.queue_offset if is_cut else len(kept)
        site.compare(f"the next offset with {what}", str(following), answer.fields["queueOffset"])
        await site.cluster.stop(MASTER)


async def _readable(site: Site) -> list[StoredRecord]:
    offset, found = 0, list[StoredRecord]()
    while True:
        answer = await pull(site, "t", offset, expects=None)
        if answer.code not in (0, 20):
            return found
        found += read_records(answer.body) if not answer.code else []
        offset = int(answer.fields["nextBeginOffset"])


async def strange_tables(site: Site) -> None:
    """Start with each state of a table and its backup: the right one of both counts, and is restored."""
    site.rule = chapters.CONFIGURATION_FILES
    await make_topic(site, "t")
    await make_group(site, "g")
    await send(site, "t", "0")
    texts = []
    for offset in (5, 7):
        await commit(site, "g", "t", 0, offset)
        await asyncio.sleep(6)
        texts.append(site.cluster.machines[MASTER].disk.written(_OFFSETS).rstrip(b"\0"))
    await site.cluster.stop(MASTER)
    whole, (old, new) = site.cluster.machines[MASTER].disk, texts
    site.compare("the number of the seal", _number(old) + 1, _number(new))
    for number, (main, backup, expected) in enumerate(_states(old, new)):
        site.replace_disk(whole.copy())
        await _table(site, f"state {number}", main, backup, expected)


def _number(text: bytes) -> int:
    return int(text.rpartition(b'"mqproofSeal":"')[2].partition(b"-")[0])


def _unsealed(text: bytes) -> bytes:
    return text.rpartition(b',"mqproofSeal"')[0] + b"}"


def _states(old: bytes, new: bytes) -> list[tuple[bytes | None, bytes | None, int | None]]:
    """Return the file, its backup, and the offset that counts; None if the broker does not start."""
    damaged, number = new.replace(b":7", b":8"), str(_number(new)).encode()
    renumbered = new.replace(b'"' + number + b"-", b'"9' + number + b"-")
    wrong_type = b'{"offsetTable":5}'
    return [
        (new, new, 7), (None, new, 7), (new, None, 7), (old, new, 7), (new, old, 7), (old, old, 5),
        (old, None, 5), (None, old, 5), (damaged, new, 7), (new, damaged, 7), (damaged, old, 5),
        (b"", new, 7), (new, b"", 7), (b" \n", new, 7), (b"", b"", None), (damaged, damaged, None),
        (damaged, None, None),
        (None, damaged, None), (None, None, None), (_unsealed(old), new, 5), (_unsealed(old), None, 5),
        (new, _unsealed(old), 7), (None, _unsealed(old), 5), (renumbered, new, 7),
        (renumbered, old, 5),
        (new + b"\n", new, 7), (new[:-9], new, 7), (wrong_type, new, 7), (new, wrong_type, 7),
        (wrong_type, wrong_type, None), (_unsealed(new)[:-1], old, 5), (b"[]", old, 5),
    ]  # fmt: skip


async def _table(
    site: Site, name: str, main: bytes | None, backup: bytes | None, expected: int | None
) -> None:
    disk = site.cluster.machines[MASTER].disk
    for path, text in ((_OFFSETS, main), (f"{_OFFSETS}.bak", backup)):
        if text is None:
            disk.lose(path)
        else:
            disk.resize(path, text)
    try:
        await site.cluster.start(MASTER)
    except StoreError as error:
        names = _OFFSETS in str(error) and f"{_OFFSETS}.bak" in str(error)
        site.compare(f"{name}: whether the refusal names both files", True, names, str(error))
        site.compare(f"{name}: the offset", expected, None)
        return
    answer = await site.ask("QUERY_CONSUMER_OFFSET", consumerGroup="g", topic="t", queueId=0)
    site.compare(f"{name}: the offset", str(expected), answer.fields["offset"])
    both = [disk.written(path).strip(b"\0\n") for path in (_OFFSETS, f"{_OFFSETS}.bak")]
    site.compare(f"{name}: the backup after the start", both[0], both[1])
    later = 9 if expected == 7 else 11
    await commit(site, "g", "t", 0, later)
    await site.restart()
    answer = await site.ask("QUERY_CONSUMER_OFFSET", consumerGroup="g", topic="t", queueId=0)
    site.compare(f"{name}: a later offset", str(later), answer.fields["offset"])
    numbers = [_number(disk.written(path).rstrip(b"\0")) for path in (_OFFSETS, f"{_OFFSETS}.bak")]
    site.compare(f"{name}: the numbers of the seals", numbers[:1], numbers[1:])
    await site.cluster.stop(MASTER)


STRANGE_FILES: Final = Inspection("strange files", strange_files, {"store": SMALL})
CHECKPOINT_TIMES: Final = Inspection("times of a checkpoint", times_of_a_checkpoint, {"store": SMALL})
STRANGE_TABLES: Final = Inspection("strange tables", strange_tables)
