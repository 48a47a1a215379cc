"""Waiting messages whose records are old, damaged, very many, or of a released broker.

See docs/reference/protocol/timers.md, "Copies" and "Files of released brokers".
"""

import asyncio
import struct
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from mqproof.conformance.adapters.inspections.disk_log import log_of, queue_of
from mqproof.conformance.adapters.inspections.site import Inspection, Site
from mqproof.conformance.adapters.inspections.traffic import make_topic, records, send
from mqproof.conformance.adapters.inspections.waiting import TIMER_TOPIC
from mqproof.conformance.hosts.simulated import MASTER, STORE
from mqproof.conformance.wire import chapters
from mqproof.impl.remoting.message import Message
from mqproof.impl.runtime.disk import Space, write_durably
from mqproof.impl.runtime.network import Address
from mqproof.impl.runtime.simulated_disk import SimulatedDisk

_TOPIC: Final = "t"
_BUSY: Final = 2
_NEVER_MS: Final = 10**15
"""A time that no clock of a broker shows."""
_CHECKPOINT: Final = struct.Struct(">qqqq")


async def copies(site: Site) -> None:
    """Let the segments of waiting messages expire three times; each is copied, and delivered once."""
    site.rule = chapters.TIMERS
    await make_topic(site, _TOPIC, 2)
    later = {"later": 600, "soon": 80, "recalled": 700}
    handles = {name: await _send(site, name, seconds) for name, seconds in later.items()}
    await site.ask("RECALL_MESSAGE", producerGroup="p", topic=_TOPIC, recallHandle=handles["recalled"])
    disk = site.cluster.machines[MASTER].disk
    disk.room = Space(100, 20)
    begins = []
    for times in range(3):
        for _ in range(3):
            await send(site, _TOPIC, b"x" * 9000, 1)
        await asyncio.sleep(120)
        begins.append(log_of(site)[0].commit_offset)
        copied = [each for each in queue_of(site, TIMER_TOPIC) if "TIMER_ORIGINAL" in each.properties]
        shown = [each.properties for each in copied if each.body == b"later"][-1]
        site.compare(
            f"copy {times + 1}",
            ("0", str(times + 1), "600"),
            tuple(shown.get(name) for name in ("TIMER_ORIGINAL", "TIMER_ROLL_TIMES", "TIMER_DELAY_SEC")),
        )
        site.compare(
            "the bodies of copies",
            {b"later", b"soon"} if not times else {b"later"},
            {each.body for each in copied},
        )
        if times == 1:
            await site.restart(killed=True)
    site.compare("whether old segments are deleted", True, 0 < begins[0] < begins[1] < begins[2])
    await _ends(site, 400, {"later": 1, "soon": 0, "recalled": 0})


async def _send(site: Site, body: str, seconds: int) -> str:
    of = {"TIMER_DELAY_SEC": str(seconds), "UNIQ_KEY": body}
    return (await send(site, _TOPIC, body, of=of)).fields.get("recallHandle", "")


async def _ends(site: Site, seconds: int, expected: Mapping[str, int]) -> None:
    await asyncio.sleep(seconds)
    found = [each.body.decode() for each in queue_of(site, _TOPIC)]
    site.compare("the deliveries", dict(expected), {name: found.count(name) for name in expected})


async def damaged(site: Site) -> None:
    """A waiting message whose record is damaged is dropped when it is due: the limit has room again."""
    site.rule = chapters.TIMERS
    await make_topic(site, _TOPIC)
    for name in ("one", "two"):
        await _send(site, name, 10)
    await asyncio.sleep(2)
    await send(site, _TOPIC, of={"TIMER_DELAY_SEC": "10"}, expects=_BUSY)
    record = queue_of(site, TIMER_TOPIC)[0]
    disk = site.cluster.machines[MASTER].disk
    disk.damage("/store/commitlog/" + f"{0:020}", record.commit_offset + len(record.raw) - 8, b"####")
    await asyncio.sleep(10)
    site.compare("the delivered messages", [b"two"], [each.body for each in await records(site, _TOPIC)])
    await _illegal(site)
    for _ in range(2):
        await send(site, _TOPIC, of={"TIMER_DELAY_SEC": "3600"})
    await send(site, _TOPIC, of={"TIMER_DELAY_SEC": "10"}, expects=_BUSY)


async def _illegal(site: Site) -> None:
    """A waiting message that cannot be stored for its consumers, as no client can send it, is dropped."""
    properties = {"TIMER_OUT_MS": str(site.now_ms + 1000), "REAL_TOPIC": "x" * 300, "REAL_QID": "0"}
    host = Address(site.broker.host, site.broker.port)
    message = Message(TIMER_TOPIC, b"illegal", properties, born_host=host, store_host=host)
    await site.cluster.brokers[MASTER].store.put(message)
    await asyncio.sleep(4)


