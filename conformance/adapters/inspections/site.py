"""The servers of one inspection, its clients, and what it found."""

import asyncio
import json
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Final

from mqproof.conformance.adapters import simulated_loops
from mqproof.conformance.adapters.inspections.raw_client import RawClient
from mqproof.conformance.adapters.watched_network import WatchedNetwork
from mqproof.conformance.answers.record_rules import ANY_BROKER
from mqproof.conformance.answers.request_and_answer import Wrong
from mqproof.conformance.answers.watch import Watch
from mqproof.conformance.engine import time_bounds
from mqproof.conformance.engine.targets import TargetError
from mqproof.conformance.faults.expected_warnings import expected_warnings
from mqproof.conformance.hosts.simulated import MASTER, NAME_SERVERS, Cluster, Setup
from mqproof.conformance.wire import chapters
from mqproof.conformance.wire.frames import Frame
from mqproof.conformance.wire.operations import ALL
from mqproof.impl.broker import config as broker_config
from mqproof.impl.broker.config import BrokerConfig
from mqproof.impl.replication.config import ReplicationConfig
from mqproof.impl.runtime.clock import now_ms
from mqproof.impl.runtime.disk import SECRET_MODE, write_durably
from mqproof.impl.runtime.network import Address
from mqproof.impl.runtime.simulated_disk import SimulatedDisk
from mqproof.impl.runtime.simulated_loop import SimulatedLoop
from mqproof.impl.store.config import FlushMode
from mqproof.impl.store.errors import StoreError
from mqproof.report.model import Witness

