"""A broker and its clients as a target for behaviours of RequestReply.

The broker's table of producers and its processor of replies are real, and so are the clients that request and
the consumer that replies. What they send to each other arrives, is answered or is lost when the script says
so. The time limit of a request is over when the script says so.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, Final, TypeVar, cast

from mqproof.conformance.behaviours.corpus import Script, Stimulus, Variables, bounded
from mqproof.conformance.behaviours.subject import DeviationError
from mqproof.conformance.subjects.stepped.delayed_requests import (
    Held,
    HeldRequests,
    at_rest,
    session,
)
from mqproof.conformance.subjects.stepped.step_loop import StepLoop
from mqproof.impl.broker.config import BrokerConfig
from mqproof.impl.broker.processors import replies
from mqproof.impl.broker.services import Services
from mqproof.impl.broker.state.clients import ClientTable
from mqproof.impl.broker.state.clients import Member as Registered
from mqproof.impl.client.messages.compose import new_message
from mqproof.impl.client.model import MessageQueue, NoReplyError, ReceivedMessage, ReplyError, SendError
from mqproof.impl.client.producing.producer import Producer, ProducerConfig
from mqproof.impl.remoting import headers, java_json
from mqproof.impl.remoting.bodies import PERM_READ_WRITE, BrokerData, Heartbeat, QueueData, TopicRoute
from mqproof.impl.remoting.channel import Channel, ConnectionLostError
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.command import Command
from mqproof.impl.remoting.message import CLUSTER, CORRELATION_ID, Message, StoredMessage, decode_properties
from mqproof.impl.runtime.network import Address
from mqproof.impl.runtime.runtime import Runtime
from mqproof.reference.request_reply import NONE, Config

T = TypeVar("T")

_QUEUE: Final = MessageQueue("T", "broker-a", 0)
_CLUSTER: Final = "DefaultCluster"
_LIMIT_MS: Final = 20_000
"""The time between two ends of time limits: no other timer of a client is as long."""
_PATIENT_MS: Final = 10**12
_SENDS: Final = (RequestCode.SEND_MESSAGE, RequestCode.SEND_MESSAGE_V2)


@dataclass(frozen=True, slots=True, eq=False)
class _Push:
    """A reply on its way to a client."""

    call: str
    to: str
    command: Command
    confirmation: "asyncio.Future[Command]"


class _Connection:
    """The broker's end of the connection of a client, on which it pushes replies."""

    takes = True
    is_open = True
    remote = Address("127.0.0.1", 1)

    def __init__(self, client: str, target: "SteppedRequests") -> None:
        self._client = client
        self._target = target

    async def invoke(self, command: Command, timeout_s: float) -> Command:
        del timeout_s  # the script decides how long it takes
        properties = decode_properties(command.fields["properties"])
        call = self._target.call_of(properties[CORRELATION_ID])
        push = _Push(call, self._client, command, asyncio.get_running_loop().create_future())
        self._target.pushes.append(push)
        try:
            return await push.confirmation
        finally:
            self._target.pushes.remove(push)


class _Client:
    """One process of a client, with its requests that wait."""

    def __init__(self, name: str, runtime: Runtime) -> None:
        self.requests = HeldRequests(self._at_once)
        self.session = session(self.requests, runtime, name)
        self.producer = Producer(self.session, ProducerConfig(f"group_{name}", retries=0))
        self.heartbeat: Heartbeat | None = None
        self.calls: dict[str, asyncio.Task[Message]] = {}

    async def send_heartbeat(self) -> Heartbeat:
        await self.session.routes.refresh(_QUEUE.topic)
        await self.session.heartbeat()
        await at_rest()
        assert self.heartbeat is not None
        return self.heartbeat

    def sent(self, correlation_id: str) -> Held | None:
        """Return the send of a request that is in progress."""
        for held in self.requests.held:
            if held.request.code in _SENDS and _properties(held.request)[CORRELATION_ID] == correlation_id:
                return held
        return None

    def _at_once(self, request: Command) -> Command | None:
        match request.code:
            case RequestCode.GET_ROUTEINFO_BY_TOPIC:
                broker = BrokerData({0: "127.0.0.1:10911"}, _QUEUE.broker_name, _CLUSTER)
                queues = QueueData(_QUEUE.broker_name, PERM_READ_WRITE, 1, write_queue_nums=1)
                return request.answer(
                    ResponseCode.SUCCESS, body=java_json.write(TopicRoute([broker], [queues]))
                )
            case RequestCode.HEART_BEAT:
                self.heartbeat = java_json.read(Heartbeat, request.body)
                return request.answer(ResponseCode.SUCCESS)
            case _:
                return None


