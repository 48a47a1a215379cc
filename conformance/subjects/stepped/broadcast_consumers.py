"""Broadcast consumers and their files as a target for behaviours of Broadcast.

Each queue of the model is the only queue of a broker of its name. The brokers' answers are computed here: in
broadcast mode, only the consumers decide. They are complete, except for their timers: they rebalance and
write their files when the script says so. A member whose topic has no queue yet looks for one when it starts,
as it does in reality; otherwise its first rebalance is the first Begin.
"""

import asyncio
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, TypeVar

from mqproof.conformance.behaviours.corpus import Script, Stimulus, Variables, bounded
from mqproof.conformance.behaviours.subject import DeviationError, ImpossibleError
from mqproof.conformance.subjects.stepped.delayed_requests import Held, at_rest
from mqproof.conformance.subjects.stepped.step_loop import StepLoop
from mqproof.conformance.subjects.stepped.untimed_consumer import GROUP, QUEUE, SteppedMember, killed
from mqproof.impl.client.consuming.assigned_queues import PullLimits
from mqproof.impl.client.consuming.offset_store import FileOffsets
from mqproof.impl.client.consuming.push_consumer import MessageModel, PushConsumerConfig
from mqproof.impl.client.model import MessageQueue, ReceivedMessage
from mqproof.impl.remoting import headers, java_json
from mqproof.impl.remoting.bodies import PERM_READ_WRITE, BrokerData, QueueData, TopicRoute
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.command import Command
from mqproof.impl.remoting.headers import (
    OffsetResponse,
    PullRequest,
    PullResponse,
    SearchOffsetRequest,
)
from mqproof.impl.remoting.message import UNIQUE_KEY, Message
from mqproof.impl.runtime.clock import now_ms
from mqproof.impl.runtime.network import Address
from mqproof.impl.runtime.runtime import Runtime
from mqproof.impl.store.files import record
from mqproof.reference.broadcast import Config

T = TypeVar("T")

_DIRECTORY: Final = "/offsets"
_PAUSE_S: Final = 120.0
"""The time before a message is stored: it is later than any step before it."""
_DISK_S: Final = 1.0
"""A file is written within this time."""
_CALLS: Final = 64
_OFFSETS: Final = (
    RequestCode.GET_MAX_OFFSET,
    RequestCode.GET_MIN_OFFSET,
    RequestCode.SEARCH_OFFSET_BY_TIMESTAMP,
)


class _Topic:
    """The queues that exist, and the store times of their messages."""

    def __init__(self, names: Sequence[str], runtime: Runtime) -> None:
        self._ports = {name: 10911 + number for number, name in enumerate(names)}
        self._runtime = runtime
        self.stored: dict[str, list[int]] = {}

    def at(self, address: Address) -> str:
        return next(name for name, port in self._ports.items() if port == address.port)

    def route(self) -> bytes:
        brokers = [BrokerData({0: f"127.0.0.1:{self._ports[name]}"}, name, "cluster") for name in self.stored]
        queues = [QueueData(name, PERM_READ_WRITE, 1, write_queue_nums=1) for name in self.stored]
        return java_json.write(TopicRoute(brokers, queues))

    def store(self, name: str) -> None:
        self.stored[name].append(now_ms(self._runtime.clock))

    def answer(self, held: Held) -> Command:
        """Return the offset that a member asks for."""
        times, request = self.stored[self.at(held.address)], held.request
        offset = len(times)
        if request.code == RequestCode.GET_MIN_OFFSET:
            offset = 0
        elif request.code == RequestCode.SEARCH_OFFSET_BY_TIMESTAMP:
            offset = bisect_left(times, headers.read(SearchOffsetRequest, request.fields).timestamp)
        return request.answer(ResponseCode.SUCCESS, headers.write(OffsetResponse(offset)))


