"""Records in a broker's own queues that ours does not write, and own queues whose beginning has expired.

See docs/reference/protocol/transactions.md, "End of a transaction", and retries-and-delays.md.
"""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from mqproof.conformance.adapters.inspections.disk_log import log_of, queue_of
from mqproof.conformance.adapters.inspections.site import Inspection, Site
from mqproof.conformance.adapters.inspections.traffic import beat, make_topic, send
from mqproof.conformance.answers.stored_record import StoredRecord, read_records
from mqproof.conformance.hosts.simulated import MASTER, STORE
from mqproof.conformance.wire import chapters
from mqproof.impl.remoting.message import Message
from mqproof.impl.runtime.disk import Space
from mqproof.impl.runtime.network import Address

_TOPIC: Final = "t"
_HALF, _OPERATIONS = "RMQ_SYS_TRANS_HALF_TOPIC", "RMQ_SYS_TRANS_OP_HALF_TOPIC"
_SCHEDULE, _TIMERS = "SCHEDULE_TOPIC_XXXX", "rmq_sys_wheel_timer"
_DELAYS: Final = "/store/config/delayOffset.json"
_CHECK, _COMMIT, _ROLLBACK = 39, 8, 12
_WRONG, _ILLEGAL = 1, 13
_ROUND_S: Final = 5
_LONG_MS: Final = 150_000
_LEVELS_MS: Final = (_LONG_MS, *[1000] * 16, _LONG_MS)
_HALVES: Final[Mapping[str, tuple[dict[str, str | None], int, bool]]] = {
    "done": ({}, _WRONG, False), "done as well": ({}, _WRONG, False), "plain": ({}, 0, True),
    "no topic": ({"REAL_TOPIC": None}, _ILLEGAL, False), "empty topic": ({"REAL_TOPIC": ""}, _ILLEGAL, False),
    "no queue": ({"REAL_QID": None}, _ILLEGAL, False), "queue x": ({"REAL_QID": "x"}, _ILLEGAL, False),
    "queue beyond": ({"REAL_QID": str(1 << 31)}, _ILLEGAL, False),
    "negative queue": ({"REAL_QID": "-1"}, _ILLEGAL, False),
    "queue of 19 digits": ({"REAL_QID": "0" * 19}, _ILLEGAL, False),
    "no group": ({"PGROUP": None}, _WRONG, False), "other group": ({"PGROUP": "q"}, _WRONG, False),
    "strange times": ({"TRANSACTION_CHECK_TIMES": "x"}, 0, True),
    "strange original": ({"TRAN_PREPARED_QUEUE_OFFSET": "x"}, 0, True),
}  # fmt: skip
"""Changed properties of each half message, the code for its commit, and whether a producer is asked."""


