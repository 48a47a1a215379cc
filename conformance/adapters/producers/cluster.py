"""A simulated name server and brokers that know one topic and answer sends as configured."""

import asyncio
from collections.abc import Awaitable
from functools import partial
from typing import Final

from mqproof.conformance.suites.producers.target import SLOW_S, Attempt, Fate
from mqproof.impl.remoting import headers, java_json
from mqproof.impl.remoting.bodies import PERM_READ_WRITE, BrokerData, QueueData, TopicRoute
from mqproof.impl.remoting.channel import Channel, Reply
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.command import Command
from mqproof.impl.remoting.headers import SendRequest, SendResponse
from mqproof.impl.remoting.server import RemotingServer
from mqproof.impl.runtime.network import Address
from mqproof.impl.runtime.runtime import Runtime

_CLUSTER: Final = "conform"
_CODES: Final = {Fate.BUSY: ResponseCode.SYSTEM_BUSY, Fate.ILLEGAL: ResponseCode.MESSAGE_ILLEGAL}


class PlayedCluster:
    """A simulated name server with its brokers.

    `fates` has the answers to the next attempts, `attempts` the attempts received so far.
    """

    def __init__(self, runtime: Runtime, brokers: tuple[str, ...], queues: int) -> None:
        self._runtime = runtime
        self._queues = queues
        self._brokers = brokers
        self._addresses: dict[str, Address] = {}
        self.route = brokers
        self.fates: list[Fate] = []
        self.attempts: list[Attempt] = []
        self.requests: list[tuple[SendRequest, bytes]] = []
        """The header and the body of each attempt."""

    async def start(self) -> Address:
        """Start the servers; return the address of the name server."""
        for broker in self._brokers:
            self._addresses[broker] = await self._serve(broker)
        return await self._serve("")

    async def _serve(self, broker: str) -> Address:
        """Start a broker of that name, or the name server if the name is empty."""
        server = RemotingServer(self._runtime.remoting, partial(self._answer, broker))
        return await server.start("127.0.0.1", 0)

    def _answer(
        self,
        broker: str,
        request: Command,
        channel: Channel,  # noqa: ARG002
    ) -> Reply | Awaitable[Reply]:
        if request.code == RequestCode.GET_ROUTEINFO_BY_TOPIC:
            return request.answer(ResponseCode.SUCCESS, body=java_json.write(self._route()))
        if request.code == RequestCode.SEND_MESSAGE_V2:
            return self._take(broker, request)
        return request.answer(ResponseCode.SUCCESS)

    async def _take(self, broker: str, request: Command) -> Reply:
        header = headers.read_send_v2(dict(request.fields))
        self.requests.append((header, request.body))
        queue_id = header.queue_id
        fate = self.fates.pop(0) if self.fates else Fate.OK
        self.attempts.append(Attempt(broker, queue_id, asyncio.get_running_loop().time(), fate))
        if fate is Fate.SILENT:
            await asyncio.Event().wait()
        if fate is Fate.SLOW:
            await asyncio.sleep(SLOW_S)
        if fate in _CODES:
            return request.answer(_CODES[fate], remark=fate.value)
        response = SendResponse("7F00000100002A9F0000000000000000", queue_id, 0)
        return request.answer(ResponseCode.SUCCESS, headers.write(response))

    def _route(self) -> TopicRoute:
        queues = self._queues
        return TopicRoute(
            [
                BrokerData({0: str(self._addresses[broker])}, f"broker-{broker}", _CLUSTER)
                for broker in self.route
            ],
            [
                QueueData(f"broker-{broker}", PERM_READ_WRITE, queues, write_queue_nums=queues)
                for broker in self.route
            ],
        )
