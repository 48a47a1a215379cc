"""Transactions: half messages, copies, operations, checks and progress, across restarts.

See docs/reference/protocol/transactions.md.
"""

import asyncio
import json
from collections.abc import Sequence
from typing import Any, Final

from mqproof.conformance.adapters.inspections import java_values
from mqproof.conformance.adapters.inspections.disk_log import queue_of
from mqproof.conformance.adapters.inspections.raw_client import RawClient
from mqproof.conformance.adapters.inspections.site import Inspection, Site
from mqproof.conformance.adapters.inspections.traffic import beat, make_topic, records, send
from mqproof.conformance.answers.stored_record import StoredRecord, offset_message_id, read_records
from mqproof.conformance.hosts.simulated import MASTER
from mqproof.conformance.wire import chapters

_HALF, _OPERATIONS = "RMQ_SYS_TRANS_HALF_TOPIC", "RMQ_SYS_TRANS_OP_HALF_TOPIC"
_DISCARDED: Final = "TRANS_CHECK_MAX_TIME_TOPIC"
_GROUP: Final = "CID_RMQ_SYS_TRANS"
_TOPIC: Final = "t"
_COMMIT, _ROLLBACK, _CHECK = 8, 12, 39
_OF_COPIES: Final = ("TRANSACTION_CHECK_TIMES", "TRAN_PREPARED_QUEUE_OFFSET")
_IMMUNITY_S: Final = 100
_ROUND_MS, _JUST_BEFORE_MS = 5000, 50
_OFFSETS: Final = "/store/config/consumerOffset.json"


async def transactions(site: Site) -> None:
    """End transactions in each way; compare the internal queues, the checks and the progress."""
    site.rule = chapters.CHECKS
    await make_topic(site, _TOPIC, 2)
    line = await _producer(site)
    kept, still = [
        await _half(site, name, CHECK_IMMUNITY_TIME_IN_SECONDS="10000") for name in ("kept", "still open")
    ]
    first, second = [await _half(site, name) for name in ("first", "second")]
    await _end(site, first, _COMMIT)
    await _end(site, second, _ROLLBACK)
    await asyncio.sleep(3.2)
    third = await _half(site, "third")
    await _end(site, third, _ROLLBACK)
    await asyncio.sleep(3.2)
    operations = ["2,3", "4"]
    _operations(site, operations)
    await _progress(site, 0, 0)
    await site.restart(killed=True)
    line = await _producer(site)
    last = await _half(site, "last", CHECK_IMMUNITY_TIME_IN_SECONDS="18")
    await _end(site, kept, _ROLLBACK)
    await asyncio.sleep(3.5)
    operations.append("0")
    _operations(site, operations)
    await _progress(site, 1, 0)
    await asyncio.sleep(6)
    version = await _version(site)
    await asyncio.sleep(7)
    site.compare("the version without progress", version, await _version(site))
    await site.restart(killed=True)
    line = await _producer(site)
    await asyncio.sleep(2.5)
    _checks(site, line, [])
    await asyncio.sleep(3)
    _checks(site, line, [(last, 1)])
    for half, flag in ((still, _ROLLBACK), (last, _COMMIT)):
        await _end(site, half, flag, is_check=True)
        await _end(site, half, flag)
    await _end(site, last, _ROLLBACK, expects=1)
    await asyncio.sleep(4)
    latest = queue_of(site, _HALF)[-1].queue_offset
    operations.append(f"1,{last.queue_offset},{latest}")
    _operations(site, operations)
    await _progress(site, latest + 1, len(operations))
    site.compare("the messages", [b"first", b"last"], [each.body for each in await records(site, _TOPIC)])
    _compare_copies(site)
    await _left_alone(site)
    await _discarded(site)
    await _progress_of_more(site)


async def _producer(site: Site) -> RawClient:
    line = await site.client("producer")
    await beat(site, "p@1", "", [], producers=("p",), by=line)
    return line