async def strange_halves(site: Site) -> None:
    """Check and end half messages of which some name no queue or no group."""
    site.rule = chapters.TRANSACTIONS
    await make_topic(site, _TOPIC)
    line = await site.client("producer")
    await beat(site, "p@1", "", [], producers=("p",), by=line)
    for name, (changes, _, _) in _HALVES.items():
        given: dict[str, str | None] = {
            "TRAN_MSG": "true", "PGROUP": "p", "UNIQ_KEY": name, "REAL_TOPIC": _TOPIC, "REAL_QID": "0",
            **changes,
        }  # fmt: skip
        await _store(site, _HALF, name, {key: value for key, value in given.items() if value is not None})
    for body, tag in (("2", "x"), ("0,zz,,1,-2," + "2" * 19, "d"), ("", "d"), ("x", "d")):
        await _store(site, _OPERATIONS, body, {"TAGS": tag})
    await site.restart(killed=True)
    line = await site.client("producer")
    await beat(site, "p@1", "", [], producers=("p",), by=line)
    await asyncio.sleep(_ROUND_S)
    asked = [next(read_records(each.body)).body.decode() for each in line.pushed if each.code == _CHECK]
    site.compare(
        "the checked half messages", [name for name, (_, _, is_asked) in _HALVES.items() if is_asked], asked
    )
    copies = queue_of(site, _HALF)[len(_HALVES) :]
    named = {each.body.decode() for each in copies}
    site.compare("the copied half messages", set(_HALVES) - {"done", "done as well"}, named)
    for each in copies:
        shown = tuple(
            each.properties.get(key) for key in ("TRANSACTION_CHECK_TIMES", "TRAN_PREPARED_QUEUE_OFFSET")
        )
        original = list(_HALVES).index(each.body.decode())
        site.compare(f"the properties of the copy of {each.body!r}", ("1", str(original)), shown)
    for half, (name, (_, code, _)) in zip(queue_of(site, _HALF), _HALVES.items(), strict=False):
        for wrong in (
            {"tranStateTableOffset": half.queue_offset + 1}, {"commitLogOffset": half.commit_offset + 1},
            {"commitOrRollback": 4}, {"msgId": "another"}, {"producerGroup": "another"},
        ):  # fmt: skip
            await _end(site, half, name, _WRONG, **wrong)
        await _end(site, half, name, code)
    expected = [name.encode() for name, (_, code, _) in _HALVES.items() if not code]
    for _ in range(2):
        site.compare("the messages", expected, [each.body for each in queue_of(site, _TOPIC)])
        await site.restart(killed=True)
        await asyncio.sleep(_ROUND_S)


async def _store(site: Site, topic: str, body: str, properties: dict[str, str], queue: int = 0) -> None:
    host = Address(site.broker.host, site.broker.port)
    message = Message(topic, body.encode(), properties, queue, born_host=host, store_host=host)
    stored = await site.cluster.brokers[MASTER].store.put(message)
    site.compare(f"whether {body!r} is stored", "PUT_OK", stored.status.value)


async def _end(site: Site, half: StoredRecord, name: str, code: int, **wrong: object) -> None:
    fields: dict[str, Any] = {
        "producerGroup": "p", "tranStateTableOffset": half.queue_offset, "msgId": name, "transactionId": name,
        "commitLogOffset": half.commit_offset, "commitOrRollback": _COMMIT, "fromTransactionCheck": False,
        **wrong,
    }  # fmt: skip
    await site.ask("END_TRANSACTION", expects=code, **fields)


async def strange_delays(site: Site) -> None:
    """Deliver delayed messages of which some name no queue, or one that no client may have."""
    site.rule = chapters.DELAYED_MESSAGES
    await make_topic(site, _TOPIC)
    queue: tuple[tuple[str, dict[str, str | None]], ...] = (
        ("first", {}), ("no topic", {"REAL_TOPIC": None}), ("empty topic", {"REAL_TOPIC": ""}),
        ("no queue", {"REAL_QID": None}), ("queue x", {"REAL_QID": "x"}), ("queue -1", {"REAL_QID": "-1"}),
        ("for operations", {"REAL_TOPIC": _OPERATIONS}), ("for timers", {"REAL_TOPIC": _TIMERS}),
        ("long topic", {"REAL_TOPIC": "x" * 300}), ("last", {}),
    )  # fmt: skip
    for name, changes in queue:
        given: dict[str, str | None] = {"DELAY": "2", "REAL_TOPIC": _TOPIC, "REAL_QID": "0", **changes}
        kept = {key: value for key, value in given.items() if value is not None}
        await _store(site, _SCHEDULE, name, kept, 1)
    for seconds, expected in ((0.5, []), (1, [b"first", b"last"]), (30, [b"first", b"last"])):
        await asyncio.sleep(seconds)
        site.compare("the delivered messages", expected, [each.body for each in queue_of(site, _TOPIC)])
    for topic in (_OPERATIONS, _TIMERS):
        site.compare(f"the messages of {topic}", [], queue_of(site, topic))
    await _kept(site)
    await _expired(site)