class _Member(SteppedMember):
    """A broadcast consumer, and the calls of its listener that have not ended."""

    def __init__(self, name: str, topic: _Topic, runtime: Runtime) -> None:
        self._topic = topic
        self.calls: dict[tuple[str, int], asyncio.Future[None]] = {}
        """By queue and place."""
        config = PushConsumerConfig(
            MessageModel.BROADCASTING,
            concurrency=_CALLS,
            limits=PullLimits(batch=1),
            offsets_directory=_DIRECTORY,
        )
        super().__init__(name, [name], runtime, self._listen, config)

    def pulled(self, name: str) -> Held | None:
        """Return the pull of a queue that is in progress."""
        for held in self.requests.held:
            if held.request.code == RequestCode.PULL_MESSAGE and self._topic.at(held.address) == name:
                return held
        return None

    def reads(self, name: str) -> bool:
        return MessageQueue(QUEUE.topic, name, QUEUE.queue_id) in self.consumer.owned()

    def next(self, name: str) -> int:
        """Return the place from which it pulls, from 1; 0 if it does not read the queue."""
        held = self.pulled(name)
        return 0 if held is None else headers.read(PullRequest, held.request.fields).queue_offset + 1

    async def begin(self) -> None:
        """Receive the present route, and rebalance."""
        await self.consumer._session.routes.refresh(QUEUE.topic)
        await self.rebalance()
        while (held := self._asked()) is not None:
            held.answer(self._topic.answer(held))
            await asyncio.sleep(_DISK_S)
            await at_rest()

    def _asked(self) -> Held | None:
        """Return a request for an offset that is in progress."""
        return next((held for held in self.requests.held if held.request.code in _OFFSETS), None)

    async def die(self) -> None:
        """End the process, with the calls of its listener."""
        await killed(self.consumer)
        for call in self.calls.values():
            call.cancel()
        await at_rest()

    async def _listen(self, messages: Sequence[ReceivedMessage]) -> None:
        (message,) = messages
        key = (message.queue.broker_name, message.queue_offset + 1)
        call = self.calls[key] = asyncio.get_running_loop().create_future()
        try:
            await call
        finally:
            del self.calls[key]

    def at_once(self, request: Command) -> Command | None:
        match request.code:
            case RequestCode.GET_ROUTEINFO_BY_TOPIC if request.fields["topic"] == QUEUE.topic:
                if not self._topic.stored:
                    return request.answer(ResponseCode.TOPIC_NOT_EXIST)
                return request.answer(ResponseCode.SUCCESS, body=self._topic.route())
            case _:
                return super().at_once(request)


