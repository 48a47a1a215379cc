"""What a broker remembers of transactions that ended beside open ones: so many ends, and so many operations.

The numbers are lowered, because 10,000 transactions would take seconds. See
docs/reference/protocol/transactions.md, "End of a transaction" and "Operations".
"""

import asyncio
from collections.abc import Mapping
from typing import Final
from unittest import mock

from mqproof.conformance.adapters.inspections import java_values
from mqproof.conformance.adapters.inspections.disk_log import queue_of
from mqproof.conformance.adapters.inspections.site import Inspection, Site
from mqproof.conformance.adapters.inspections.traffic import make_topic, send
from mqproof.conformance.answers.stored_record import StoredRecord
from mqproof.conformance.wire import chapters
from mqproof.impl.broker.state import open_transactions

_HALF, _OPERATIONS = "RMQ_SYS_TRANS_HALF_TOPIC", "RMQ_SYS_TRANS_OP_HALF_TOPIC"
_TOPIC: Final = "t"
_COMMIT, _ROLLBACK = 8, 12
_SAME, _OTHER = 0, 1
_REMEMBERED: Final = 3
_OPERATION_MS: Final = 1000
_WRITTEN_S: Final = 2
"""Longer than the broker collects ends, and than the pause between two writes of the offsets."""


async def remembered_ends(site: Site) -> None:
    site.rule = chapters.TRANSACTIONS
    await make_topic(site, _TOPIC)
    with mock.patch.multiple(open_transactions, _REMEMBERED_MAX=_REMEMBERED, _OPERATIONS_MAX=_REMEMBERED):
        halves = [await _half(site, f"half {number}") for number in range(10)]
        flags = {1: _ROLLBACK, 2: _COMMIT, 3: _ROLLBACK, 7: _COMMIT, 0: _ROLLBACK}
        for number, flag in flags.items():
            await _end(site, halves[number], flag, 0)
            await asyncio.sleep(_WRITTEN_S)
            await _progress(site, (4, 2) if number == 0 else (0, 0))
        await _repeated(site, halves, flags)
        await site.restart(killed=True)
        for number, expected in ((4, (5, 3)), (5, (6, 3))):
            await _ends_next(site, halves[number], expected)
        await site.restart(killed=True)
        await _ends_next(site, halves[6], (8, 8))
        operations = [each.body.decode() for each in queue_of(site, _OPERATIONS)]
        site.compare("the operations", ["1", "2", "3", "7", "0", "4", "5", "6"], operations)
        await _beside_a_copy(site, halves[8:])
    for number in flags:
        for flag in (_COMMIT, _ROLLBACK):
            await _end(site, halves[number], flag, 1)
    bodies = [b"half 2", b"half 7", b"beside"]
    site.compare("the messages", bodies, [each.body for each in queue_of(site, _TOPIC)])


async def _beside_a_copy(site: Site, before: list[StoredRecord]) -> None:
    """A restart reads an original and its copy: the progress does not pass what is open between them."""
    copied, beside = await _half(site, "copied", immune_s=0), await _half(site, "beside")
    while queue_of(site, _HALF)[-1].body != copied.body:
        await asyncio.sleep(5)
    await site.restart(killed=True)
    for half, progress in zip(before, ((9, 9), (beside.queue_offset, 10)), strict=True):
        await _ends_next(site, half, progress)
    await site.restart(killed=True)
    await _end(site, beside, _COMMIT, 0)


async def _half(site: Site, name: str, immune_s: int = 10_000) -> StoredRecord:
    immune = {"CHECK_IMMUNITY_TIME_IN_SECONDS": str(immune_s)}
    of = {"TRAN_MSG": "true", "PGROUP": "p", "UNIQ_KEY": name, **immune}
    await send(site, _TOPIC, name, f=4, of=of)
    return queue_of(site, _HALF)[-1]


async def _end(site: Site, half: StoredRecord, flag: int, expects: int) -> None:
    key = half.properties["UNIQ_KEY"]
    await site.ask(
        "END_TRANSACTION", expects=expects, producerGroup="p", tranStateTableOffset=half.queue_offset,
        commitLogOffset=half.commit_offset, commitOrRollback=flag, msgId=key, transactionId=key,
        fromTransactionCheck=False,
    )  # fmt: skip


async def _repeated(site: Site, halves: list[StoredRecord], flags: Mapping[int, int]) -> None:
    """The last ends are confirmed if they are repeated, not if they change; older ones are refused."""
    forgotten = list(flags)[:-_REMEMBERED]
    for number, flag in flags.items():
        await _end(site, halves[number], flag, _OTHER if number in forgotten else _SAME)
        await _end(site, halves[number], _COMMIT + _ROLLBACK - flag, _OTHER)


async def _ends_next(site: Site, half: StoredRecord, progress: tuple[int, int]) -> None:
    await _end(site, half, _ROLLBACK, 0)
    await asyncio.sleep(_WRITTEN_S)
    await _progress(site, progress)


async def _progress(site: Site, expected: tuple[int, int]) -> None:
    """Compare the offsets from which the broker still uses the half queue and the operation queue."""
    table = java_values.read((await site.ask("GET_ALL_CONSUMER_OFFSET")).body)["offsetTable"]
    keys = [f"{topic}@CID_RMQ_SYS_TRANS" for topic in (_HALF, _OPERATIONS)]
    site.compare("the progress", expected, tuple(next(iter(table.get(key, {0: 0}).values())) for key in keys))


REMEMBERED_ENDS: Final = Inspection(
    "remembered ends", remembered_ends,
    {"transaction_operation_interval_ms": _OPERATION_MS, "offsets_flush_interval_ms": 500},
)  # fmt: skip
