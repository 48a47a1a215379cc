"""A broker with our clients as a target of the suite of requests and replies, and the reference as one.

The requesters are our own client, each process on a machine of its own in simulated time. The consumer that
replies is simulated, so that nothing is between the reply and its answer.
"""

import asyncio
import random
from dataclasses import dataclass, field
from typing import Final

from mqproof.conformance.adapters.brokers.environments import (
    Environment,
    OnEnvironment,
    SimulatedEnvironment,
    loop_time_s,
)
from mqproof.conformance.engine.broker_faults import BrokerFault
from mqproof.conformance.engine.targets import REFERENCE, TargetError
from mqproof.conformance.suites.request_reply.target import Answer, Capability, End, Result
from mqproof.impl.client.connection.records import read_records
from mqproof.impl.client.connection.session import Session
from mqproof.impl.client.model import MessageQueue, NoReplyError, ReceivedMessage, SendError
from mqproof.impl.client.producing.producer import Producer, ProducerConfig
from mqproof.impl.client.producing.request_reply import reply_to
from mqproof.impl.remoting import headers
from mqproof.impl.remoting.channel import ConnectError
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.command import Command
from mqproof.impl.remoting.headers import PULL_HAS_SUBSCRIPTION, PullRequest, PullResponse, SendRequest
from mqproof.impl.remoting.message import Message, encode_properties
from mqproof.impl.runtime.network import Address
from mqproof.reference import request_reply
from mqproof.reference.request_reply import Config

_LOOK_S: Final = 0.01
_ENDS: Final = {NoReplyError: End.TIMEOUT, SendError: End.REFUSED}


@dataclass(slots=True)
class _Process:
    """A process of a requesting client."""

    session: Session
    producer: Producer
    machine: str
    tasks: list[asyncio.Task[None]] = field(default_factory=list)


class BrokerRequestReply(OnEnvironment):
    """The target of the suite that drives a broker in an environment."""

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        able = {Capability.SIMULATED_TIME} if environment.is_simulated else set[Capability]()
        self.capabilities: frozenset[Capability | BrokerFault] = frozenset(able) | environment.faults

    def open(self) -> None:
        self._processes: dict[str, _Process] = {}
        self._machines = 0
        self._results: list[Result] = []
        self._stored: dict[str, ReceivedMessage] = {}
        self._next_offset = 0
        self._arrive()

    def request(self, call: str, client: str, limit_s: float) -> bool:
        return self._environment.run(self._request(call, client, limit_s))

    def reply(self, call: str) -> Answer:
        return self._environment.run(self._reply(call))

    def lose(self, client: str) -> None:
        process = self._processes.pop(client, None)
        if process is None:
            return
        self._environment.run(_cancelled(process.tasks))
        if isinstance(self._environment, SimulatedEnvironment):
            process.session.remoting.invoke = _ended  # type: ignore[method-assign]
            self._environment.lose_machine(process.machine)
        else:
            self._environment.run(process.session.stop())

    def results(self) -> tuple[Result, ...]:
        found, self._results = self._results, []
        return tuple(found)

    def now_s(self) -> float:
        return self._environment.run(loop_time_s())

    def wait(self, seconds: float) -> None:
        self._environment.run(asyncio.sleep(seconds))

    async def _open(self) -> None:
        self._topic, self._group = f"{self._caller.prefix}_topic", f"{self._caller.prefix}_group"
        await self._caller.make_topic(self._topic, 1)
        self._queue = MessageQueue(self._topic, self._caller.broker_name, 0)

    async def _leave(self) -> None:
        for process in self._processes.values():
            await _cancelled(process.tasks)
            await process.session.stop()
        await self._caller.forget([self._topic], [self._group])
        await self._caller.stop()

    async def _request(self, call: str, client: str, limit_s: float) -> bool:
        process = self._processes.get(client) or await self._started(client)
        task = asyncio.create_task(self._ask(process.producer, call, limit_s))
        process.tasks.append(task)
        while call not in self._stored and not task.done():
            await self._pull()
            await asyncio.sleep(_LOOK_S)
        return call in self._stored

    async def _started(self, client: str) -> _Process:
        self._machines += 1
        machine = f"requester-{self._machines}"
        environment = self._environment
        runtime = environment.runtime
        if isinstance(environment, SimulatedEnvironment):
            runtime = environment.machine(machine)
        session = Session([environment.name_server], runtime, f"{self._caller.prefix}@{client}")
        await session.start()
        producer = Producer(session, ProducerConfig(f"{self._caller.prefix}_requesters"))
        process = self._processes[client] = _Process(session, producer, machine)
        return process

    async def _ask(self, producer: Producer, call: str, limit_s: float) -> None:
        message = Message(self._topic, call.encode())
        try:
            reply = await producer.request(message, self._queue, timeout_ms=round(limit_s * 1000))
        except (NoReplyError, SendError) as error:
            result = Result(call, _ENDS[type(error)], "", await loop_time_s())
        else:
            result = Result(call, End.REPLY, reply.body.decode(), await loop_time_s())
        self._results.append(result)

    async def _pull(self) -> None:
        """Read the new messages of the topic. Raises TargetError if the broker does not answer."""
        header = PullRequest(
            consumer_group=self._group, topic=self._topic, queue_id=0, queue_offset=self._next_offset,
            max_msg_nums=32, sys_flag=PULL_HAS_SUBSCRIPTION, commit_offset=0, suspend_timeout_millis=0,
            sub_version=0, subscription="*", expression_type="TAG",
        )  # fmt: skip
        codes = (ResponseCode.SUCCESS, ResponseCode.PULL_NOT_FOUND, ResponseCode.PULL_OFFSET_MOVED)
        answer = await self._caller.request(RequestCode.PULL_MESSAGE, header, accepts=codes)
        if answer.code == ResponseCode.SUCCESS:
            self._next_offset = headers.read(PullResponse, answer.fields).next_begin_offset
            for stored in read_records(answer.body):
                self._stored[stored.message.body.decode()] = ReceivedMessage(stored, self._queue, 0)

    async def _reply(self, call: str) -> Answer:
        reply = reply_to(self._stored[call], call.encode())
        header = SendRequest(
            producer_group=self._group, topic=reply.topic, default_topic="TBW102", default_topic_queue_nums=1,
            queue_id=0, sys_flag=0, born_timestamp=int(1000 * await loop_time_s()), flag=0,
            properties=encode_properties(reply.properties), reconsume_times=0, unit_mode=False, batch=False,
        )  # fmt: skip
        codes = (ResponseCode.SUCCESS, ResponseCode.SYSTEM_ERROR)
        answer = await self._caller.request_fields(
            RequestCode.SEND_REPLY_MESSAGE_V2, headers.write_send_v2(header), reply.body, accepts=codes
        )
        await asyncio.sleep(0)  # let the requester take what has arrived
        return Answer.OK if answer.code == ResponseCode.SUCCESS else Answer.REFUSED


