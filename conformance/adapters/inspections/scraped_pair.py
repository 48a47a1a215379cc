"""The metrics of a master and its slave, and whether they are ready, while the slave follows, lags and fails.

See docs/reference/protocol/administration.md, "Metrics of a broker".
"""

import asyncio
import errno
import re
from typing import Final

from mqproof.conformance.adapters.inspections.scraped import PORT, fetched, page_of
from mqproof.conformance.adapters.inspections.site import Inspection, Site
from mqproof.conformance.adapters.inspections.traffic import make_topic, send
from mqproof.conformance.hosts.simulated import MASTER, SLAVE
from mqproof.conformance.wire import chapters
from mqproof.impl.broker.broker_metrics import BrokerMetrics
from mqproof.impl.metrics.config import MetricsConfig
from mqproof.impl.metrics.metrics_server import MetricsServer
from mqproof.impl.replication.config import ReplicationConfig, Role
from mqproof.impl.runtime.simulated_disk import Step

_HELP: Final = re.compile(r"# HELP (\w+) [A-Z0-9][^()\[\]]*\S\.")
_TYPE: Final = re.compile(r"# TYPE (\w+) (counter|gauge|histogram)")
_FALL_BEHIND: Final = 5000
"""A slave that is this many bytes behind is not in sync."""
_GAUGES: Final = (
    "mqproof_ha_slaves_connected", "mqproof_ha_slaves_in_sync", "mqproof_ha_behind_bytes",
    "mqproof_ha_following", "mqproof_store_read_only", "mqproof_disk_full",
)  # fmt: skip


async def _serve(site: Site, node: str) -> MetricsServer:
    machine = site.cluster.machines[node]
    config = MetricsConfig(metrics_host=machine.host, metrics_port=PORT)
    server = MetricsServer(config, machine.runtime(), ("broker",))
    server.sources["broker"] = BrokerMetrics(site.cluster.brokers[node])
    await server.start()
    return server


async def _shows(site: Site, node: str, ready: str, **gauges: float | None) -> None:
    """Compare gauges of a broker, and whether it is ready. A gauge that is not given is absent."""
    host = site.cluster.machines[node].host
    status, why = await fetched(site, "/readyz", host)
    site.compare(f"whether {node} is ready", ready, status, why)
    page = await page_of(site, host)
    for name in _GAUGES:
        key = name.removeprefix("mqproof_").removeprefix("ha_")
        site.compare(f"{name} of {node}", gauges.get(key), page.get((name, frozenset())))
    role = "ASYNC_MASTER" if node == MASTER else "SLAVE"
    for each in ("ASYNC_MASTER", "SYNC_MASTER", "SLAVE"):
        shown = page.get(("mqproof_role", frozenset({f"role={each}"})))
        site.compare(f"the role {each} of {node}", float(each == role), shown)
    refused = page.get(("mqproof_refused_peers_total", frozenset({"port=ha"})))
    site.compare(f"the refused peers of {node}", 0.0, refused)


async def pair(site: Site) -> None:
    """Compare the pages of both while the slave follows, is cut off, and has another log than its master."""
    site.rule = chapters.METRICS_OF_A_BROKER
    await make_topic(site, "t")
    servers = [await _serve(site, node) for node in (MASTER, SLAVE)]
    works = {"store_read_only": 0.0, "disk_full": 0.0}
    await asyncio.sleep(10)
    for number in range(5):
        await send(site, "t", f"{number}")
    await asyncio.sleep(1)
    await _shows(site, MASTER, "200", slaves_connected=1, slaves_in_sync=1, behind_bytes=0, **works)
    await _shows(site, SLAVE, "200", following=1, **works)
    await _comments(site)
    site.cluster.pause(SLAVE)
    before = site.cluster.brokers[MASTER].store.log_end
    for number, in_sync in enumerate((1, 0)):
        await send(site, "t", "x" * (_FALL_BEHIND * (number + 1) // 2))
        await asyncio.sleep(1)
        behind = site.cluster.brokers[MASTER].store.log_end - before
        await _shows(
            site, MASTER, "200", slaves_connected=1, slaves_in_sync=in_sync, behind_bytes=behind, **works
        )
    site.cluster.go_on(SLAVE)
    await asyncio.sleep(5)
    await _shows(site, MASTER, "200", slaves_connected=1, slaves_in_sync=1, behind_bytes=0, **works)
    await servers[0].stop()
    (await site.client()).close()
    site.cluster.lose_disk(MASTER)
    await asyncio.sleep(30)
    await _shows(site, SLAVE, "200", following=0, **works)
    await site.cluster.start(MASTER)
    servers[0] = await _serve(site, MASTER)
    await make_topic(site, "u")
    for number in range(20):
        await send(site, "u", f"another {number}" * 100)
    # The new disk has other messages at the offsets that the lost one had.
    site.watch.wrong = [each for each in site.watch.wrong if "stored at commit offset" not in each.text]
    await asyncio.sleep(20)
    await _shows(site, SLAVE, "503", following=0, **works)
    await _shows(site, MASTER, "200", slaves_connected=0, slaves_in_sync=0, behind_bytes=0, **works)
    await _failed(site)
    for server in servers:
        await server.stop()


async def _comments(site: Site) -> None:
    """Each series has a line that explains it, and one with its type."""
    _, body = await fetched(site, "/metrics")
    lines = body.splitlines()
    for line in lines:
        if line.startswith("# "):
            pattern = _HELP if line.startswith("# HELP") else _TYPE
            site.compare(f"whether {line!r} is valid", True, pattern.fullmatch(line) is not None)
    types = {match[1]: match[2] for line in lines if (match := _TYPE.fullmatch(line))}
    helps = {match[1] for line in lines if (match := _HELP.fullmatch(line))}
    site.compare("the series with an explanation and with a type", set(types), helps)
    for name, kind in types.items():
        site.compare(f"whether {name} is a counter", name.endswith("_total"), kind == "counter")


async def _failed(site: Site) -> None:
    """A broker whose disk failed is not ready, and accepts no message until it is restarted."""

    def fail(step: Step) -> None:
        if "/commitlog/" in step.path and step.kind == "sync":
            raise OSError(errno.EIO, "the disk failed")

    site.cluster.machines[MASTER].disk.on_step = fail
    await send(site, "u", "not durable", expects=None)
    await asyncio.sleep(15)
    slaves = {"slaves_connected": 0.0, "slaves_in_sync": 0.0, "behind_bytes": 0.0}
    await _shows(site, MASTER, "503", store_read_only=1, disk_full=0, **slaves)
    await send(site, "u", "refused", expects=14)


PAIR_METRICS: Final = Inspection(
    "metrics of a pair", pair,
    replication=ReplicationConfig(Role.ASYNC_MASTER, fall_behind_bytes_max=_FALL_BEHIND),
)  # fmt: skip
