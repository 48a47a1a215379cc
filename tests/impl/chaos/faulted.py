"""A world whose requests pass a chaos proxy, and a stub server that sends requests to its clients."""

import asyncio
from collections.abc import Awaitable
from typing import Final

from mqproof.impl.chaos.capture import CaptureWriter
from mqproof.impl.chaos.plan import Plan, parse
from mqproof.impl.chaos.proxy import ChaosConfig, ChaosProxy
from mqproof.impl.remoting import headers, java_json
from mqproof.impl.remoting.bodies import (
    BrokerData,
    ClusterInfo,
    ConsumerData,
    ConsumerIds,
    Heartbeat,
    QueueData,
    TopicRoute,
)
from mqproof.impl.remoting.channel import Channel, ConnectError, ConnectionLostError, RemotingError, Reply
from mqproof.impl.remoting.client import RemotingClient
from mqproof.impl.remoting.codes import RequestCode, ResponseCode, response_name
from mqproof.impl.remoting.command import Command, new_request
from mqproof.impl.remoting.headers import PullRequest, QueueRequest, SendRequest, UpdateOffsetRequest
from mqproof.impl.remoting.message import UNIQUE_KEY, encode_properties
from mqproof.impl.remoting.server import RemotingServer
from mqproof.impl.runtime.network import Address
from mqproof.impl.runtime.runtime import Runtime
from tests.impl.world import World

TOPIC: Final = "T"
GROUP: Final = "G"
QUEUES: Final = 4


def plan(fault: str = "", **options: object) -> Plan:
    """Return a plan of one fault that always acts, unless options say otherwise; of none without a name."""
    if not fault:
        return Plan()
    options.setdefault("probability", 1.0)
    lines = (f"{key} = {value!r}" for key, value in options.items())
    return parse(f'[[fault]]\nname = "{fault}"\nspacing = 0\n' + "\n".join(lines), "plan.toml")


class Faulted:
    """A broker, a proxy in front of it, and a client of the proxy. Requests are sent one by one."""

    def __init__(self, world: World, chosen: Plan, capture: CaptureWriter | None = None) -> None:
        self.world = world
        self.proxy = ChaosProxy(ChaosConfig(world.namesrv_address), chosen, world.runtime, capture)
        self.client = RemotingClient(world.runtime.remoting, self._received)
        self.received: list[int] = []
        """The codes of the requests that the broker sent to the client."""

    async def __aenter__(self) -> "Faulted":
        self.name_server = await self.proxy.start()
        (self.broker,) = self.proxy.brokers.values()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.client.close()
        await asyncio.sleep(0.1)
        await self.proxy.stop()

    def _received(self, request: Command, _: Channel) -> Reply:
        self.received.append(request.code)
        return request.answer(ResponseCode.SUCCESS)

    async def ask(self, code: int, header: headers.Header | None = None, body: bytes = b"") -> Command:
        fields = headers.write(header) if header else {}
        return await self.client.invoke(self.broker, new_request(code, fields, body), 30.0)

    async def send(self, text: str = "m", queue: int = 0, *, flags: int = 0) -> Command:
        half = {"TRAN_MSG": "true", "PGROUP": "P"} if flags else {}
        properties = encode_properties({UNIQUE_KEY: text, **half})
        header = SendRequest("P", TOPIC, "TBW102", QUEUES, queue, flags, 1, 0, properties)
        return await self.ask(RequestCode.SEND_MESSAGE, header, text.encode())

    async def pull(self, queue: int = 0, offset: int = 0, *, most: int = 32, flags: int = 4) -> Command:
        header = PullRequest(GROUP, TOPIC, queue, offset, most, flags, 0, 0, 0, "*", "TAG")
        return await self.ask(RequestCode.PULL_MESSAGE, header)

    async def commit(self, offset: int, queue: int = 0) -> Command:
        header = UpdateOffsetRequest(GROUP, TOPIC, queue, offset)
        return await self.ask(RequestCode.UPDATE_CONSUMER_OFFSET, header)

    async def committed(self, queue: int = 0) -> int:
        answer = await self.ask(
            RequestCode.QUERY_CONSUMER_OFFSET, headers.QueryOffsetRequest(GROUP, TOPIC, queue)
        )
        return int(answer.fields.get("offset", "-1"))

    async def members(self) -> list[str]:
        answer = await self.ask(RequestCode.GET_CONSUMER_LIST_BY_GROUP, headers.ConsumerGroupRequest(GROUP))
        return java_json.read(ConsumerIds, answer.body).consumer_id_list if answer.body else []

    async def join(self, client_id: str = "c1") -> Command:
        beat = Heartbeat(client_id, [ConsumerData(GROUP)])
        return await self.ask(RequestCode.HEART_BEAT, body=java_json.write(beat, standard=True))

    async def route(self) -> Command:
        request = new_request(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": TOPIC})
        return await self.client.invoke(self.name_server, request, 30.0)

    async def stored(self, queue: int = 0, topic: str = TOPIC) -> int:
        """Return how many messages the broker itself has in the queue."""
        answer = await self.world.ask(RequestCode.GET_MAX_OFFSET, QueueRequest(topic, queue))
        return int(answer.fields["offset"])


async def outcome(request: Awaitable[Command]) -> str:
    """Return the name of the response code, `lost` without an answer, or `refused` without a connection."""
    try:
        return response_name((await request).code)
    except ConnectionLostError:
        return "lost"
    except ConnectError:
        return "refused"
    except RemotingError as error:
        return type(error).__name__


class Stub:
    """A name server of two brokers, each of which sends a request to each client that sends a heartbeat."""

    def __init__(self, runtime: Runtime, pushed: int) -> None:
        self._server = RemotingServer(runtime.remoting, self._handle)
        self._pushed = pushed
        self.answers: list[float] = []
        """When clients answered a pushed request, in loop time."""
        self.address = Address("", 0)
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> "Stub":
        self.address = await self._server.start("127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._server.stop()

    def _handle(self, request: Command, channel: Channel) -> Reply:
        brokers = [
            BrokerData({0: str(self.address)}, "b1", "c"),
            BrokerData({0: "127.0.0.1:9"}, "b2", "c"),
        ]
        if request.code == RequestCode.GET_BROKER_CLUSTER_INFO:
            body = java_json.write(ClusterInfo({data.broker_name: data for data in brokers}, {}))
            return request.answer(ResponseCode.SUCCESS, body=body)
        if request.code == RequestCode.GET_ROUTEINFO_BY_TOPIC:
            queues = [QueueData(data.broker_name, 6, 4, 0, 4) for data in brokers]
            body = java_json.write(TopicRoute(brokers, queues))
            return request.answer(ResponseCode.SUCCESS, body=body)
        if request.code == RequestCode.HEART_BEAT:
            task = asyncio.get_running_loop().create_task(self._push(channel))
            self._tasks.add(task)
        return request.answer(ResponseCode.SUCCESS)

    async def _push(self, channel: Channel) -> None:
        if self._pushed == RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT:
            await channel.invoke(new_request(self._pushed), 30.0)
            self.answers.append(asyncio.get_running_loop().time())
        else:
            channel.send_oneway(new_request(self._pushed, {"consumerGroup": GROUP}, oneway=True))