CODES: Final[Mapping[str, int]] = {operation.name: operation.code for operation in ALL}
"""The request codes of the protocol documentation, by name."""
HOST: Final = "10.0.1.1"
"""The machine of the clients."""
_SECONDS_MAX: Final = 5.0
"""The processor time after which an inspection is ended. With coverage.py, "damaged records" takes 2.8 s."""
_BROKER_PORT: Final = 10911
_NONE: Final[Mapping[str, Any]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Inspection:
    """Requests to servers of a configuration of their own."""

    name: str
    look: "Callable[[Site], Coroutine[Any, Any, None]]"
    broker: Mapping[str, Any] = field(default_factory=dict)
    """The fields of the broker's configuration that differ from the defaults."""
    name_server: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    """The texts of the files of each broker before its first start, by path."""
    name_server_files: Mapping[str, str] = field(default_factory=dict)
    flush: FlushMode = FlushMode.ASYNC_FLUSH
    replication: ReplicationConfig | None = None
    """The replication of the broker, which then has a slave."""
    elected: bool = False
    """Whether the brokers are a group of three that elects its master."""
    properties: str | None = None
    """The text of the broker's properties file; None for the defaults of simulated brokers."""

    def configured(self, config: BrokerConfig) -> BrokerConfig:
        """Return the configuration of the broker."""
        if self.properties is not None:
            of_file, _ = broker_config.read(self.properties, "broker.properties")
            config = replace(
                of_file, host=config.host, port=config.port, name_servers=config.name_servers,
                store_directory=config.store_directory,
            )  # fmt: skip
        config = replace(config, **self.broker)
        if "store" in self.broker:
            config = replace(config, store=replace(config.store, flush_mode=self.flush))
        return config


class Site:
    """A name server and a broker on simulated machines, and the clients of an inspection."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.rule = chapters.REMOTING_COMMAND
        """The section of the protocol documentation of what is compared now."""
        first = cluster.machines[cluster.nodes[0]]
        self.broker = Address(first.host, _BROKER_PORT)
        self.name_server = cluster.names[0]
        self._clock = first.clock
        self.watch = self._new_watch()
        self._lines: dict[tuple[str, str, Address], RawClient] = {}

    @property
    def now_ms(self) -> int:
        return now_ms(self._clock)

    async def client(self, name: str = "", to: Address | None = None, host: str = HOST) -> RawClient:
        """Return the connection of that name to a server, by default the broker; open it if necessary."""
        server = to or self.broker
        key = name, host, server
        if key not in self._lines or self._lines[key].is_closed:
            network = WatchedNetwork(self.cluster.internet.machine(host), self.watch)
            self._lines[key] = await RawClient(server).open(network)
        return self._lines[key]

    async def ask(
        self,
        name: str,
        body: bytes | str | list[Any] | dict[str, Any] = b"",
        *,
        expects: int | None = 0,
        by: RawClient | None = None,
        to: Address | None = None,
        of_frame: Mapping[str, Any] = _NONE,
        **fields: object,
    ) -> Frame:
        """Send the request of that name; report another code than the expected one, if one is expected."""
        given = {key: written(value) for key, value in fields.items() if value is not None}
        client = by or await self.client(to=to)
        answer = await client.request(CODES[name], given, in_bytes(body), **of_frame)
        if expects is not None:
            self.compare(f"the code for {name} {given}", expects, answer.code, answer.remark)
        return answer

    def compare(self, what: str, expected: object, observed: object, remark: str | None = None) -> None:
        """Report a value that is not the expected one."""
        if expected != observed:
            why = f" ({remark})" if remark else ""
            self.report(f"{what} is {observed!r}{why}, expected {expected!r}")

    def report(self, text: str) -> None:
        self.watch.found("an inspection", [Wrong(self.rule, text)])

    def write_file(self, node: str, path: str, text: str) -> None:
        """Write a file of a machine."""
        write_durably(self.cluster.machines[node].disk.process(), path, text.encode(), SECRET_MODE)

    async def restart(self, *, killed: bool = False) -> None:
        """Stop and start the broker, and wait until a name server knows it."""
        if killed:
            self.cluster.kill(MASTER)
        else:
            await self.cluster.stop(MASTER)
        await self.cluster.start(MASTER)
        await asyncio.sleep(1)

    async def lose_power(self) -> None:
        """Cut the broker's power: only synced data remains. Then start it. Raises StoreError, OSError."""
        self.cluster.lose_power(MASTER)
        self.hang_up()  # no connection reports that its broker is gone
        await self.cluster.start(MASTER)

    def replace_disk(self, disk: SimulatedDisk) -> None:
        """Give the stopped broker another disk: answers may contradict the earlier ones."""
        self.cluster.machines[MASTER].disk = disk
        self.forget()

    def forget(self) -> None:
        """Close all connections; from now on, answers may contradict the earlier ones."""
        self.hang_up()
        wrong, self.watch = self.watch.wrong, self._new_watch()
        self.watch.wrong = wrong

    def machine_clock_add(self, microseconds: int) -> None:
        """Advance the clock of the broker's machine alone."""
        self._clock.skew_us += microseconds

    def hang_up(self) -> None:
        """Close all connections."""
        for line in self._lines.values():
            line.close()
        self._lines.clear()

    def _new_watch(self) -> Watch:
        stored_at = ANY_BROKER if self.cluster.setup.elected else str(self.broker)
        return Watch(lambda: self.now_ms, is_exact=True, stored_at=stored_at)


def in_bytes(body: bytes | str | list[Any] | dict[str, Any]) -> bytes:
    """Return a body; lists and tables are written as JSON."""
    if isinstance(body, bytes):
        return body
    return (body if isinstance(body, str) else json.dumps(body)).encode()


def written(value: object) -> str:
    """Return a value as it is written in a header."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def inspect(inspection: Inspection) -> tuple[Witness, ...]:
    """Run the inspection on servers of its own; return what is wrong.

    Raises:
        EndlessError, and what our servers raise.
    """
    loop = SimulatedLoop()
    setup = Setup(
        inspection.flush,
        replication=inspection.replication,
        elected=inspection.elected,
        configured=inspection.configured,
        name_server=inspection.name_server,
    )
    cluster = Cluster(loop, 0, setup)
    cluster.internet.delay_s = (0.0, 0.0)
    site = Site(cluster)
    for path, text in inspection.files.items():
        for node in cluster.nodes:
            site.write_file(node, path, text)
    for path, text in inspection.name_server_files.items():
        for node in NAME_SERVERS:
            site.write_file(node, path, text)
    with expected_warnings("mqproof.impl"), time_bounds.bounded(_SECONDS_MAX):
        try:
            simulated_loops.run(loop, _looked(site, inspection))
        finally:
            simulated_loops.end(loop)
    return tuple(site.watch.wrong)


async def _looked(site: Site, inspection: Inspection) -> None:
    await site.cluster.start_all()
    try:
        await inspection.look(site)
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        site.report(f"{inspection.name}: an answer has another form: {error!r}")
    except (TargetError, StoreError, OSError) as error:
        site.report(str(error))
