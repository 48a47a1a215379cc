"""Name servers and brokers in one simulated network that record every request, and answer as scripted."""

import asyncio
import json
from collections import defaultdict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from mqproof.impl.remoting.channel import Channel, Reply
from mqproof.impl.remoting.codes import RequestCode
from mqproof.impl.remoting.command import Command, new_request
from mqproof.impl.remoting.server import RemotingServer
from mqproof.impl.runtime.network import Address, SimulatedNetwork
from mqproof.impl.runtime.runtime import Runtime, simulated
from mqproof.impl.runtime.simulated_loop import SimulatedLoop

HOST: Final = "127.0.0.1"
PORTS: Final = {"names-1": 9876, "names-2": 9877, "a": 10911, "b": 10921, "a-slave": 10912}
"""The port of each server. `a` and `b` are masters, `a-slave` is the slave of `a` with id 1."""
ROUTE: Final = RequestCode.GET_ROUTEINFO_BY_TOPIC
MESSAGE_ID: Final = "7F00000100002A9F00000000000004D2"
"""The id of a stored message: position 1234 of the log of the broker at port 10911."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A request as a server received it."""

    server: str
    code: int
    fields: dict[str, str]
    body: bytes
    at_s: float
    is_oneway: bool = False
    remark: str | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    code: int = 0
    fields: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    remark: str | None = None
    after_s: float = 0.0
    """The time until the answer; infinite for none."""


SILENCE: Final = Answer(after_s=float("inf"))


class ScriptedServers:
    """All servers of one network. Without a script, they answer as if there were nothing to read."""

    def __init__(self, loop: SimulatedLoop, seed: int) -> None:
        self.network = SimulatedNetwork()
        self._loop = loop
        self._seed = seed
        self._servers: dict[str, RemotingServer] = {}
        self._channels: dict[str, Channel] = {}
        self._seen: list[Seen] = []
        self._never = asyncio.Event()
        self._scripts: defaultdict[tuple[str, int], list[Answer]] = defaultdict(list)
        self.routes: dict[str, bytes] = {}
        """The route of each topic that exists."""
        self.members: list[str] = []
        self.offsets: dict[tuple[str, int], int] = {}
        """The committed offset by topic and queue."""
        self.replies: dict[int, Callable[[Seen], Answer]] = {}
        """What computes the answers to a request code, if nothing else is scripted."""

    async def start(self) -> None:
        for name in PORTS:
            await self.start_one(name)

    async def start_one(self, name: str) -> None:
        """Start a server, or start it again."""
        server = RemotingServer(self.runtime(name).remoting, partial(self._answer, name))
        self._servers[name] = server
        await server.start(HOST, PORTS[name])

    async def stop_one(self, name: str) -> None:
        await self._servers.pop(name).stop(0.0)

    async def stop(self) -> None:
        for name in list(self._servers):
            await self.stop_one(name)

    def runtime(self, name: str) -> Runtime:
        """Return the runtime of one process."""
        return simulated(self._loop, self.network, hash_of(name) + self._seed)

    def script(self, server: str, code: int, *answers: Answer) -> None:
        """Give the next requests with this code at the server these answers."""
        self._scripts[server, code] += answers

    def take(self, *codes: int) -> list[Seen]:
        """Return the requests with one of these codes, or all, since the last call, and forget them all."""
        seen, self._seen = self._seen, []
        return [each for each in seen if not codes or each.code in codes]

    async def push(self, server: str, code: int, fields: dict[str, str], body: bytes = b"") -> Command:
        """Send a request to the client that sent to this server last, and return its answer."""
        return await self._channels[server].invoke(new_request(code, fields, body), 5.0)

    def push_oneway(self, server: str, code: int, fields: dict[str, str], body: bytes = b"") -> None:
        self._channels[server].send_oneway(new_request(code, fields, body, oneway=True))

    def hang_up(self, server: str) -> None:
        """Close the connection of the client that sent to this server last."""
        self._channels[server].close()

    def _answer(self, server: str, request: Command, channel: Channel) -> Reply | Awaitable[Reply]:
        self._channels[server] = channel
        seen = Seen(
            server, request.code, dict(request.fields), request.body, self._loop.time(), request.is_oneway,
            request.remark,
        )  # fmt: skip
        self._seen.append(seen)
        waiting = self._scripts[server, request.code]
        answer = waiting.pop(0) if waiting else self._usual(seen)
        if request.is_oneway:
            return None
        return self._after(request, answer) if answer.after_s else _reply(request, answer)

    async def _after(self, request: Command, answer: Answer) -> Reply:
        if answer.after_s == float("inf"):
            await self._never.wait()
        await asyncio.sleep(answer.after_s)
        return _reply(request, answer)

    def _usual(self, seen: Seen) -> Answer:
        fields = seen.fields
        if seen.code in self.replies:
            return self.replies[seen.code](seen)
        match seen.code:
            case RequestCode.GET_ROUTEINFO_BY_TOPIC:
                body = self.routes.get(fields["topic"])
                return Answer(17, remark="no such topic") if body is None else Answer(body=body)
            case RequestCode.GET_CONSUMER_LIST_BY_GROUP:
                return Answer(body=json.dumps({"consumerIdList": self.members}).encode())
            case RequestCode.PULL_MESSAGE:
                offset = fields["queueOffset"]
                held_s = int(fields["suspendTimeoutMillis"]) / 1000
                return Answer(19, pulled(0, int(offset), 0, int(offset)), after_s=held_s)
            case RequestCode.QUERY_CONSUMER_OFFSET:
                known = self.offsets.get((fields["topic"], int(fields["queueId"])))
                return Answer(22) if known is None else Answer(fields={"offset": str(known)})
            case RequestCode.UPDATE_CONSUMER_OFFSET:
                self.offsets[fields["topic"], int(fields["queueId"])] = int(fields["commitOffset"])
            case (
                RequestCode.GET_MAX_OFFSET
                | RequestCode.GET_MIN_OFFSET
                | RequestCode.SEARCH_OFFSET_BY_TIMESTAMP
            ):
                return Answer(fields={"offset": "0"})
            case RequestCode.LOCK_BATCH_MQ:
                return Answer(body=json.dumps({"lockOKMQSet": json.loads(seen.body)["mqSet"]}).encode())
            case RequestCode.SEND_MESSAGE_V2 | RequestCode.SEND_BATCH_MESSAGE:
                return stored(int(fields["e"]), 0)
            case RequestCode.GET_CONSUMER_RUNNING_INFO:
                return Answer(206, remark="no such consumer")
        return Answer()


