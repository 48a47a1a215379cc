"""The brokers of `mqproof bench broker` that copy each message: ours, and Apache's with the same roles.

All brokers of a side share the machine, so the rows show the work for a message and its copies.
"""

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Final

from mqproof.conformance.adapters.apache import servers
from mqproof.conformance.adapters.apache.servers import ApacheServer
from mqproof.conformance.bench import load, replicated_brokers
from mqproof.conformance.bench.broker import BenchError, Copies
from mqproof.conformance.bench.load import Address, LoadError, Messages
from mqproof.conformance.bench.replicated_brokers import IDS
from mqproof.conformance.hosts.processes import free_ports

_READY_S: Final = 120.0
_POLL_S: Final = 0.1
_JVM: Final = ("-Xms512m", "-Xmx512m")
"""Up to three brokers of a side share the machine's memory."""


@contextmanager
def our_copies(folder: Path, copies: Copies) -> Iterator[Address]:
    """Run our brokers. Raises BenchError, ClusterError."""
    sides = {Copies.SLAVE: replicated_brokers.pair, Copies.GROUP: replicated_brokers.group}
    with sides[copies](folder) as site:
        yield _accepting(list(site.addresses.values()))


def apache_copies(release: str) -> Callable[[Path, Copies], AbstractContextManager[Address]]:
    """Return what runs Apache's brokers.

    Entering raises ApacheMissingError, ApacheServerError, BenchError.
    """

    @contextmanager
    def run(folder: Path, copies: Copies) -> Iterator[Address]:
        names = servers.name_server(release, folder)
        brokers = _brokers(release, folder, names, copies)
        with servers.running(names, *brokers):
            yield _accepting([Address(each.address.host, each.address.port) for each in brokers])

    return run


def _brokers(release: str, folder: Path, names: ApacheServer, copies: Copies) -> list[ApacheServer]:
    """Return the brokers in the order of their starts."""
    common = {"flushDiskType": "ASYNC_FLUSH"}
    if copies is Copies.GROUP:
        ports = dict(zip(IDS, free_ports(len(IDS)), strict=True))
        members = servers.group(release, folder, names.address, "copied", ports, properties=common, jvm=_JVM)
        return list(members.values())
    roles = {
        "master": {"brokerRole": "SYNC_MASTER", "inSyncReplicas": "2"},
        "slave": {"brokerRole": "SLAVE", "brokerId": "1"},
    }
    common["brokerName"] = "copied"
    return [
        servers.broker(release, folder, names.address, name=name, properties={**common, **role}, jvm=_JVM)
        for name, role in roles.items()
    ]


def _accepting(addresses: list[Address]) -> Address:
    """Return the broker that stores a message and its copies, as soon as one does. Raises BenchError."""
    messages, deadline = Messages(("ready",), queues=1), time.monotonic() + _READY_S
    reason: Exception = TimeoutError("no answer")
    while time.monotonic() < deadline:
        for address in addresses:
            try:
                asyncio.run(load.create_topics(address, messages))
                asyncio.run(load.send_rate(address, messages, 1, 1))
            except (LoadError, OSError) as error:
                reason = error
            else:
                return address
        time.sleep(_POLL_S)
    raise BenchError(f"no broker stored a message and its copies within {_READY_S:.0f} s: {reason}")
