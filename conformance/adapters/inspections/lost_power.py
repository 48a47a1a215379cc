"""Power losses after a broker has stored its progress: what the progress counts as done is durable.

See docs/reference/protocol/retries-and-delays.md, "Delayed messages", and transactions.md, "Operations".
"""

import asyncio
import errno
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Final

from mqproof.conformance.adapters.inspections.disk_log import queue_of
from mqproof.conformance.adapters.inspections.site import Inspection, Site
from mqproof.conformance.adapters.inspections.traffic import make_topic, send
from mqproof.conformance.hosts.simulated import MASTER, STORE
from mqproof.conformance.wire import chapters
from mqproof.impl.runtime.simulated_disk import Step

_TOPIC: Final = "t"
_LOG: Final = "/store/commitlog/"
_FLUSH_S: Final = 8
"""The pause between two flushes of the log."""
_DELAY_S: Final = _FLUSH_S + 1
_SOON_MS: Final = 500
"""The pause between two writes of any progress."""
_HALF: Final = {"TRAN_MSG": "true", "PGROUP": "p", "UNIQ_KEY": "half"}

_Wait = Callable[[Site], Awaitable[None]]
"""Store a message that waits; return after it is stored a second time, behind the last flush."""


async def lost_power(site: Site) -> None:
    """Lose the power between the write of the progress and the next flush of the log."""
    site.rule = chapters.DELAYED_MESSAGES
    await make_topic(site, _TOPIC)
    expected: list[bytes] = []
    for number, (wait, is_failing) in enumerate(
        ((_delayed, False), (_committed, False), (_delayed, True), (_committed, True))
    ):
        await _flushed(site)
        await wait(site)
        if is_failing:
            _fail_syncs(site)
        await asyncio.sleep(4 * _SOON_MS / 1000)
        site.compare("the messages before the power loss", len(expected) + 1, len(queue_of(site, _TOPIC)))
        site.cluster.machines[MASTER].disk.on_step = None
        site.forget()
        await site.lose_power()
        await asyncio.sleep(2)
        if is_failing and wait is _committed:
            await _end(site)  # its producer repeats the end, as it does when it is asked
            await asyncio.sleep(1)
        expected.append(b"delayed" if wait is _delayed else b"half")
        found = [each.body for each in queue_of(site, _TOPIC)]
        site.compare(f"the messages after power loss {number + 1}", expected, found)


async def _flushed(site: Site) -> None:
    """Wait until the log has just been flushed."""
    disk = site.cluster.machines[MASTER].disk
    await send(site, "other")
    while any(label.startswith(_LOG) for label in disk.unsynced().contents):
        await asyncio.sleep(0.05)


async def _delayed(site: Site) -> None:
    await send(site, _TOPIC, "delayed", of={"DELAY": "1"})
    await asyncio.sleep(_DELAY_S + 0.1)


async def _committed(site: Site) -> None:
    await send(site, _TOPIC, "half", f=4, of=_HALF)
    await asyncio.sleep(_DELAY_S)
    await _end(site)
    await asyncio.sleep(0.1)


async def _end(site: Site) -> None:
    half = queue_of(site, "RMQ_SYS_TRANS_HALF_TOPIC")[-1]
    await site.ask(
        "END_TRANSACTION", producerGroup="p", tranStateTableOffset=half.queue_offset,
        commitLogOffset=half.commit_offset, commitOrRollback=8, msgId="half", transactionId="half",
        fromTransactionCheck=False,
    )  # fmt: skip


def _fail_syncs(site: Site) -> None:
    def fail(step: Step) -> None:
        if step.kind == "sync" and step.path.startswith(_LOG):
            raise OSError(errno.EIO, "the disk is broken", step.path)

    site.cluster.machines[MASTER].disk.on_step = fail


_SLOW: Final = replace(
    STORE, flush_log_interval_ms=_FLUSH_S * 1000, flush_log_thorough_interval_ms=1,
    delay_levels_ms=(_DELAY_S * 1000,), flush_queues_interval_ms=600_000, checkpoint_interval_ms=600_000,
)  # fmt: skip
LOST_POWER: Final = Inspection(
    "lost power", lost_power,
    {
        "store": _SLOW, "offsets_flush_interval_ms": _SOON_MS, "delay_offsets_flush_interval_ms": _SOON_MS,
        "transaction_operation_interval_ms": _SOON_MS, "transaction_check_interval_ms": 600_000,
    },
)  # fmt: skip