class SteppedBroadcast:
    """Drives broadcast consumers through a behaviour of Broadcast.

    Names of variables and actions are those of Broadcast.tla.
    """

    def open(self, script: Script) -> None:
        self._steps = script.steps
        self._config: Config = bounded("Broadcast", script.configuration)
        self._loop = StepLoop("mqproof.impl.client")
        self._run = self._loop.run
        self._topic = _Topic(self._config.queues, self._loop.runtime)
        self._topic.stored = {name: [] for name in self._config.initial}
        self._members: dict[str, _Member] = {}
        self._got: dict[tuple[str, str], set[int]] = {}

    def take(self, at: int) -> None:
        step = self._steps[at]
        self._run(_ACTIONS[step.action](self, *step.parameters))

    def look(self) -> Variables:
        return {
            "exists": sorted(self._topic.stored),
            "stored": [len(self._topic.stored.get(name, ())) for name in self._config.queues],
            "alive": sorted(self._members),
            "next": self._table(self._next),
            "held": self._table(self._held),
            "file": [self._file(member) for member in self._config.members],
            "got": self._table(lambda member, queue: sorted(self._got.get((member, queue), ()))),
        }

    def refuses(self, step: Stimulus) -> bool:
        tried = _REFUSALS.get(step.action)
        return tried is not None and bool(self._run(tried(self, *step.parameters)))

    def close(self) -> None:
        self._loop.close()

    # Actions

    async def _create(self, queue: str) -> None:
        self._topic.stored[queue] = []

    async def _store(self, queue: str) -> None:
        await asyncio.sleep(_PAUSE_S)
        self._topic.store(queue)

    async def _start(self, name: str) -> None:
        member = self._members[name] = _Member(name, self._topic, self._loop.runtime)
        await member.start()
        if not self._topic.stored:
            await member.begin()

    async def _begin(self, name: str, queue: str) -> None:
        member = self._members[name]
        if len(self._topic.stored) - sum(map(member.reads, self._topic.stored)) > 1:
            raise ImpossibleError(f"{name} begins to read all queues that exist")
        await member.begin()
        if not member.next(queue):
            raise DeviationError(f"{name} does not read {queue}")

    async def _pull(self, name: str, queue: str) -> None:
        held = self._members[name].pulled(queue)
        assert held is not None
        offset = headers.read(PullRequest, held.request.fields).queue_offset
        fields = headers.write(PullResponse(0, offset + 1, 0, len(self._topic.stored[queue])))
        held.answer(held.request.answer(ResponseCode.SUCCESS, fields, _record(offset)))
        await at_rest()

    async def _consume(self, name: str, queue: str, place: int) -> None:
        call = self._members[name].calls.get((queue, place))
        if call is None:
            raise DeviationError(f"{name} does not process the message at {place} of {queue}")
        call.set_result(None)
        await at_rest()
        self._got.setdefault((name, queue), set()).add(place)

    async def _persist(self, name: str, _queue: str) -> None:
        await self._members[name].consumer._offsets.save()

    async def _die(self, name: str) -> None:
        await self._members.pop(name).die()

    # Disabled actions

    async def _refuses_begin(self, name: str, queue: str) -> bool:
        """Rebalance a member that reads all queues already."""
        member = self._members.get(name)
        if member is None or not member.reads(queue) or not all(map(member.reads, self._topic.stored)):
            return False
        await member.begin()
        return True

    async def _refuses_persisting(self, name: str, queue: str) -> bool:
        """Write the file although its offset would be the same."""
        member = self._members.get(name)
        if member is None or not member.reads(queue) or len(self._config.queues) > 1:
            return False
        await self._persist(name, queue)
        return True

    # Helper methods

    def _table(self, cell: Callable[[str, str], T]) -> list[list[T]]:
        return [[cell(member, queue) for queue in self._config.queues] for member in self._config.members]

    def _next(self, member: str, queue: str) -> int:
        return self._members[member].next(queue) if member in self._members else 0

    def _held(self, member: str, queue: str) -> list[int]:
        calls = self._members[member].calls if member in self._members else {}
        return sorted(place for name, place in calls if name == queue)

    def _file(self, member: str) -> list[int]:
        found = FileOffsets(_DIRECTORY, member, GROUP, self._loop.runtime)._read()
        places = {queue.broker_name: offset + 1 for queue, offset in found.items()}
        return [places.get(queue, 0) for queue in self._config.queues]


_ACTIONS: Final[Mapping[str, Any]] = {
    "Create": SteppedBroadcast._create,
    "Store": SteppedBroadcast._store,
    "Start": SteppedBroadcast._start,
    "Die": SteppedBroadcast._die,
    "Begin": SteppedBroadcast._begin,
    "Pull": SteppedBroadcast._pull,
    "Persist": SteppedBroadcast._persist,
    "Consume": SteppedBroadcast._consume,
}
_REFUSALS: Final[Mapping[str, Any]] = {
    "Begin": SteppedBroadcast._refuses_begin,
    "Persist": SteppedBroadcast._refuses_persisting,
}
"""Functions that try a disabled action; they return False if it could not be tried."""


@lru_cache(maxsize=64)
def _record(offset: int) -> bytes:
    draft = record.encode(Message(QUEUE.topic, b".", {UNIQUE_KEY: f"m{offset}"}, QUEUE.queue_id))
    record.place(draft, offset, offset * len(draft), 0)
    return bytes(draft)
