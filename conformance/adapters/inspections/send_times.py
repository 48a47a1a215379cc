"""How long sends take, to the millisecond: the intervals that a broker reports, and when it refuses others.

See docs/reference/protocol/sending.md, "Flow control", and administration.md, "Configuration of a broker".
"""

import asyncio
from typing import Any, Final

from mqproof.conformance.adapters.inspections import java_values
from mqproof.conformance.adapters.inspections.raw_client import Answer
from mqproof.conformance.adapters.inspections.site import CODES, Inspection, Site, written
from mqproof.conformance.adapters.inspections.traffic import make_topic
from mqproof.conformance.hosts.simulated import MASTER
from mqproof.conformance.wire import chapters
from mqproof.impl.store.config import FlushMode

_BUSY: Final = 2
_STEPS: Final = {
    "<=0ms": (0,), "0~10ms": (1, 10), "10~50ms": (11, 50), "50~100ms": (51, 100), "100~200ms": (101, 200),
    "200~500ms": (201, 500), "500ms~1s": (501, 1000), "1~2s": (1001, 2000), "2~3s": (2001, 3000),
    "3~4s": (3001, 4000), "4~5s": (4001, 5000), "5~10s": (5001, 10_000), "10s~": (10_001,),
}  # fmt: skip
"""The first and the last whole milliseconds of each interval."""
_SETTINGS: Final = "syncFlushTimeout=20000"


async def send_times(site: Site) -> None:
    site.rule = chapters.SEND_REQUESTS
    machine = site.cluster.machines[MASTER]
    machine.fsync.slowness = 0.0
    await make_topic(site, "t")
    await site.ask("UPDATE_BROKER_CONFIG", _SETTINGS)
    counts = dict.fromkeys(_STEPS, 0)
    for step, times_ms in _STEPS.items():
        for ms in times_ms:
            machine.fsync.hold()
            waiting = await _put(site, "waits")
            await asyncio.sleep((ms + 0.3) / 1000)
            await _shows(site, waiting=1, oldest_ms=ms)
            machine.fsync.release()
            site.compare(f"the answer after {ms} ms", 0, (await waiting).code)
            counts[step] += 1
            await _shows(site, waiting=0, oldest_ms=0, longest_ms=ms, counts=counts)
    for ms, code in ((999, 0), (1000, 0), (1001, _BUSY)):
        machine.fsync.hold()
        waiting = await _put(site, "waits")
        await asyncio.sleep((ms - (0.2 if code == 0 else -0.2)) / 1000)
        other = await _put(site, "other")
        await asyncio.sleep(0.01)
        site.compare(f"whether a send is refused beside one of {ms} ms", bool(code), other.done())
        machine.fsync.release()
        answer = await other
        site.compare(f"the send beside one of {ms} ms", code, answer.code)
        if code:
            site.compare("whether it names the time and the number", True, (
                f"period in queue: {ms}ms, size of queue: 1" in (answer.remark or "")))  # fmt: skip
        await waiting


async def _put(site: Site, name: str) -> Answer:
    line = await site.client(name)
    fields: dict[str, Any] = {
        "a": "p", "b": "t", "c": "TBW102", "d": 4, "e": 0, "f": 0, "g": site.now_ms, "h": 0, "i": "",
        "j": 0, "k": False, "m": False,
    }  # fmt: skip
    return line.put(CODES["SEND_MESSAGE_V2"], {key: written(each) for key, each in fields.items()}, b"x")


async def _shows(
    site: Site, *, waiting: int, oldest_ms: int, longest_ms: int | None = None,
    counts: dict[str, int] | None = None,
) -> None:  # fmt: skip
    table = java_values.read((await site.ask("GET_BROKER_RUNTIME_INFO")).body)["table"]
    expected = {
        "sendThreadPoolQueueSize": waiting, "sendThreadPoolQueueHeadWaitTimeMills": oldest_ms,
        "pageCacheLockTimeMills": oldest_ms,
        **({} if longest_ms is None else {"putMessageEntireTimeMax": longest_ms}),
    }  # fmt: skip
    for name, value in expected.items():
        site.compare(f"{name} after {oldest_ms} ms", str(value), table[name])
    if counts is not None:
        text = " ".join(f"[{step}]:{count}" for step, count in counts.items())
        site.compare("the sends by their time", text, table["putMessageDistributeTime"])


SEND_TIMES: Final = Inspection("times of sends", send_times, flush=FlushMode.SYNC_FLUSH)
