"""A name server and several brokers that run inside the caller's event loop and replicate their messages."""

import asyncio
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import TracebackType
from typing import Final, Self, TypeVar

from mqproof.impl.broker.broker import Broker
from mqproof.impl.client.connection.group_claims import GroupClaims
from mqproof.impl.client.connection.session import Session
from mqproof.impl.client.model import ReceivedMessage
from mqproof.impl.embedded import cluster_members
from mqproof.impl.embedded.cluster_members import ClusterKind, Member
from mqproof.impl.embedded.request_faults import RequestFaults, fault
from mqproof.impl.embedded.stored_messages import expect_messages, stored_messages
from mqproof.impl.embedded.virtual_time import TimeError, VirtualTime, of_loop
from mqproof.impl.namesrv.config import NameServerConfig
from mqproof.impl.namesrv.server import NameServer
from mqproof.impl.runtime.network import AsyncioNetwork, Network, SimulatedNetwork
from mqproof.impl.runtime.runtime import Runtime, inline
from mqproof.impl.runtime.simulated_disk import SimulatedDisk

T = TypeVar("T")

_STEP_S: Final = 1.0
"""The largest step of time: shorter than the two seconds between heartbeats of three members."""
_WAIT_STEP_S: Final = 0.1
"""The step while the cluster waits for its brokers: shorter than most of the random pauses of an election."""
_PAUSE_S: Final = 0.002
_WAIT_S: Final = 60.0
"""How long the cluster waits for its own brokers, in the machine's time."""
_TABLES_S: Final = 25.0
"""The time in which a slave copies its master's tables twice."""
_START_ATTEMPTS: Final = 5
"""Another process can take a port between its choice and its use."""


class ClusterError(RuntimeError):
    """The cluster is not in a state in which it can do this. The message says why."""