async def _half(site: Site, name: str, **more: str) -> StoredRecord:
    """Send a half message; return its record."""
    of = {"TRAN_MSG": "true", "PGROUP": "p", "UNIQ_KEY": name, "TAGS": "a", **more}
    await send(site, _TOPIC, name, 0, f=4, h=3, of=of)
    await asyncio.sleep(0.01)
    record = queue_of(site, _HALF)[-1]
    shown = {key: value for key, value in record.properties.items() if key in (*of, "REAL_TOPIC", "REAL_QID")}
    site.compare(
        f"the half message {name}",
        (name.encode(), 0, 3, {**of, "REAL_TOPIC": _TOPIC, "REAL_QID": "0"}),
        (record.body, record.system_flag, record.flag, shown),
    )
    return record


async def _end(
    site: Site, half: StoredRecord, flag: int, *, expects: int = 0, is_check: bool = False
) -> None:
    key = half.properties["UNIQ_KEY"]
    await site.ask(
        "END_TRANSACTION", expects=expects, producerGroup="p", tranStateTableOffset=half.queue_offset,
        commitLogOffset=half.commit_offset, commitOrRollback=flag, msgId=key, transactionId=key,
        fromTransactionCheck=is_check,
    )  # fmt: skip


def _operations(site: Site, bodies: Sequence[str]) -> None:
    """Compare all operations: each marks these places, and says from where the log has other ends."""
    found = queue_of(site, _OPERATIONS)
    site.compare("the operations", list(bodies), [each.body.decode() for each in found])
    for each in found:
        site.compare("the tag of an operation", "d", each.properties.get("TAGS"))
        position = int(each.properties.get("SCAN_FROM", -1))
        site.compare("from where the log has other ends", each.commit_offset, position)


async def _progress(site: Site, half: int, operation: int) -> None:
    table = java_values.read((await site.ask("GET_ALL_CONSUMER_OFFSET")).body)["offsetTable"]
    expected = {} if not half else {_HALF: half, _OPERATIONS: operation}
    shown = {topic: table.get(f"{topic}@{_GROUP}") for topic in (_HALF, _OPERATIONS)}
    site.compare("the progress", expected, {
        topic: next(iter(each.values())) for topic, each in shown.items() if each})  # fmt: skip


async def _version(site: Site) -> object:
    return java_values.read((await site.ask("GET_ALL_CONSUMER_OFFSET")).body)["dataVersion"]


def _checks(site: Site, line: RawClient, expected: Sequence[tuple[StoredRecord, int]]) -> None:
    """Compare the requests for checks on a connection: the half message, and its number of checks."""
    asked = [each for each in line.pushed if each.code == _CHECK]
    site.compare(
        "the checks",
        [half.body.decode() for half, _ in expected],
        [next(read_records(each.body)).body.decode() for each in asked],
    )
    for request, (half, times) in zip(asked, expected, strict=False):
        (shown,) = read_records(request.body)
        copies = [each for each in queue_of(site, _HALF) if each.body == half.body]
        copy, key = copies[times], half.properties["UNIQ_KEY"]
        site.compare(f"the request for check {times} of {key}", {
            "tranStateTableOffset": str(copy.queue_offset), "commitLogOffset": str(copy.commit_offset),
            "msgId": key, "transactionId": key,
            "offsetMsgId": offset_message_id(str(site.broker), copy.commit_offset),
        }, {name: value for name, value in request.fields.items() if name != "topic"})  # fmt: skip
        site.compare(
            "its record",
            (_TOPIC, 0, half.body, str(times)),
            (shown.topic, shown.queue_id, shown.body, shown.properties.get("TRANSACTION_CHECK_TIMES")),
        )


def _compare_copies(site: Site) -> None:
    """Each copy has the original's fields, its place, and one check more than the copy before."""
    latest: dict[int, StoredRecord] = {}
    for place, each in enumerate(queue_of(site, _HALF)):
        site.compare("the place of a half message", place, each.queue_offset)
        original = int(each.properties.get("TRAN_PREPARED_QUEUE_OFFSET", place))
        if (before := latest.get(original)) is not None:
            times = int(before.properties.get("TRANSACTION_CHECK_TIMES", 0)) + 1
            expected = {
                **before.properties,
                "TRANSACTION_CHECK_TIMES": str(times),
                "TRAN_PREPARED_QUEUE_OFFSET": str(original),
            }
            site.compare(
                "a copy",
                (before.body, before.flag, before.born_ms, before.born_host, expected),
                (each.body, each.flag, each.born_ms, each.born_host, each.properties),
            )
        latest[original] = each


