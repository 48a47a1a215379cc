"""When the lock of a queue, a silent client and a silent filter server expire, to the millisecond.

See docs/reference/protocol/groups.md, "Queue locks" and "Client registration", and filters.md.
"""

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from typing import Final

from mqproof.conformance.adapters.inspections import java_values
from mqproof.conformance.adapters.inspections.raw_client import RawClient
from mqproof.conformance.adapters.inspections.site import Inspection, Site
from mqproof.conformance.adapters.inspections.traffic import beat, make_group, make_topic, pull, subscription
from mqproof.conformance.engine.targets import TargetError
from mqproof.conformance.wire import chapters

_TOPIC, _GROUP = "t", "g"
_LEASE_MS, _SILENT_MS, _SCAN_MS = 60_000, 120_000, 10_000
_FORGOTTEN_MS: Final = 30_000
_WITHIN_S: Final = 0.0003
"""Requests are sent this long after the beginning of a millisecond."""


async def exact_leases(site: Site) -> None:
    await make_topic(site, _TOPIC, 3)
    await make_group(site, _GROUP)
    await _leases(site)
    await _silence(site)


async def _at(site: Site, ms: float) -> None:
    """Wait until so many milliseconds of the loop's time."""
    await asyncio.sleep(ms / 1000 + _WITHIN_S - site.cluster.now_s)


async def _lock(site: Site, client: str, *queues: int, group: str = _GROUP) -> list[int]:
    named = [{"topic": _TOPIC, "brokerName": "broker-a", "queueId": queue} for queue in queues]
    body = {"consumerGroup": group, "clientId": client, "mqSet": named}
    answer = await site.ask("LOCK_BATCH_MQ", body)
    return sorted(each["queueId"] for each in java_values.read(answer.body)["lockOKMQSet"])


async def _leases(site: Site) -> None:
    """A lock lasts 60 s from its last renewal, whatever the broker looks at meanwhile."""
    site.rule = chapters.QUEUE_LOCKS
    began_ms = int(site.cluster.now_s * 1000) + 1
    for after_ms, client, queues, held in (
        (0, "one", (0, 1), [0, 1]), (0, "two", (0, 2), [2]), (_LEASE_MS // 2, "one", (0,), [0]),
        (_LEASE_MS // 2, "two", (0, 1), []), (_LEASE_MS, "two", (0, 1), []),
        (_LEASE_MS + 1, "two", (0, 1), [1]), (_LEASE_MS + 1, "one", (0, 1, 2), [0, 2]),
        (2 * _LEASE_MS, "two", (0,), []), (2 * _LEASE_MS + 1, "two", (0, 2), []),
        (2 * _LEASE_MS + 2, "two", (0, 2), [0, 2]), (4 * _LEASE_MS, "one", (0, 1, 2), [0, 1, 2]),
    ):  # fmt: skip
        await _at(site, began_ms + after_ms)
        found = await _lock(site, client, *queues)
        site.compare(f"the queues that {client} holds after {after_ms} ms", held, found)
    await make_group(site, "other")
    site.compare("the queues of another group", [0, 1, 2], await _lock(site, "two", 0, 1, 2, group="other"))


async def _silence(site: Site) -> None:
    """A client leaves at the first look at which its last heartbeat is more than 120 s old."""
    site.rule = chapters.CLIENT_REGISTRATION
    looks_ms = await _first_look(site)
    lines = {late_ms: await site.client(f"late {late_ms}") for late_ms in (-1, 0, 1)}
    for late_ms, line in lines.items():
        await _at(site, looks_ms + _SCAN_MS * 2 + late_ms)
        await beat(site, f"late{late_ms}@1", _GROUP, [subscription(_TOPIC)], by=line)
    end_ms = looks_ms + _SCAN_MS * 2 + _SILENT_MS
    for ms, left in ((end_ms - 10, set()), (end_ms + 10, {-1}), (end_ms + _SCAN_MS + 10, {-1, 0, 1})):
        await _kept_open(site, lines.values(), ms)
        await _at(site, ms)
        closed = {late_ms for late_ms, line in lines.items() if line.is_closed}
        site.compare(f"the clients that have left after {ms - end_ms} ms", left, closed)
    await _filter_servers(site, end_ms + 2 * _SCAN_MS)


async def _filter_servers(site: Site, look_ms: int) -> None:
    """A filter server is forgotten at the first look at which its registration is more than 30 s old."""
    site.rule = chapters.FILTER_SERVERS
    end_ms = look_ms + _FORGOTTEN_MS
    for late_ms in (-1, 0, 1):
        await _at(site, look_ms + late_ms)
        line = await site.client(f"filter {late_ms}")
        address = f"10.0.2.1:900{late_ms + 1}"
        await site.ask("REGISTER_FILTER_SERVER", by=line, filterServerAddr=address)
    for ms, ports in ((end_ms - 10, "012"), (end_ms + 100, "12"), (end_ms + _SCAN_MS + 100, "")):
        await _at(site, ms)
        answer = await site.ask("GET_ROUTEINFO_BY_TOPIC", to=site.name_server, topic=_TOPIC)
        known = java_values.read(answer.body)["filterServerTable"].get(str(site.broker), [])
        expected = [f"10.0.2.1:900{port}" for port in ports]
        site.compare(f"the filter servers after {ms - end_ms} ms", expected, sorted(known))


async def _kept_open(site: Site, lines: Iterable[RawClient], until_ms: int) -> None:
    """Send other requests until shortly before that time, so that the connections are not idle."""
    while site.cluster.now_s < until_ms / 1000 - 20:
        await asyncio.sleep(20)
        for line in lines:
            await site.ask("GET_MAX_OFFSET", by=line, topic=_TOPIC, queueId=0)


async def _first_look(site: Site) -> int:
    """Return a time at which the broker looks for silent clients, in milliseconds of the loop's time."""
    line = await site.client("measures")
    await beat(site, "measures@1", _GROUP, [subscription(_TOPIC)], by=line)
    await _kept_open(site, [line], int(site.cluster.now_s * 1000) + _SILENT_MS)
    held = asyncio.ensure_future(
        pull(site, _TOPIC, group=_GROUP, by=line, sysFlag=2 | 4, suspendTimeoutMillis=60_000)
    )
    with suppress(TargetError):
        await held
    site.compare("whether a silent client is closed", True, line.is_closed)
    return round(site.cluster.now_s * 1000)


EXACT_LEASES: Final = Inspection("exact leases", exact_leases, {"filter_servers": True})