async def _kept(site: Site) -> None:
    """No segment is deleted with a message that waits, or whose delivery is not counted in the file."""
    site.cluster.machines[MASTER].disk.room = Space(100, 20)
    for level in (1, 18):
        await send(site, _TOPIC, f"level {level}", of={"DELAY": str(level)})
        waits = queue_of(site, _SCHEDULE, level - 1)[-1]
        for _ in range(4):
            await send(site, _TOPIC, b"x" * 9000)
        await asyncio.sleep(_LONG_MS / 1000 - 20)
        begin = log_of(site)[0].commit_offset
        site.compare(f"whether level {level} is kept", True, begin <= waits.commit_offset)
        await asyncio.sleep(60)
        found = [each.body for each in queue_of(site, _TOPIC) if each.body.startswith(b"level")]
        site.compare(f"the delivered message of level {level}", f"level {level}".encode(), [b"", *found][-1])
        begin = log_of(site)[0].commit_offset
        site.compare(f"whether level {level} is kept until it counts", True, begin <= waits.commit_offset)
        await site.restart()
        await asyncio.sleep(60)
        begin = log_of(site)[0].commit_offset
        site.compare(f"whether level {level} is deleted then", True, begin > waits.commit_offset)


async def _expired(site: Site) -> None:
    """A level whose first messages have expired delivers the next one, whatever the file counts."""
    site.cluster.machines[MASTER].disk.room = Space(100, 20)
    for _ in range(6):
        await send(site, _TOPIC, b"x" * 9000)
    await asyncio.sleep(150)
    site.compare("whether old segments are deleted", True, log_of(site)[0].commit_offset > 0)
    for number, table in enumerate(({}, {"2": 1}, {"2": 9}, {"1": 7})):
        before = len(queue_of(site, _TOPIC))
        await site.cluster.stop(MASTER)
        site.write_file(MASTER, _DELAYS, json.dumps({"offsetTable": table}))
        await site.cluster.start(MASTER)
        await send(site, _TOPIC, f"after {number}", of={"DELAY": "2"})
        await asyncio.sleep(2)
        found = [each.body for each in queue_of(site, _TOPIC)[before:]]
        expected = [f"after {each}".encode() for each in range(number + 1)]
        site.compare(f"the delivered messages with {table}", expected, found)
    await _kept_behind_expired(site)


async def _kept_behind_expired(site: Site) -> None:
    """What waits in a queue whose beginning has expired is kept, also if the file counts nothing of it."""
    await site.cluster.stop(MASTER)
    site.write_file(MASTER, _DELAYS, json.dumps({"offsetTable": {}}))
    await site.cluster.start(MASTER)
    await send(site, _TOPIC, "kept", of={"DELAY": "1"})
    waits = queue_of(site, _SCHEDULE)[-1]
    site.compare("whether it is not the first of its queue", True, waits.queue_offset > 0)
    for _ in range(6):
        await send(site, _TOPIC, b"x" * 9000)
    await asyncio.sleep(_LONG_MS / 1000 - 20)
    begin = log_of(site)[0].commit_offset
    site.compare("whether it is kept behind expired messages", True, begin <= waits.commit_offset)
    await asyncio.sleep(21)
    site.compare("the message after it", b"kept", queue_of(site, _TOPIC)[-1].body)


STRANGE_HALVES: Final = Inspection(
    "strange half messages", strange_halves,
    {
        "transaction_check_interval_ms": _ROUND_S * 1000, "transaction_timeout_ms": 1000,
        "transaction_checks_max": 1000,
    },
)  # fmt: skip
STRANGE_DELAYS: Final = Inspection(
    "strange delayed messages", strange_delays,
    {
        "store": replace(STORE, file_reserved_ms=60_000, delete_when_hours=(), delay_levels_ms=_LEVELS_MS),
        "delay_offsets_flush_interval_ms": 1_000_000_000,
    },
)  # fmt: skip