async def _left_alone(site: Site) -> None:
    """A half message with its own time is checked in the first round after it, and not before."""
    round_ms = queue_of(site, _HALF)[-1].store_ms
    await asyncio.sleep((round_ms - site.now_ms - _IMMUNITY_S * 1000 - _JUST_BEFORE_MS) % _ROUND_MS / 1000)
    patient = await _half(site, "patient", CHECK_IMMUNITY_TIME_IN_SECONDS=str(_IMMUNITY_S))
    await asyncio.sleep(_IMMUNITY_S - 0.1)
    line = await _producer(site)
    line.pushed.clear()
    _checks(site, line, [])
    await asyncio.sleep(0.3)
    _checks(site, line, [(patient, 1)])
    await _end(site, patient, _ROLLBACK)


async def _discarded(site: Site) -> None:
    """After the last check a half message is discarded; an administrator can resume it."""
    line = await _producer(site)
    line.pushed.clear()
    lost = await _half(site, "lost")
    await asyncio.sleep(33)
    _checks(site, line, [(lost, 1), (lost, 2), (lost, 3)])
    (discarded,) = queue_of(site, _DISCARDED)
    topic = java_values.read((await site.ask("GET_TOPIC_CONFIG", topic=_DISCARDED)).body)
    site.compare(
        "the queues of discarded messages", (1, 1), (topic["readQueueNums"], topic["writeQueueNums"])
    )
    shown = {
        key: discarded.properties.get(key)
        for key in ("TRANSACTION_CHECK_TIMES", "TRAN_PREPARED_QUEUE_OFFSET")
    }
    site.compare(
        "the discarded message",
        (b"lost", 0, "3", str(lost.queue_offset)),
        (discarded.body, discarded.queue_id, *shown.values()),
    )
    await _end(site, lost, _COMMIT, expects=1)
    await site.restart(killed=True)
    line = await _producer(site)
    await asyncio.sleep(20)
    _checks(site, line, [])
    id_ = offset_message_id(str(site.broker), discarded.commit_offset)
    answer = await site.ask("RESUME_CHECK_HALF_MESSAGE", msgId=id_, topic=_TOPIC)
    site.compare("the remark of a success", None, answer.remark)
    await asyncio.sleep(0.1)
    resumed = queue_of(site, _HALF)[-1]
    site.compare(
        "the resumed message",
        (b"lost", None, None),
        (resumed.body, *(resumed.properties.get(key) for key in shown)),
    )
    await _end(site, resumed, _COMMIT)
    await asyncio.sleep(4)
    site.compare("the messages", 3, len(await records(site, _TOPIC)))


async def _progress_of_more(site: Site) -> None:
    """Progress beyond the half queue counts from the start; what operations mark as done stays so."""
    await site.cluster.stop(MASTER)
    table = json.loads(site.cluster.machines[MASTER].disk.written(_OFFSETS).rstrip(b"\0").splitlines()[0])
    for topic in (_HALF, _OPERATIONS):
        table["offsetTable"][f"{topic}@{_GROUP}"] = {"0": 1000}
    site.write_file(MASTER, _OFFSETS, json.dumps(table))
    await site.cluster.start(MASTER)
    line = await _producer(site)
    await asyncio.sleep(20)
    _checks(site, line, [])
    end = len(queue_of(site, _HALF))
    await _progress(site, end, len(queue_of(site, _OPERATIONS)))


_SETTINGS: Final[dict[str, Any]] = {
    "transaction_check_interval_ms": _ROUND_MS, "transaction_checks_max": 3, "transaction_timeout_ms": 3000,
}  # fmt: skip
TRANSACTIONS: Final = Inspection("transactions", transactions, _SETTINGS)
