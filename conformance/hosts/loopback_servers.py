"""A name server and brokers of ours on loopback, in a thread of this process, until a block ends."""

import asyncio
import tempfile
import threading
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, TypeVar

from mqproof.impl.broker.broker import Broker
from mqproof.impl.broker.config import BrokerConfig
from mqproof.impl.namesrv.config import NameServerConfig
from mqproof.impl.namesrv.server import NameServer
from mqproof.impl.runtime.network import Address, AsyncioNetwork
from mqproof.impl.runtime.runtime import Runtime, production

T = TypeVar("T")

Configs = Callable[[Path], Sequence[BrokerConfig]]
"""Returns the configurations of the brokers, whose files are in the folder."""

_PATIENT_S: Final = 60.0
_BUSY_MS: Final = 60_000
"""The broker's limit for waiting sends: so long that it refuses no request because the machine is loaded."""


class LoopbackServers:
    """The running servers; their addresses are known once they have started."""

    def __init__(self, folder: Path, loop: asyncio.AbstractEventLoop) -> None:
        self.folder = folder
        self.name_server = Address("", 0)
        self.addresses: list[Address] = []
        """Where clients connect to the brokers, in the order of their configurations."""
        self.brokers: list[Broker] = []
        self._loop = loop
        self._names: NameServer | None = None

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the loop of the servers, and return its result."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(_PATIENT_S)

    async def start(self, configs: Configs, files_max: int | None) -> None:
        """Start all servers. `files_max` limits the connections of each broker, in place of the system."""
        kept = str(self.folder / "kvConfig.json")
        self._names = NameServer(NameServerConfig(port=0, kv_path=kept), production(AsyncioNetwork()))
        self.name_server = await self._names.start()
        for number, config in enumerate(configs(self.folder)):
            store = str(self.folder / f"store-{number}")
            whole = replace(config, name_servers=(self.name_server,), store_directory=store, busy_ms=_BUSY_MS)
            broker = Broker(whole, _runtime(files_max))
            self.brokers.append(broker)
            self.addresses.append(await broker.start())

    async def stop(self) -> None:
        for server in (*reversed(self.brokers), self._names):
            if server is not None:
                await server.stop()


@contextmanager
def loopback_servers(
    configs: Configs = lambda _: (BrokerConfig(port=0),), files_max: int | None = None
) -> Iterator[LoopbackServers]:
    """Run the servers within the block. Raises as Broker.start."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    with tempfile.TemporaryDirectory(prefix="mqproof-loopback-") as folder:
        servers = LoopbackServers(Path(folder), loop)
        thread.start()
        try:
            servers.run(servers.start(configs, files_max))
            yield servers
        finally:
            servers.run(servers.stop())
            loop.call_soon_threadsafe(loop.stop)
            thread.join(_PATIENT_S)
            loop.close()


def _runtime(files_max: int | None) -> Runtime:
    runtime = production(AsyncioNetwork())
    return runtime if files_max is None else replace(runtime, files_max=files_max)
