"""A slave's disk becomes that of the master: what waited is delivered once, and what is done stays done.

See docs/reference/protocol/timers.md, "Copies", transactions.md and retries-and-delays.md.
"""

import asyncio
from collections import Counter
from dataclasses import replace
from typing import Final

from mqproof.conformance.adapters.inspections.disk_log import log_of, queue_of
from mqproof.conformance.adapters.inspections.site import Inspection, Site
from mqproof.conformance.adapters.inspections.traffic import commit, make_group, make_topic, send
from mqproof.conformance.hosts.simulated import MASTER, SLAVE, STORE
from mqproof.conformance.wire import chapters
from mqproof.impl.replication.config import ReplicationConfig, Role
from mqproof.impl.runtime.disk import Space

_TOPIC: Final = "t"
_HALF: Final = "RMQ_SYS_TRANS_HALF_TOPIC"


async def taken_over(site: Site) -> None:
    """Let old segments expire at a slave, whose disk then serves as that of the master."""
    site.rule = chapters.TIMERS
    await make_topic(site, _TOPIC, 2)
    await make_group(site, "g")
    await asyncio.sleep(5)
    for name, seconds in (("soon", 10), ("later", 400), ("recalled", 400)):
        answer = await send(site, _TOPIC, name, of={"TIMER_DELAY_SEC": str(seconds), "UNIQ_KEY": name})
    handle = answer.fields["recallHandle"]
    await site.ask("RECALL_MESSAGE", producerGroup="p", topic=_TOPIC, recallHandle=handle)
    await _fill(site, 2)
    for name, level in (("delayed", 1), ("still delayed", 9)):
        await send(site, _TOPIC, name, of={"DELAY": str(level)})
    for name, flag in (("committed", 8), ("rolled back", 12), ("open", 0)):
        await _half(site, name, flag)
    await commit(site, "g", _TOPIC, 0, 1)
    await asyncio.sleep(30)
    await _expire(site)
    await site.cluster.stop(SLAVE)
    site.cluster.kill(MASTER)
    site.cluster.machines[MASTER].disk = site.cluster.machines[SLAVE].disk
    site.cluster.machines[MASTER].disk.room = Space(100, 80)
    site.compare("the first record that the slave kept", 0, log_of(site)[0].commit_offset)
    await site.cluster.start(MASTER)
    await asyncio.sleep(40)
    copies = [each for each in queue_of(site, _HALF) if "TRANSACTION_CHECK_TIMES" in each.properties]
    site.compare("the checked transactions", {b"open"}, {each.body for each in copies})
    await asyncio.sleep(300)
    found = Counter(each.body for each in log_of(site) if each.topic == _TOPIC and each.queue_id == 0)
    every = ("soon", "later", "delayed", "still delayed", "committed")
    site.compare("the messages", {name.encode(): 1 for name in every}, dict(found))
    answer = await site.ask("QUERY_CONSUMER_OFFSET", consumerGroup="g", topic=_TOPIC, queueId=0)
    site.compare("the committed offset", "1", answer.fields.get("offset"))


async def _half(site: Site, name: str, flag: int) -> None:
    of = {"TRAN_MSG": "true", "PGROUP": "p", "UNIQ_KEY": name}
    sent = await send(site, _TOPIC, name, f=4, of=of)
    if flag:
        await site.ask(
            "END_TRANSACTION", producerGroup="p", tranStateTableOffset=sent.fields["queueOffset"],
            commitLogOffset=int(sent.fields["msgId"][-16:], 16), commitOrRollback=flag, msgId=name,
            transactionId=name, fromTransactionCheck=False,
        )  # fmt: skip


async def _fill(site: Site, count: int) -> None:
    for _ in range(count):
        await send(site, _TOPIC, b"x" * 9000, 1)


async def _expire(site: Site) -> None:
    """Fill segments, and let the slave's disk ask for their deletion, before its master copies what waits."""
    await _fill(site, 6)
    site.cluster.machines[SLAVE].disk.room = Space(100, 20)
    await asyncio.sleep(120)


TAKEN_OVER: Final = Inspection(
    "a slave's disk", taken_over, {"store": replace(STORE, file_reserved_ms=60_000, delete_when_hours=())},
    replication=ReplicationConfig(Role.ASYNC_MASTER),
)  # fmt: skip
