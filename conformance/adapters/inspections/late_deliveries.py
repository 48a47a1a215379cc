"""Returned messages that came from transactions, and deliveries that a power loss must not take back.

See docs/reference/protocol/retries-and-delays.md, "Retries" and "Delayed messages".
"""

import asyncio
from dataclasses import replace
from typing import Final

from mqproof.conformance.adapters.inspections import java_values
from mqproof.conformance.adapters.inspections.site import Inspection, Site
from mqproof.conformance.adapters.inspections.traffic import (
    make_group,
    make_topic,
    properties,
    records,
    send,
)
from mqproof.conformance.adapters.inspections.written_logs import LOG_OPTIONS, SEGMENT, start_on
from mqproof.conformance.adapters.inspections.written_records import Form, write_log
from mqproof.conformance.answers.stored_record import StoredRecord
from mqproof.conformance.hosts.simulated import MASTER, STORE
from mqproof.conformance.wire import chapters

_RETRIES: Final = "%RETRY%g"
_PROGRESS: Final = "/store/config/delayOffset.json"
_DELAYS_S: Final = {1: 1, 2: 5, 3: 10}


async def late_transactions(site: Site) -> None:
    """A committed message waits for its level each time when it is returned; its copies keep the flag."""
    site.rule = chapters.RETRIES
    site.watch.judges_answers = False  # a copy names no half message
    await make_topic(site, "t")
    await make_group(site, "g")
    await _transaction(site, "gone", 12)
    await _transaction(site, "kept", 8)
    found = await records(site, "t")
    site.compare("the committed messages", [b"kept"], [each.body for each in found])
    last = found[-1]
    for times, level in ((1, 3), (2, 1), (3, 2)):
        await _send_back(site, last, level)
        sent_s = site.cluster.now_s
        await _appears(
            site, _RETRIES, times - 1, sent_s + _DELAYS_S[level], f"return {times} of a committed message"
        )
        last = (await records(site, _RETRIES))[-1]
        site.compare(f"the transaction of copy {times}", (b"kept", 8), (last.body, last.system_flag & 12))


async def _transaction(site: Site, name: str, end: int) -> None:
    half = {"TRAN_MSG": "true", "PGROUP": "p", "UNIQ_KEY": name}
    kept = await send(site, "t", name, f=4, of=half)
    await site.ask(
        "END_TRANSACTION", producerGroup="p", tranStateTableOffset=kept.fields["queueOffset"],
        commitLogOffset=int(kept.fields["msgId"][-16:], 16), commitOrRollback=end, msgId=name,
        transactionId=name, fromTransactionCheck=False,
    )  # fmt: skip


async def _send_back(site: Site, record: StoredRecord, level: int) -> None:
    await site.ask(
        "CONSUMER_SEND_MSG_BACK", offset=record.commit_offset, group="g", delayLevel=level, originMsgId="m",
        originTopic=record.topic, unitMode=False,
    )  # fmt: skip


async def _appears(site: Site, topic: str, before: int, at_s: float, what: str) -> None:
    """The next message of a topic is not there before a time, and is there soon after it."""
    await asyncio.sleep(at_s - site.cluster.now_s - 0.2)
    site.compare(f"the messages before the delay of {what}", before, len(await records(site, topic)))
    await asyncio.sleep(1.2)
    site.compare(f"the messages after the delay of {what}", before + 1, len(await records(site, topic)))


async def durable_deliveries(site: Site) -> None:
    """A message that the file of delays counts as delivered is durable, however seldom the log is flushed."""
    site.rule = chapters.DELAYED_MESSAGES
    await make_topic(site, "t")
    await make_group(site, "g")
    bodies: list[bytes] = []
    for number in range(3):
        await send(site, "t", f"{number}", of={"DELAY": "3"})
        bodies.append(f"{number}".encode())
        await site.restart()
        disk = site.cluster.machines[MASTER].disk
        text = disk.written(_PROGRESS)
        for _ in range(400):
            await asyncio.sleep(0.1)
            if disk.written(_PROGRESS) != text:
                break
        else:
            site.report("the delivery is never counted")
        site.forget()
        await site.lose_power()
        await asyncio.sleep(1)
        site.compare(
            f"the messages after power loss {number}",
            bodies,
            [each.body for each in await records(site, "t")],
        )


async def unnamed_deliveries(site: Site) -> None:
    """A waiting message that names no topic or no queue is skipped; those around it are delivered."""
    site.rule = chapters.DELAYED_MESSAGES
    forms, bodies = [], []
    for number, (topic, queue) in enumerate((
        ("t", "0"), ("", "0"), (None, "0"), ("t", ""), ("t", None), ("t", "x"), ("t", "1x"), ("t", "-1"),
        ("t", "0"), ("", ""), (None, None), ("t", "00"),
    )):  # fmt: skip
        names = {"REAL_TOPIC": topic, "REAL_QID": queue, "DELAY": "1"}
        text = properties({name: value for name, value in names.items() if value is not None})
        forms.append(Form("SCHEDULE_TOPIC_XXXX", f"{number}".encode(), text.encode()))
        if (topic, queue) in (("t", "0"), ("t", "00")):
            bodies.append(f"{number}".encode())
    log = write_log(forms, SEGMENT, 0, site.now_ms - 60_000)
    await start_on(site, log)
    await asyncio.sleep(12)
    for killed in (True, False):
        found = await records(site, "t")
        site.compare("the delivered messages", bodies, [each.body for each in found])
        table = java_values.read((await site.ask("GET_ALL_DELAY_OFFSET")).body)["offsetTable"]
        site.compare("the progress", len(forms), {str(key): at for key, at in table.items()}.get("1"))
        await site.restart(killed=killed)


_SELDOM: Final = replace(
    STORE, flush_log_interval_ms=3_600_000, flush_log_thorough_interval_ms=3_600_000,
    checkpoint_interval_ms=3_600_000, flush_queues_interval_ms=3_600_000, clean_interval_ms=3_600_000,
)  # fmt: skip
UNNAMED_DELIVERIES: Final = Inspection("unnamed deliveries", unnamed_deliveries, LOG_OPTIONS)
LATE_TRANSACTIONS: Final = Inspection("late transactions", late_transactions)
DURABLE_DELIVERIES: Final = Inspection("durable deliveries", durable_deliveries, {"store": _SELDOM})