async def _ended(address: Address, request: Command, timeout_s: float) -> Command:  # noqa: ARG001  # invoke's
    raise ConnectError("the process has ended")


async def _cancelled(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    failed = [each for each in results if isinstance(each, Exception)]
    if failed:
        raise TargetError(f"a request failed: {failed[0]!r}")


@dataclass(slots=True)
class _Call:
    client: str
    until_s: float
    state: request_reply.State


class ReferenceRequestReply:
    """The reference itself, with random choices.

    If the suite does not explain its answers, the suite has a defect.
    """

    name = REFERENCE
    capabilities = frozenset[Capability | BrokerFault]({*Capability, *BrokerFault})
    _config = Config(("c",), ("r",), ())

    def __init__(self, seed: int = 0) -> None:
        self._chance = random.Random(seed)

    def open(self) -> None:
        self._now_s = 0.0
        self._calls: dict[str, _Call] = {}
        self._results: list[Result] = []

    def request(self, call: str, client: str, limit_s: float) -> bool:
        self._tick(0.01)
        (state,) = request_reply.initial(self._config)
        for name, *parameters in (("Connect", "c"), ("Request", "c", "r"), ("Store", "r")):
            state = _taken(request_reply.ACTIONS[name].apply(self._config, state, *parameters))
        for other in self._calls.values():
            if other.client == client:
                other.state = request_reply.connect(self._config, other.state, "c") or other.state
        self._calls[call] = _Call(client, self._now_s + limit_s, state)
        return True

    def reply(self, call: str) -> Answer:
        self._tick(0.01)
        one = self._calls[call]
        pushed = request_reply.reply(self._config, one.state, "r")
        if pushed is None:
            return Answer.REFUSED
        after = _taken(request_reply.receive(self._config, pushed, "c", "r", True))
        if after.outcome != one.state.outcome:
            self._results.append(Result(call, End.REPLY, call, self._now_s))
        one.state = after
        return Answer.OK

    def lose(self, client: str) -> None:
        for one in self._calls.values():
            if one.client == client:
                gone = request_reply.restart(self._config, one.state, "c")
                one.state = gone or request_reply.disconnect(self._config, one.state, "c") or one.state

    def results(self) -> tuple[Result, ...]:
        found, self._results = self._results, []
        return tuple(found)

    def now_s(self) -> float:
        return self._now_s

    def wait(self, seconds: float) -> None:
        self._tick(seconds)

    def inject(self, fault: BrokerFault) -> None:  # noqa: ARG002  # each one may break connections
        self._tick(1.0)
        for one in self._calls.values():
            if self._chance.random() < 0.5:
                one.state = request_reply.disconnect(self._config, one.state, "c") or one.state

    def close(self) -> None:
        pass

    def _tick(self, seconds: float) -> None:
        """Let time pass: time limits end, each at its own time."""
        self._now_s += seconds
        for call, one in sorted(self._calls.items(), key=lambda item: item[1].until_s):
            if one.until_s <= self._now_s:
                expired = request_reply.expire(self._config, one.state, "r")
                if expired is not None:
                    one.state = expired
                    self._results.append(Result(call, End.TIMEOUT, "", one.until_s))


def _taken(state: request_reply.State | None) -> request_reply.State:
    assert state is not None
    return state