class EmbeddedCluster:
    """A name server and brokers with replicas, started by `async with`. Their stores are in memory."""

    def __init__(
        self,
        kind: str = ClusterKind.MASTER_SLAVE,
        *,
        sockets: bool = False,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        """Create a cluster that starts when the `async with` block is entered.

        Args:
            kind: `master-slave`, or `dledger` for three members that elect their master.
            sockets: whether other processes can connect, over free ports of the loopback interface. By
                default only sessions of `client` can, and they use no sockets.
            properties: the configuration of each broker, with the keys of RocketMQ's properties file. The
                master of a slave is a SYNC_MASTER unless `brokerRole` is ASYNC_MASTER.

        Raises:
            ValueError: an unknown kind.
            ConfigError: an unknown key, a key that the cluster sets itself, or a wrong value.
        """
        if kind not in list(ClusterKind):
            raise ValueError(f"kind {kind!r}: expected {' or '.join(ClusterKind)}")
        self._kind = ClusterKind(kind)
        self._sockets = sockets
        self._config = cluster_members.configuration(self._kind, properties or {})
        self._faults = RequestFaults()
        self._claims = GroupClaims()
        self._members: dict[str, Member] = {}
        self._clock: VirtualTime | None = None
        self._network: Network | None = None
        self._name_server: NameServer | None = None

    @property
    def name_server(self) -> str:
        """The address of the name server, as HOST:PORT. Other processes can use it only with `sockets`."""
        return str(_running(self._name_server).address)

    @property
    def clock(self) -> VirtualTime:
        """The time of the brokers and their clients, which `advance` moves."""
        return _running(self._clock)

    @property
    def master(self) -> str | None:
        """The name of the broker that takes messages; None while there is none."""
        return next((each.name for each in self._members.values() if each.is_master), None)

    @property
    def running(self) -> list[str]:
        """The names of the brokers that run: master and slave, or n0, n1 and n2."""
        return [each.name for each in self._members.values() if each.broker is not None]

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def start(self) -> None:
        """Start all servers, and wait until a master takes messages and the others follow it.

        The wait takes time of the event loop's clock: about a second, which passes at once.

        Raises:
            ClusterError: the brokers did not find each other in time.
            RuntimeError: it runs already, or it was stopped.
        """
        if self._clock is not None:
            raise RuntimeError("an embedded cluster starts once")
        self._clock = of_loop(asyncio.get_running_loop())
        self._clock.limit_step(_STEP_S)
        self._network = AsyncioNetwork() if self._sockets else SimulatedNetwork()
        runtime = Runtime(self._clock, SimulatedDisk(), self._network, random.Random(), inline)
        name_server = NameServer(NameServerConfig(port=0, kv_path="kvConfig.json"), runtime)
        await name_server.start()
        self._name_server = name_server
        try:
            await self._start_members()
            await self._until(self._is_complete, "the brokers did not find each other")
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        """Stop all servers. Nothing happens if they do not run."""
        for member in self._members.values():
            await self._stop_member(member, kill=True)  # a clean stop would hand over to the next one
        name_server, self._name_server = self._name_server, None
        if name_server is not None:
            await name_server.stop()
            self.clock.release_step(_STEP_S)

    async def stop_master(self, *, kill: bool = False) -> str:
        """Stop the broker that takes messages, and return its name.

        Three members elect another master before this returns, which takes seconds of the event loop's
        clock that pass at once. Without a majority of running members, and in a cluster of master and slave,
        no broker takes messages until one is started again. Consumers can read from the slave.

        Args:
            kill: end it as a crash does: it answers no pending request and hands nothing over.

        Raises:
            ClusterError: there is no master, or no other one was elected in time.
        """
        name = self.master
        if name is None:
            raise ClusterError(f"no broker takes messages; running: {', '.join(self.running) or 'none'}")
        await self._stop_member(self._members[name], kill=kill)
        if len(self.running) > len(self._members) // 2:
            await self._until(self._is_complete, "no other master was elected")
        else:  # the last member may have taken over, and needs a moment to miss the others
            await self._until(lambda: self.master is None, "a broker without a majority stays master")
        return name

    async def start_member(self, name: str) -> None:
        """Start a stopped broker again, with its store and its address; wait until the cluster is complete.

        Raises:
            ValueError: an unknown name.
            ClusterError: it runs already, or the brokers did not find each other in time.
        """
        if name not in self._members:
            raise ValueError(f"{name!r} is not a broker of this cluster: expected {', '.join(self._members)}")
        if name in self.running:
            raise ClusterError(f"{name} runs already")
        await self._start_member(self._members[name])
        await self._until(self._is_complete, "the brokers did not find each other")

    async def in_sync(self) -> None:
        """Wait until all running brokers have the messages, topics, groups and offsets of the master.

        This takes 25 seconds of the event loop's clock, which pass at once.

        Raises:
            ClusterError: there is no master, or a broker does not follow it.
        """
        await self._until(self._is_complete, "the brokers do not follow a master")
        await self._pass(_TABLES_S)
        await self._until(self._has_equal_logs, "a broker does not have all messages of the master")

    def client(self, client_id: str | None = None) -> Session:
        """Return a session with this cluster, to be used in `async with`. Each one is another client."""
        address = _running(_running(self._name_server).address)
        runtime = Runtime(self.clock, SimulatedDisk(), _running(self._network), random.Random(), inline)
        return Session([address], runtime, client_id, claims=self._claims)

    def messages(self, topic: str, *, member: str | None = None) -> list[ReceivedMessage]:
        """Return all messages of the topic that a broker has stored, by queue and offset.

        `member` is the name of a running broker; by default the master, or any running broker without one.
        """
        name = member or self.master or next(iter(self.running), "")
        if name not in self.running:
            running = ", ".join(self.running) or "none"
            raise ClusterError(f"{name or 'a broker'} does not run; running: {running}")
        return stored_messages(_running(self._members[name].broker), topic)

    async def expect(self, topic: str, count: int = 1, *, within_s: float = 5.0) -> list[ReceivedMessage]:
        """Wait until the topic has `count` messages, and return them.

        Raises:
            ExpectationError: it has more, or after `within_s` seconds it has fewer.
        """
        return await expect_messages(self.messages, topic, count, within_s)

    def fail_next(
        self,
        operation: str,
        times: int = 1,
        *,
        code: str = "SYSTEM_BUSY",
        remark: str = "ordered by the test",
        executed: bool = False,
    ) -> None:
        """Let the next requests of a kind fail at any broker, as EmbeddedBroker.fail_next."""
        self._faults.add(operation, times, fault(code, remark, is_executed=executed))

    async def _start_members(self) -> None:
        for attempt in range(_START_ATTEMPTS):
            found = cluster_members.members(self._kind, self._config, sockets=self._sockets)
            self._members = {each.name: each for each in found}
            try:
                for member in found:
                    await self._start_member(member)
            except OSError:
                for member in found:
                    await self._stop_member(member)
                if attempt == _START_ATTEMPTS - 1:
                    raise
            else:
                return

    async def _start_member(self, member: Member) -> None:
        names = (_running(_running(self._name_server).address),)
        config = replace(member.config, name_servers=names)
        runtime = member.runtime(self.clock, _running(self._network))
        broker = Broker(config, runtime, around=self._faults.around)
        await broker.start()
        member.broker = broker

    async def _stop_member(self, member: Member, *, kill: bool = False) -> None:
        broker, member.broker = member.broker, None
        if broker is None:
            return
        if kill:
            broker.kill()
            member.disk.crash_process()
            await asyncio.sleep(0)  # the cancelled tasks end
        else:
            stopping = asyncio.ensure_future(broker.stop())
            await self._until(stopping.done, f"{member.name} did not stop")  # it waits for other members
            stopping.result()

    def _is_complete(self) -> bool:
        """Whether a master takes messages and all running brokers are registered and follow it."""
        running = [each for each in self._members.values() if each.broker is not None]
        info = _running(self._name_server).table.cluster_info().broker_addr_table
        known = info[self._config.name].broker_addrs if self._config.name in info else {}
        master = next((each for each in running if each.is_master), None)
        if master is None or known.get(0) != str(master.address):
            return False
        clients = [each.broker.replicas.client for each in running if each.broker is not None]
        follows = all(client is None or client.is_following for client in clients)
        return follows and {str(each.address) for each in running} <= set(known.values())

    def _has_equal_logs(self) -> bool:
        ends = {each.broker.store.log_end for each in self._members.values() if each.broker is not None}
        return len(ends) == 1

    async def _until(self, is_reached: Callable[[], bool], otherwise: str) -> None:
        """Let time pass until the condition holds."""
        until = time.monotonic() + _WAIT_S
        while not is_reached():
            if time.monotonic() > until:
                running = ", ".join(self.running) or "none"
                raise ClusterError(f"{otherwise} within {_WAIT_S:.0f} s; running: {running}")
            await self._pass(_WAIT_STEP_S)
            await asyncio.sleep(_PAUSE_S)  # sockets need the machine's time

    async def _pass(self, seconds: float) -> None:
        """Let this time pass: at once if the loop's time can be advanced."""
        try:
            await self.clock.advance(seconds=seconds)
        except TimeError:
            await asyncio.sleep(seconds)


def _running(part: T | None) -> T:
    """Return a part of the cluster, which exists while it runs. Raises RuntimeError if it does not."""
    if part is None:
        raise RuntimeError("the cluster is not running: use it inside `async with`")
    return part