class SteppedRequests:
    """Drives a broker and clients through a behaviour of RequestReply.

    Names of variables and actions are those of RequestReply.tla.
    """

    def open(self, script: Script) -> None:
        self._steps = script.steps
        self._config: Config = bounded("RequestReply", script.configuration)
        self._loop = StepLoop("mqproof.impl.client")
        self._run = self._loop.run
        self._broker = SimpleNamespace(
            config=BrokerConfig(cluster=_CLUSTER, store_replies=False),
            clients=ClientTable(),
            is_slave=False,
            runtime=self._loop.runtime,
            address=Address("127.0.0.1", 10911),
            tracing_fields=dict,
        )
        self._clients = {name: _Client(name, self._loop.runtime) for name in self._config.clients}
        self._connections: dict[str, _Connection] = {}
        self._consumer = _Client("consumer", self._loop.runtime)
        self._run(self._consumer.session.routes.refresh(_QUEUE.topic))
        self.pushes: list[_Push] = []
        self._caller: dict[str, str] = {}
        self._call: dict[str, asyncio.Task[Message]] = {}
        self._ids: dict[str, str] = {}
        """The correlation id of each request."""
        self._properties: dict[str, Mapping[str, str]] = {}
        self._stored: set[str] = set()
        self._lost: set[str] = set()
        self._received: set[str] = set()
        self._confirmed: set[str] = set()
        self._ends = [step.parameters[0] for step in script.steps if step.action == "Expire"]

    def take(self, at: int) -> None:
        step = self._steps[at]
        self._run(_ACTIONS[step.action](self, *step.parameters))

    def look(self) -> Variables:
        calls = self._config.calls
        return {
            "registered": sorted(filter(self._is_registered, self._config.clients)),
            "stored": sorted(self._stored),
            "pushes": sorted(({"call": p.call, "to": p.to} for p in self.pushes), key=str),
            "confirmed": sorted(self._confirmed),
            "caller": [self._caller.get(call, NONE) for call in calls],
            "outcome": [self._outcome(call) for call in calls],
            "got": [self._got(call) for call in calls],
            "results": [int(self._outcome(call) in ("reply", "refused", "timeout")) for call in calls],
            "received": sorted(self._received),
        }

    def refuses(self, step: Stimulus) -> bool:
        tried = _REFUSALS.get(step.action)
        return tried is not None and bool(self._run(tried(self, *step.parameters)))

    def close(self) -> None:
        self._loop.close()

    def call_of(self, correlation_id: str) -> str:
        return next(call for call, known in self._ids.items() if known == correlation_id)

    # Connections

    async def _connect(self, client: str) -> None:
        heartbeat = await self._clients[client].send_heartbeat()
        connection = self._connections[client] = _Connection(client, self)
        member = Registered(client, "PYTHON", 1, 0)
        self._broker.clients.heartbeat(cast(Channel, connection), heartbeat, member)

    async def _disconnect(self, client: str) -> None:
        self._broker.clients.channel_closed(cast(Channel, self._connections.pop(client)))
        for push in [push for push in self.pushes if push.to == client]:
            push.confirmation.set_exception(ConnectionLostError("the connection is closed"))
        await at_rest()

    async def _restart(self, client: str) -> None:
        """End the process of the client, and its requests with it."""
        for call, task in self._call.items():
            if self._caller[call] == client and not task.done():
                self._lost.add(call)
                task.cancel()
        await at_rest()
        if client in self._connections:
            await self._disconnect(client)
        self._clients[client] = _Client(client, self._loop.runtime)

    # Requests

    async def _request(self, client: str, call: str) -> None:
        limit_ms = _PATIENT_MS
        if call not in self._config.patient:
            last = len(self._ends)
            limit_ms = _LIMIT_MS * (1 + (self._ends.index(call) if call in self._ends else last))
        message = new_message(_QUEUE.topic, b"?", keys=call)
        requesting = self._clients[client].producer.request(message, _QUEUE, timeout_ms=limit_ms)
        self._call[call], self._caller[call] = asyncio.ensure_future(requesting), client
        await at_rest()
        sent = [held for held in self._clients[client].requests.held if held.request.code in _SENDS]
        new = [held for held in sent if _properties(held.request)[CORRELATION_ID] not in self._ids.values()]
        if len(new) != 1:
            raise DeviationError(f"{client} did not send the request")
        self._properties[call] = _properties(new[0].request)
        self._ids[call] = self._properties[call][CORRELATION_ID]

    async def _store(self, call: str) -> None:
        """Store a request. Its answer reaches the client if the client still waits for it."""
        held = self._clients[self._caller[call]].sent(self._ids[call])
        if held is not None:
            fields = headers.write_send_response(
                msg_id="0" * 32, queue_id=0, queue_offset=len(self._stored), transaction_id=None
            )
            held.answer(held.request.answer(ResponseCode.SUCCESS, fields))
            await at_rest()
        self._stored.add(call)

    async def _refuse(self, call: str) -> None:
        held = self._clients[self._caller[call]].sent(self._ids[call])
        if held is None:
            raise DeviationError(f"the send of {call} is not in progress")
        held.answer(held.request.answer(ResponseCode.MESSAGE_ILLEGAL, remark="scripted"))
        await at_rest()

    async def _expire(self, call: str) -> None:
        await asyncio.wait([self._call[call]], timeout=_LIMIT_MS * (2 + len(self._ends)) / 1000)
        await at_rest()

    # Replies

    async def _reply(self, call: str) -> None:
        before = len(self.pushes)
        ending = await self._replying(call)
        if len(self.pushes) != before + 1:
            raise DeviationError(f"the reply to {call} was not pushed: {ending.done() and ending.result()}")

    async def _replying(self, call: str) -> "asyncio.Task[str]":
        """Reply as a consumer of the request; return the task that ends with the reply's error."""
        stored = StoredMessage(
            Message(_QUEUE.topic, b"?", {**self._properties[call], CLUSTER: _CLUSTER}), 0, 0, 0, 1, 0
        )
        request = ReceivedMessage(stored, _QUEUE, 0, 0, 1)
        replying = asyncio.ensure_future(self._consumer.producer.reply(request, b"!", timeout_ms=_PATIENT_MS))
        await at_rest()
        held = next(each for each in reversed(self._consumer.requests.held) if each.request.code in _REPLIES)
        ending = asyncio.ensure_future(self._answered(held, replying, call))
        await at_rest()
        return ending

    async def _answered(self, held: Held, replying: "asyncio.Task[None]", call: str) -> str:
        """Let the broker process a reply, and give its answer to the consumer. Returns the error, if any."""
        connection = cast(Channel, SimpleNamespace(remote=Address("127.0.0.1", 2)))
        answer = await replies.send_reply(cast(Services, self._broker), held.request, connection)
        assert answer is not None
        held.answer(answer)
        try:
            await replying
        except ReplyError as error:
            return str(error)
        self._confirmed.add(call)
        return ""

    async def _receive(self, client: str, call: str, arrives: bool) -> None:
        push = next(push for push in self.pushes if (push.call, push.to) == (call, client))
        answer = self._clients[client].session.replies.pushed(push.command, cast(Channel, None))
        assert isinstance(answer, Command), "a reply is confirmed at once"
        self._received.add(call)
        if arrives:
            push.confirmation.set_result(answer)
        else:
            push.confirmation.set_exception(ConnectionLostError("the confirmation is lost"))
        await at_rest()

    # Disabled actions

    async def _refuses_reply(self, call: str) -> bool:
        """Reply to a request whose client is not connected: the sender of the reply gets an error."""
        if call not in self._stored or self._is_registered(self._caller[call]):
            return False
        ending = await self._replying(call)
        if not ending.done() or not ending.result():
            raise DeviationError(f"the reply to {call} got no error, although {self._caller[call]} is gone")
        return True

    async def _refuses_expiry(self, call: str) -> bool:
        """Let much time pass: a patient request still waits."""
        if call not in self._config.patient or self._outcome(call) != "waiting" or len(self._call) > 1:
            return False
        await asyncio.sleep(_LIMIT_MS / 1000)
        return True

    # Helper methods

    def _is_registered(self, client: str) -> bool:
        return self._broker.clients.producer_channel(client) is not None

    def _outcome(self, call: str) -> str:
        task = self._call.get(call)
        if task is None:
            return "new"
        if call in self._lost:
            return "lost"
        if not task.done():
            return "waiting"
        match task.exception():
            case None:
                return "reply"
            case NoReplyError():
                return "timeout"
            case SendError():
                return "refused"
            case error:
                raise DeviationError(f"{call} ended with {error!r}")

    def _got(self, call: str) -> str:
        if self._outcome(call) != "reply":
            return NONE
        return self.call_of(self._call[call].result().properties[CORRELATION_ID])


def _properties(request: Command) -> Mapping[str, str]:
    return decode_properties(headers.read_send_v2(request.fields).properties or "")


_REPLIES: Final = (RequestCode.SEND_REPLY_MESSAGE, RequestCode.SEND_REPLY_MESSAGE_V2)
_ACTIONS: Final[Mapping[str, Any]] = {
    "Connect": SteppedRequests._connect,
    "Disconnect": SteppedRequests._disconnect,
    "Restart": SteppedRequests._restart,
    "Request": SteppedRequests._request,
    "Store": SteppedRequests._store,
    "Refuse": SteppedRequests._refuse,
    "Expire": SteppedRequests._expire,
    "Reply": SteppedRequests._reply,
    "Receive": SteppedRequests._receive,
}
_REFUSALS: Final[Mapping[str, Any]] = {
    "Reply": SteppedRequests._refuses_reply,
    "Expire": SteppedRequests._refuses_expiry,
}
"""Functions that try a disabled action; they return False if it could not be tried."""
