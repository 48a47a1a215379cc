"""When half messages are checked, to the millisecond; ends while the disk is slow; and very many ends.

See docs/reference/protocol/transactions.md, "Checks", "Operations" and "End of a transaction".
"""

import asyncio
import json
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Final

from mqproof.conformance.adapters.inspections import java_values
from mqproof.conformance.adapters.inspections.disk_log import queue_of
from mqproof.conformance.adapters.inspections.raw_client import Answer, RawClient
from mqproof.conformance.adapters.inspections.site import CODES, Inspection, Site, written
from mqproof.conformance.adapters.inspections.traffic import beat, make_topic, records, send
from mqproof.conformance.answers.stored_record import StoredRecord, read_records
from mqproof.conformance.hosts.simulated import MASTER, STORE
from mqproof.conformance.wire import chapters
from mqproof.impl.remoting.message import Message
from mqproof.impl.store.config import FlushMode

_HALF, _OPERATIONS = "RMQ_SYS_TRANS_HALF_TOPIC", "RMQ_SYS_TRANS_OP_HALF_TOPIC"
_TOPIC: Final = "t"
_COMMIT, _ROLLBACK, _CHECK = 8, 12, 39
_ROUND_MS, _TIMEOUT_MS = 7000, 3000
_KEPT_MS: Final = 40_000
_OWN: Final = "CHECK_IMMUNITY_TIME_IN_SECONDS"
_IMMUNITIES: Final = {
    "0": 0, "1": 1000, "5": 5000, "0005": 5000, "": _TIMEOUT_MS, "x": _TIMEOUT_MS, "-1": _TIMEOUT_MS,
    "1" * 18: _KEPT_MS // 2, "1" * 19: _TIMEOUT_MS, "19": 19_000, "20": _KEPT_MS // 2, "21": _KEPT_MS // 2,
}  # fmt: skip
"""The time before the first check by the property that asks for it, in milliseconds."""