def stored(queue_id: int, queue_offset: int, code: int = 0, **more: str) -> Answer:
    """Return the answer to a send that stored its message."""
    fields = {"msgId": MESSAGE_ID, "queueId": str(queue_id), "queueOffset": str(queue_offset)}
    return Answer(code, {**fields, **more})


def pulled(suggested: int, following: int, least: int, most: int) -> dict[str, str]:
    """Return the fields of an answer to a pull."""
    values = {
        "suggestWhichBrokerId": suggested, "nextBeginOffset": following, "minOffset": least,
        "maxOffset": most,
    }  # fmt: skip
    return {name: str(value) for name, value in values.items()}


def route(
    queues: dict[str, int], perm: int = 6, *, slave: bool = False, order: str | None = None,
    read: int | None = None, masters: bool = True,
) -> bytes:  # fmt: skip
    """Return the route of a topic with this number of queues at each broker, as a name server sends it."""

    def addresses(broker: str) -> dict[str, str]:
        found = {"0": f"{HOST}:{PORTS[broker]}"} if masters else {}
        return {**found, "1": f"{HOST}:{PORTS['a-slave']}"} if slave and broker == "a" else found

    body: dict[str, Any] = {
        "brokerDatas": [
            {"brokerAddrs": addresses(broker), "brokerName": f"broker-{broker}", "cluster": "c"}
            for broker in queues
        ],
        "filterServerTable": {},
        "queueDatas": [
            {
                "brokerName": f"broker-{broker}", "perm": perm,
                "readQueueNums": count if read is None else read, "topicSysFlag": 0, "writeQueueNums": count,
            }
            for broker, count in queues.items()
        ],
    }  # fmt: skip
    if order is not None:
        body["orderTopicConf"] = order
    return json.dumps(body).encode()


def address(name: str) -> Address:
    return Address(HOST, PORTS[name])


def hash_of(name: str) -> int:
    """Return a number of a name that is the same in each run."""
    return int.from_bytes(name.encode()[-4:], "big")


def _reply(request: Command, answer: Answer) -> Command:
    return request.answer(answer.code, dict(answer.fields), answer.body, answer.remark)