async def of_5_x(site: Site) -> None:
    """Start with a timer queue and the progress of a released broker: what it delivered is not repeated."""
    site.rule = chapters.TIMERS
    await make_topic(site, _TOPIC)
    now_ms = site.now_ms
    queue: tuple[tuple[str, int, dict[str, str]], ...] = (
        ("delivered", 2, {}), ("waits", 20, {}), ("recalled", 30, {}), ("no topic", 20, {"REAL_TOPIC": ""}),
        ("no queue", 20, {"REAL_QID": "x"}), ("not for clients", 20, {"REAL_TOPIC": TIMER_TOPIC}),
        ("no time", 0, {"TIMER_OUT_MS": "x"}), ("a recall", 30, {"TIMER_DEL_UNIQKEY": "recalled"}),
        ("not read", 2, {}), ("last", 25, {}),
    )  # fmt: skip
    store, host = site.cluster.brokers[MASTER].store, Address(site.broker.host, site.broker.port)
    for name, seconds, others in queue:
        properties = {
            "TIMER_OUT_MS": str((now_ms + seconds * 1000) // 1000 * 1000), "REAL_TOPIC": _TOPIC,
            "REAL_QID": "0", "UNIQ_KEY": name, **others,
        }  # fmt: skip
        await store.put(Message(TIMER_TOPIC, name.encode(), properties, born_host=host, store_host=host))
    site.cluster.kill(MASTER)
    progress = _CHECKPOINT.pack(now_ms + 10_000, 0, 8, 0)
    write_durably(site.cluster.machines[MASTER].disk.process(), "/store/config/timercheck", progress, 0o600)
    await asyncio.sleep(12)
    await site.cluster.start(MASTER)
    delivered = [b"not read", b"waits", b"last"]
    for seconds, count in ((1, 1), (7, 1), (3, 2), (10, 3)):
        await asyncio.sleep(seconds)
        found = [each.body for each in await records(site, _TOPIC)]
        site.compare("the delivered messages", delivered[:count], found)
    await site.restart(killed=True)
    await asyncio.sleep(5)
    site.compare("the messages", 3, len(await records(site, _TOPIC)))


async def wrong_progress(site: Site) -> None:
    """A file of progress that is too short, or has an impossible time, counts nothing as delivered."""
    site.rule = chapters.TIMERS
    await make_topic(site, _TOPIC)
    machine = site.cluster.machines[MASTER]
    host, path = Address(site.broker.host, site.broker.port), "/store/config/timercheck"
    for number, (progress, is_valid) in enumerate((
        (b"", False), (_CHECKPOINT.pack(_NEVER_MS - 1, 0, 99, 0)[:-1], False),
        (_CHECKPOINT.pack(_NEVER_MS, 0, 99, 0), False), (_CHECKPOINT.pack(-1, 0, 99, 0), False),
        (_CHECKPOINT.pack(_NEVER_MS - 1, 0, -1, 0), False), (_CHECKPOINT.pack(_NEVER_MS - 1, 0, 99, 0), True),
    )):  # fmt: skip
        site.cluster.kill(MASTER)
        machine.disk = (
            SimulatedDisk()
        )  # a broker of ours writes a point, behind which the file does not count
        site.forget()
        await site.cluster.start(MASTER)
        await make_topic(site, _TOPIC)
        properties = {
            "TIMER_OUT_MS": str((site.now_ms + 2000) // 1000 * 1000), "REAL_TOPIC": _TOPIC, "REAL_QID": "0",
        }  # fmt: skip
        body = f"{number}".encode()
        message = Message(TIMER_TOPIC, body, properties, born_host=host, store_host=host)
        await site.cluster.brokers[MASTER].store.put(message)
        site.cluster.kill(MASTER)
        write_durably(machine.disk.process(), path, progress, 0o600)
        await site.cluster.start(MASTER)
        await asyncio.sleep(5)
        expected = [] if is_valid else [body]
        found = [each.body for each in await records(site, _TOPIC)]
        site.compare(f"the delivered messages with the progress {number}", expected, found)


async def very_many(site: Site) -> None:
    """Recall more than two thousand messages at once; those beside them are delivered, once."""
    site.rule = chapters.TIMERS
    await make_topic(site, _TOPIC)
    sent = await send(site, _TOPIC, of={"TIMER_DELAY_SEC": "100", "UNIQ_KEY": "k"})
    record = queue_of(site, TIMER_TOPIC)[0]
    same = Message(TIMER_TOPIC, b"m", record.properties)
    for _ in range(42):
        (stored, *_) = await site.cluster.brokers[MASTER].store.put_batch([same] * 50)
        site.compare("whether waiting messages are stored", "PUT_OK", stored.status.value)
    for number in range(40):
        await _send(site, f"{number}", 20)
    await site.ask(
        "RECALL_MESSAGE", producerGroup="p", topic=_TOPIC, recallHandle=sent.fields["recallHandle"]
    )
    for seconds in (25, 90):
        await asyncio.sleep(seconds)
        found = [each.body for each in queue_of(site, _TOPIC)]
        site.compare("the delivered messages", [f"{number}".encode() for number in range(40)], found)
        await site.restart(killed=True)


_EXPIRING: Final = replace(STORE, file_reserved_ms=60_000, delete_when_hours=())
COPIES: Final = Inspection("copies of waiting messages", copies, {"store": _EXPIRING})
DAMAGED: Final = Inspection("damaged waiting messages", damaged, {"timers_waiting_max": 2})
WRONG_PROGRESS: Final = Inspection("wrong progress of 5.x", wrong_progress)
OF_5_X: Final = Inspection("waiting messages of 5.x", of_5_x)
VERY_MANY: Final = Inspection("very many waiting messages", very_many)