async def check_times(site: Site) -> None:
    """Compare the round of each first check with the half message's own time, or the broker's."""
    site.rule = chapters.CHECKS
    await make_topic(site, _TOPIC)
    lines = [await site.client(f"producer {at}") for at in range(2)]
    for at, line in enumerate(lines):
        await beat(site, f"p@{at}", "", [], producers=("p",), by=line)
    await _half(site, "pulse", **{_OWN: "0"})
    await asyncio.sleep(_ROUND_MS / 1000)
    began_ms = queue_of(site, _HALF)[-1].store_ms
    due: dict[str, int] = {"pulse": 0}
    for text, immunity_ms in _IMMUNITIES.items():
        due[f"own {text}"] = immunity_ms
        await _half(site, f"own {text}", **{_OWN: text})
    for immunity_ms, text in ((_TIMEOUT_MS, ""), (5000, "5"), (_KEPT_MS // 2, "99"), (0, "0")):
        more = {_OWN: text} if text else {}
        for late_ms in (-1, 0, 1) if immunity_ms else (-1, 1):
            name = f"{immunity_ms} ms, {late_ms} ms late"
            due[name] = immunity_ms
            await _until(site, began_ms, late_ms - immunity_ms)
            await _half(site, name, **more)
    await asyncio.sleep((_KEPT_MS // 2 + 2 * _ROUND_MS) / 1000)
    _compare_rounds(site, due)
    asked = [[each for each in line.pushed if each.code == _CHECK] for line in lines]
    _compare_requests(site, asked)


async def _until(site: Site, began_ms: int, shift_ms: int) -> None:
    """Wait until the time is that many milliseconds from one of the next rounds."""
    wait_ms = (began_ms + shift_ms - site.now_ms) % _ROUND_MS
    await asyncio.sleep((wait_ms + 0.3) / 1000)


async def _half(site: Site, name: str, **more: str) -> StoredRecord:
    of = {"TRAN_MSG": "true", "PGROUP": "p", "UNIQ_KEY": name, **more}
    await send(site, _TOPIC, name, f=4, of=of)
    return queue_of(site, _HALF)[-1]


def _compare_rounds(site: Site, due: dict[str, int]) -> None:
    found: dict[str, list[StoredRecord]] = {}
    for each in queue_of(site, _HALF):
        found.setdefault(each.body.decode(), []).append(each)
    rounds = [each.store_ms for each in found["pulse"][1:]]
    exact = 0
    for name, immunity_ms in due.items():
        original, *copies = found[name]
        expected = [ms for ms in rounds if ms - original.store_ms >= immunity_ms]
        exact += expected[0] - original.store_ms == immunity_ms
        late = [each.store_ms - original.store_ms for each in copies]
        site.compare(f"the checks of {name!r}", [ms - original.store_ms for ms in expected], late)
        times = [each.properties.get("TRANSACTION_CHECK_TIMES") for each in copies]
        site.compare(f"the counts of {name!r}", [str(at + 1) for at in range(len(copies))], times)
    site.compare("whether half messages are checked at exactly their time", True, exact >= 3)


def _compare_requests(site: Site, asked: list[list[Any]]) -> None:
    """Each producer receives every second check; each request has the copy, with its places and its time."""
    counts = [len(each) for each in asked]
    copies = {each.commit_offset: each for each in queue_of(site, _HALF)
              if "TRANSACTION_CHECK_TIMES" in each.properties}  # fmt: skip
    site.compare("the requests for checks", len(copies), sum(counts))
    site.compare(f"whether producers are asked in turn: {counts}", True, abs(counts[0] - counts[1]) <= 1)
    for request in (each for of_one in asked for each in of_one):
        (shown,) = read_records(request.body)
        copy = copies[int(request.fields["commitLogOffset"])]
        for what, expected, observed in (
            ("places", (copy.queue_offset, copy.commit_offset), (shown.queue_offset, shown.commit_offset)),
            ("store time", copy.store_ms, shown.store_ms),
            ("queue", (_TOPIC, 0), (shown.topic, shown.queue_id)),
            ("hosts", (copy.born_host, copy.store_host), (shown.born_host, shown.store_host)),
            ("born time", copy.born_ms, shown.born_ms),
            ("properties", copy.properties, shown.properties),
        ):
            site.compare(f"the {what} of a half message that is checked", expected, observed)


async def slow_ends(site: Site) -> None:
    """End transactions, check them and discard one while the disk is slow, each beside another end."""
    site.rule = chapters.TRANSACTIONS
    await make_topic(site, _TOPIC)
    line = await site.client("producer")
    await beat(site, "p@1", "", [], producers=("p",), by=line)
    fsync = site.cluster.machines[MASTER].fsync
    one, two = await _half(site, "one"), await _half(site, "two")
    fsync.hold()
    waiting = await _ask_end(site, one, _COMMIT, "first")
    await asyncio.sleep(0.5)
    site.compare("whether a commit waits for the disk", False, waiting.done())
    for flag in (_COMMIT, _ROLLBACK):
        again = await (await _ask_end(site, one, flag, "again"))
        site.compare(f"the end {flag} of a transaction that is ending", (1, True), (
            again.code, "is ending" in (again.remark or "")))  # fmt: skip
    site.compare("the commit with a late disk", 0, (await waiting).code)
    await _ended(site, one, {_COMMIT: 0, _ROLLBACK: 1})
    fsync.release()
    await asyncio.sleep(1)
    await _ended(site, one, {_COMMIT: 0, _ROLLBACK: 1})
    await _ended_while_checked(site, two, line)
    await _checked_twice(site)
    await _discarded_slowly(site, line)
    await site.restart(killed=True)
    await asyncio.sleep(_ROUND_MS / 1000 + 1)
    site.compare("the messages", [b"one"], [each.body for each in await records(site, _TOPIC)])
    _compare_marks(site)


def _compare_marks(site: Site) -> None:
    """Operations mark the original and the latest copy of each half message, and no other place."""
    latest: dict[int, int] = {}
    for each in queue_of(site, _HALF):
        original = int(each.properties.get("TRAN_PREPARED_QUEUE_OFFSET", each.queue_offset))
        latest[original] = each.queue_offset
    for each in queue_of(site, _OPERATIONS):
        site.compare("the born time of an operation", each.store_ms, each.born_ms)
    site.compare("the places that operations mark", {*latest, *latest.values()}, set(_marked(site)))


async def _ask_end(site: Site, half: StoredRecord, flag: int, name: str) -> Answer:
    key = half.properties["UNIQ_KEY"]
    fields: dict[str, Any] = {
        "producerGroup": "p", "tranStateTableOffset": half.queue_offset, "msgId": key, "transactionId": key,
        "commitLogOffset": half.commit_offset, "commitOrRollback": flag, "fromTransactionCheck": False,
    }  # fmt: skip
    line = await site.client(name)
    return line.put(CODES["END_TRANSACTION"], {each: written(value) for each, value in fields.items()})


async def _ended(site: Site, half: StoredRecord, codes: dict[int, int]) -> None:
    for flag, code in codes.items():
        answer = await (await _ask_end(site, half, flag, "again"))
        what = f"the end {flag} of {half.body!r}"
        site.compare(what, code, answer.code, answer.remark)
        if code:
            site.compare(f"whether {what} has a reason", True, "has ended" in (answer.remark or ""))


async def _ended_while_checked(site: Site, half: StoredRecord, line: RawClient) -> None:
    """An end that arrives while the copy for a check waits for the disk: no producer is asked."""
    other = await _half(site, "other", **{_OWN: "100"})
    before = len(queue_of(site, _HALF))
    fsync = site.cluster.machines[MASTER].fsync
    fsync.hold()
    while len(queue_of(site, _HALF)) == before:
        await asyncio.sleep(0.1)
    await _ended(site, half, {_ROLLBACK: 0, _COMMIT: 1})
    beside = await _ask_end(site, other, _ROLLBACK, "beside")
    await asyncio.sleep(3)
    fsync.release()
    await asyncio.sleep(2)
    site.compare("the end of another transaction meanwhile", 0, (await beside).code)
    site.compare("the checks of a transaction that ended meanwhile", [], _checked(line))
    (copy,) = [each for each in queue_of(site, _HALF)[before:] if each.body == half.body]
    marked = [each.body.decode().split(",") for each in queue_of(site, _OPERATIONS)]
    of_it = [each for each in marked if str(half.queue_offset) in each]
    site.compare("whether it is marked", True, bool(of_it))
    both = [str(copy.queue_offset) in each for each in of_it]
    site.compare("whether its copy is marked with it", [True] * len(of_it), both)
    await _ended(site, half, {_ROLLBACK: 0, _COMMIT: 1})
    await _ended(site, copy, {_ROLLBACK: 0, _COMMIT: 1})


async def _checked_twice(site: Site) -> None:
    """Two checks count as two, though neither copy is durable."""
    half = await _half(site, "twice")
    fsync = site.cluster.machines[MASTER].fsync
    fsync.hold()
    await asyncio.sleep(2.5 * _ROUND_MS / 1000)
    copies = [each for each in queue_of(site, _HALF) if each.body == half.body][1:]
    times = [each.properties.get("TRANSACTION_CHECK_TIMES") for each in copies]
    site.compare("the checks while the disk is slow", ["1", "2"], times)
    fsync.release()
    await asyncio.sleep(1)
    await _ended(site, half, {_ROLLBACK: 0, _COMMIT: 1})


async def _discarded_slowly(site: Site, line: RawClient) -> None:
    """A half message that is being discarded does not end in another way."""
    await _half(site, "early")
    await _until_discarded(site, 1)  # now the topic of discarded messages exists
    last = await _half(site, "last")
    while _checked(line).count("last") < _CHECKS:
        await asyncio.sleep(1)
    fsync = site.cluster.machines[MASTER].fsync
    fsync.hold()
    await _until_discarded(site, 2)
    for flag in (_COMMIT, _ROLLBACK):
        answer = await (await _ask_end(site, last, flag, "again"))
        site.compare(f"the end {flag} of a message that is being discarded", (1, True), (
            answer.code, "is ending" in (answer.remark or "")))  # fmt: skip
    await asyncio.sleep(3)
    fsync.release()
    await asyncio.sleep(2)
    await _ended(site, last, {_COMMIT: 1, _ROLLBACK: 1})


async def _until_discarded(site: Site, count: int) -> None:
    while len(queue_of(site, "TRANS_CHECK_MAX_TIME_TOPIC")) < count:
        await asyncio.sleep(0.1)


def _checked(line: RawClient) -> list[str]:
    """Return the keys of the half messages whose checks the producer has received."""
    return [each.fields["msgId"] for each in line.pushed if each.code == _CHECK]


def _marked(site: Site) -> list[int]:
    bodies = [each.body.decode() for each in queue_of(site, _OPERATIONS)]
    return [int(text) for body in bodies for text in body.split(",")]


async def many_ends(site: Site) -> None:
    """Operations are written when 4096 bytes of ends are there, and none has more."""
    site.rule = chapters.CHECKS
    await make_topic(site, _TOPIC)
    first = await _half(site, "k")
    same = Message(_HALF, b"k", first.properties)
    store = site.cluster.brokers[MASTER].store
    for _ in range(_STORED // 50):
        (stored, *_) = await store.put_batch([same] * 50)
        site.compare("whether half messages are stored", "PUT_OK", stored.status.value)
    halves = queue_of(site, _HALF)[-_AT_ONCE:]
    await _end_all(site, halves[:-1])
    await asyncio.sleep(2)
    site.compare("the operations of 511 ends", [], _marked(site))
    await _end_all(site, halves[-1:])
    await asyncio.sleep(0.5)
    bodies = [each.body for each in queue_of(site, _OPERATIONS)]
    site.compare("the number of operations", 2, len(bodies))
    site.compare("whether they are short", True, all(len(body) <= 4096 for body in bodies))
    site.compare("the marked places", [each.queue_offset for each in halves], _marked(site))
    await site.restart(killed=True)
    await _end_all(site, halves[-3:], expects=1)
    await _end_all(site, halves[:1], expects=1)
    await _end_all(site, [first])


async def kept_ends(site: Site) -> None:
    """Kill a broker that has written no operation: it finds the ends in its log, except a rollback."""
    site.rule = chapters.TRANSACTIONS
    await make_topic(site, _TOPIC, 2)
    kept = await _half(site, "kept", **{_OWN: "10000"})
    halves = {name: await _half(site, name) for name in ("rolled back", "discarded")}
    more = {"UNIQ_KEY": "committed", "TAGS": "a", "KEYS": "k", "own": "1", "DELAY": "3"}
    await send(site, _TOPIC, "committed", 1, f=4 | 1, h=5, of={"TRAN_MSG": "true", "PGROUP": "p", **more})
    halves["committed"] = queue_of(site, _HALF)[-1]
    for name, flag in (("committed", _COMMIT), ("rolled back", _ROLLBACK)):
        site.compare(f"the end of {name}", 0, (await (await _ask_end(site, halves[name], flag, "ends"))).code)
    await asyncio.sleep(3 * _ROUND_MS / 1000)
    discarded = [each.body for each in queue_of(site, "TRANS_CHECK_MAX_TIME_TOPIC")]
    site.compare("the discarded messages", [b"discarded"], discarded)
    site.compare("the operations", [], _marked(site))
    await _restart_with_more_progress(site, kept)
    line = await site.client("producer")
    await beat(site, "p@1", "", [], producers=("p",), by=line)
    await _ended(site, halves["committed"], {_COMMIT: 0, _ROLLBACK: 1})
    await _ended(site, halves["discarded"], {_COMMIT: 1, _ROLLBACK: 1})
    await asyncio.sleep(_ROUND_MS / 1000)
    site.compare("the checks after the kill", ["rolled back"], _checked(line))
    await _ended(site, halves["rolled back"], {_ROLLBACK: 0, _COMMIT: 1})
    await asyncio.sleep(_KEPT_S)
    _compare_marks(site)
    _compare_final(site, halves["committed"])


async def _restart_with_more_progress(site: Site, first: StoredRecord) -> None:
    """Kill the broker; let its progress be that of a master with a longer log, which does not count."""
    site.cluster.kill(MASTER)
    text = site.cluster.machines[MASTER].disk.written(_OFFSETS).rstrip(b"\0").splitlines()[0]
    table = json.loads(text)["offsetTable"]
    table |= {f"{topic}@CID_RMQ_SYS_TRANS": {"0": 1000} for topic in (_HALF, _OPERATIONS)}
    site.write_file(MASTER, _OFFSETS, json.dumps({"offsetTable": table}))
    await site.cluster.start(MASTER)
    for _ in range(2):
        await asyncio.sleep(0.2)
        await _ended(site, first, {_ROLLBACK: 0, _COMMIT: 1})
        await asyncio.sleep(_WRITTEN_S)
        await site.restart(killed=True)  # the rollback is lost
    await _ended(site, first, {_ROLLBACK: 0, _COMMIT: 1})


def _compare_final(site: Site, half: StoredRecord) -> None:
    """The committed message is stored once; only what makes a half message of it is left out."""
    site.compare("the messages of the first queue", [], queue_of(site, _TOPIC, 0))
    (final,) = queue_of(site, _TOPIC, 1)
    left_out = ("TRAN_MSG", "REAL_TOPIC", "REAL_QID")
    for what, expected, observed in (
        ("body", half.body, final.body),
        ("flags", (half.flag, 8 | 1), (final.flag, final.system_flag)),
        ("birth", (half.born_ms, half.born_host), (final.born_ms, final.born_host)),
        ("store host", half.store_host, final.store_host),
        ("half message", half.commit_offset, final.prepared_offset),
        ("properties", {k: v for k, v in half.properties.items() if k not in left_out}, final.properties),
    ):
        site.compare(f"the {what} of a committed message", expected, observed)
    site.compare("the delay of a half message", None, half.properties.get("DELAY"))


async def open_beside(site: Site) -> None:
    """While an older transaction is open, the progress keeps the operations of later ones, across kills."""
    site.rule = chapters.CHECKS
    await make_topic(site, _TOPIC)
    halves = []
    for name in ("checked", "first", "open", "second", "third", "fourth"):
        own = {"checked": "0", "open": "10000"}.get(name, "100")
        halves.append(await _half(site, name, **{_OWN: own}))
    for group in (halves[3:4], halves[1:2], halves[4:]):
        await _end_all(site, group)
        await asyncio.sleep(2)
    await asyncio.sleep(_ROUND_MS / 1000)
    operations = ["3", "1", "4,5"]
    for _ in range(3):
        bodies = [each.body.decode() for each in queue_of(site, _OPERATIONS)]
        site.compare("the operations", operations, bodies)
        await _progress(site, 2, 0)
        await site.restart(killed=True)
        line = await site.client("producer")
        await beat(site, "p@1", "", [], producers=("p",), by=line)
        await asyncio.sleep(2 * _ROUND_MS / 1000)
        site.compare("the checked half messages", {"checked"}, set(_checked(line)))
    await _end_all(site, [halves[0], halves[2]])
    await asyncio.sleep(2)
    await _progress(site, len(queue_of(site, _HALF)), len(queue_of(site, _OPERATIONS)))


async def _progress(site: Site, half: int, operation: int) -> None:
    table = java_values.read((await site.ask("GET_ALL_CONSUMER_OFFSET")).body)["offsetTable"]
    found = [list(table.get(f"{topic}@CID_RMQ_SYS_TRANS", {}).values()) for topic in (_HALF, _OPERATIONS)]
    site.compare("the progress", [[half], [operation]], found)


async def _end_all(site: Site, halves: Iterable[StoredRecord], expects: int = 0) -> None:
    answers = [await _ask_end(site, half, _ROLLBACK, "many") for half in halves]
    codes = {(await each).code for each in answers}
    site.compare("the codes of all ends", {expects}, codes)


_STORED, _AT_ONCE = 1500, 512
_CHECKS: Final = 2
_KEPT_S: Final = 40
_WRITTEN_S: Final = 5.3
"""Longer than the pause between two writes of the offsets, and shorter than that between two rounds."""
_OFFSETS: Final = "/store/config/consumerOffset.json"
CHECK_TIMES: Final = Inspection("times of checks", check_times, {
    "transaction_check_interval_ms": _ROUND_MS, "transaction_checks_max": 1000,
    "transaction_timeout_ms": _TIMEOUT_MS, "store": replace(STORE, file_reserved_ms=_KEPT_MS),
})  # fmt: skip
SLOW_ENDS: Final = Inspection("ends on a slow disk", slow_ends, {
    "transaction_check_interval_ms": _ROUND_MS, "transaction_checks_max": _CHECKS,
    "transaction_timeout_ms": _TIMEOUT_MS, "transaction_operation_interval_ms": 1000,
    "store": replace(STORE, sync_flush_timeout_ms=2000),
}, flush=FlushMode.SYNC_FLUSH)  # fmt: skip
KEPT_ENDS: Final = Inspection("ends without operations", kept_ends, {
    "transaction_operation_interval_ms": _KEPT_S * 1000, "transaction_check_interval_ms": _ROUND_MS,
    "transaction_timeout_ms": _TIMEOUT_MS, "transaction_checks_max": 1,
})  # fmt: skip
OPEN_BESIDE: Final = Inspection("ends beside an open transaction", open_beside, {
    "transaction_operation_interval_ms": 1000, "transaction_check_interval_ms": _ROUND_MS,
    "transaction_timeout_ms": _TIMEOUT_MS, "offsets_flush_interval_ms": 500,
})  # fmt: skip
MANY_ENDS: Final = Inspection("many ends", many_ends, {
    "transaction_operation_interval_ms": 600_000, "transaction_check_interval_ms": 600_000,
})  # fmt: skip
