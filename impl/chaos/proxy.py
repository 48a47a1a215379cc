"""The proxy: a port for the name server, a port for each broker that a route names, and the faults.

All clients must use the proxy's name server. Its answers name the proxy's ports, so that all further traffic
passes the proxy, too.
"""

import asyncio
import itertools
import logging
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

import msgspec

from mqproof.impl.chaos.broker_port import BrokerPort, Shared
from mqproof.impl.chaos.capture import CaptureWriter, Injected, Recorded
from mqproof.impl.chaos.draws import Draws, Firing
from mqproof.impl.chaos.plan import Plan
from mqproof.impl.chaos.relayed_connection import injected_entry
from mqproof.impl.chaos.route_rewriting import BrokerPlace, places_in, with_addresses
from mqproof.impl.remoting.channel import RemotingError
from mqproof.impl.remoting.client import RemotingClient
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.command import Command, new_request
from mqproof.impl.runtime.network import Address
from mqproof.impl.runtime.runtime import Runtime

_log = logging.getLogger(__name__)

PORTS_MAX: Final = 1000
"""The most brokers that the proxy stands in front of."""
KEPT_FAULTS_MAX: Final = 100_000
"""The most faults that are kept in memory; later ones replace the oldest."""
_ASK_S: Final = 5.0


class UpstreamError(Exception):
    """The name server in front of which the proxy is to stand cannot be used. The message names it."""


@dataclass(frozen=True, slots=True)
class ChaosConfig:
    """Where the proxy listens, and the name server that it stands in front of."""

    upstream: Address
    host: str = "127.0.0.1"
    port: int = 0
    """The port for clients that look for a name server; 0 is any free one."""
    broker_port: int = 0
    """The port of the first broker; the others follow it. 0: any free ones."""
    advertised_host: str = ""
    """The host that routes name; by default `host`."""


class ChaosProxy:
    """A running proxy. Its faults follow a plan."""

    def __init__(
        self, config: ChaosConfig, plan: Plan, runtime: Runtime, capture: CaptureWriter | None = None
    ) -> None:
        """Create a proxy that `start` starts. `capture`: record what the clients see."""
        self.draws = Draws(plan)
        self.injected: deque[Injected] = deque(maxlen=KEPT_FAULTS_MAX)
        """The faults that took effect, in order."""
        self._config = config
        self._runtime = runtime
        self._capture = capture
        self._shared = Shared(
            runtime.remoting,
            self.draws,
            capture,
            config.host,
            config.advertised_host or config.host,
            self._answered,
            self._note,
            itertools.count(1).__next__,
        )
        self._name_server = BrokerPort(self._shared, "", -1, config.upstream, config.port)
        self._ports: dict[str, BrokerPort] = {}
        """The ports of the brokers, by the address of the broker."""
        self._opening = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> Address:
        """Look for the brokers, and listen. Returns the address of the proxy's name server.

        Raises:
            UpstreamError: the name server does not answer.
            OSError: a port is in use.
        """
        places = await self._brokers()
        address = await self._name_server.listen()
        try:
            await self._listen_for(places)
        except OSError:
            await self.stop()
            raise
        return address

    async def stop(self) -> None:
        """Close all ports and connections."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for port in (self._name_server, *self._ports.values()):
            port.close()
        if self._capture is not None:
            capture, self._capture = self._capture, None
            capture.close()

    def calm(self) -> None:
        """Inject no more faults, and end those in progress. The proxy goes on."""
        self.draws.is_calm = True
        for port in self._ports.values():
            port.calm()

    @property
    def brokers(self) -> dict[str, Address]:
        """The address for clients of each broker, by the address of the broker."""
        return {upstream: port.address for upstream, port in self._ports.items()}

    async def _brokers(self) -> list[BrokerPlace]:
        """Ask the name server for the brokers. Raises UpstreamError."""
        client = RemotingClient(self._runtime.remoting)
        request = new_request(RequestCode.GET_BROKER_CLUSTER_INFO)
        try:
            answer = await client.invoke(self._config.upstream, request, _ASK_S)
            if answer.code != ResponseCode.SUCCESS:
                raise ValueError(f"code {answer.code}: {answer.remark or 'no remark'}")
            return places_in(request.code, answer.body)
        except (RemotingError, ValueError) as error:
            raise UpstreamError(f"name server {self._config.upstream}: {error}") from None
        finally:
            await client.close()

    async def _listen_for(self, places: Iterable[BrokerPlace]) -> None:
        async with self._opening:
            for place in places:
                if str(place.address) in self._ports:
                    continue
                if len(self._ports) >= PORTS_MAX:
                    raise OSError(f"more than {PORTS_MAX} brokers")
                wanted = self._config.broker_port and self._config.broker_port + len(self._ports)
                port = BrokerPort(self._shared, place.name, place.broker_id, place.address, wanted)
                await port.listen()
                self._ports[str(place.address)] = port
                _log.info("%s, %s, is at %s", place.name, place.address, port.address)

    def _answered(self, code: int, answer: Command, resume: Callable[[Command], None]) -> Command | None:
        """Return the answer with the proxy's addresses, or None if ports must be opened before."""
        if answer.code != ResponseCode.SUCCESS:
            return answer
        places = places_in(code, answer.body)
        if all(str(place.address) in self._ports for place in places):
            return self._rewritten(answer)
        task = asyncio.get_running_loop().create_task(self._answer_later(places, answer, resume))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return None

    async def _answer_later(
        self, places: list[BrokerPlace], answer: Command, resume: Callable[[Command], None]
    ) -> None:
        try:
            await self._listen_for(places)
        except OSError as error:
            _log.error("no port for a broker: %s", error)
            remark = f"the chaos proxy has no port for a broker: {error}"
            resume(msgspec.structs.replace(answer, code=ResponseCode.SYSTEM_ERROR, body=b"", remark=remark))
            return
        resume(self._rewritten(answer))

    def _rewritten(self, answer: Command) -> Command:
        new = {upstream: str(port.address) for upstream, port in self._ports.items()}
        return msgspec.structs.replace(answer, body=with_addresses(answer.body, new))

    def _note(self, firing: Firing, connection: int) -> None:
        self.draws.took_effect(firing)
        entry = injected_entry(firing, self._runtime.clock.now_us() * 1000)
        self.injected.append(entry)
        if self._capture is not None:
            self._capture.write_object(Recorded.FAULT, connection, entry)
