"""A broker's lock table and orderly consumers as a target for behaviours of OrderLock.

Each request, and each call of a listener, arrives and ends when the script says so. The consumers are
complete, except for their timers: they rebalance and renew their locks when the script says so. The length of
a tick is chosen so that a member trusts its lock for as many ticks as in the model.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import ceil
from typing import Any, Final, TypeVar, cast

from mqproof.conformance.behaviours.corpus import Script, Stimulus, Variables, bounded
from mqproof.conformance.behaviours.subject import DeviationError, ImpossibleError
from mqproof.conformance.subjects.stepped.delayed_requests import Held, at_rest
from mqproof.conformance.subjects.stepped.step_loop import StepLoop
from mqproof.conformance.subjects.stepped.untimed_consumer import GROUP, QUEUE, SteppedMember, offset_answer
from mqproof.impl.broker.config import BrokerConfig
from mqproof.impl.broker.processors import groups
from mqproof.impl.broker.services import Services
from mqproof.impl.broker.state.queue_locks import QueueLockTable, _Lease
from mqproof.impl.client.consuming.group_requests import GroupRequests
from mqproof.impl.client.consuming.locks import LIFE_S, QueueLocks
from mqproof.impl.client.consuming.push_consumer import PushConsumerConfig
from mqproof.impl.client.model import ReceivedMessage
from mqproof.impl.remoting import bodies, headers, java_json
from mqproof.impl.remoting.bodies import (
    LockedQueues,
    SubscriptionGroup,
    TopicConfig,
)
from mqproof.impl.remoting.channel import Channel
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.command import Command
from mqproof.impl.remoting.headers import PullRequest, PullResponse
from mqproof.impl.remoting.message import UNIQUE_KEY, Message
from mqproof.impl.runtime.runtime import Runtime
from mqproof.impl.store.files import record
from mqproof.reference.order_lock import NO_MEMBER, Config

T = TypeVar("T")

_NAMED: Final = bodies.MessageQueue(QUEUE.broker_name, QUEUE.queue_id, QUEUE.topic)
_UNLOCKED_PAUSE_S: Final = 0.1
"""The interval at which a consumer checks whether it has the lock."""


@dataclass(frozen=True, slots=True)
class _Store:
    """The store of a master; only a master grants locks."""

    has_all: bool = True


@dataclass(slots=True)
class _Broker:
    """The part of a broker's services that locks need. Its table is in memory only."""

    config: BrokerConfig
    topics: Mapping[str, TopicConfig]
    groups: Mapping[str, SubscriptionGroup]
    locks: QueueLockTable
    store: _Store = _Store()
    is_slave: bool = False

    def lock(self, request: Command) -> Command:
        return self._answer(groups.lock_queues(self._services(), request, cast(Channel, None)))

    def unlock(self, request: Command) -> Command:
        return self._answer(groups.unlock_queues(self._services(), request, cast(Channel, None)))

    def _services(self) -> Services:
        return cast(Services, self)

    def _answer(self, answer: Command | None) -> Command:
        assert answer is not None, "every request is answered"
        return answer


class _Locks(QueueLocks):
    """Queue locks whose unlock is a separate step, after the queue was dropped."""

    def __init__(self, calls: GroupRequests, member: "_Member") -> None:
        super().__init__(calls)
        self._member = member

    async def unlock(self, queues: Any) -> None:
        if not self._member.assigned_queues:
            self._member.unlocks = asyncio.get_running_loop().create_future()
            await self._member.unlocks
        await super().unlock(queues)


class _Member(SteppedMember):
    """A member that consumes in order, with its listener."""

    def __init__(self, name: str, everybody: Sequence[str], runtime: Runtime) -> None:
        super().__init__(name, everybody, runtime, self._listen, PushConsumerConfig(orderly=True))
        self.locks = self.consumer._locks = _Locks(self.consumer._calls, self)
        self.unlocks: asyncio.Future[None] | None = None
        """A consumer that is about to unlock waits for this."""
        self.judged: Command | None = None
        """The broker's answer to the request that is in progress."""
        self.calls: list[asyncio.Future[None]] = []
        self._renewal: asyncio.Task[None] | None = None

    async def request_lock(self) -> None:
        if self.is_reading:
            self._renewal = asyncio.create_task(self.consumer._renew_locks())
            await at_rest()
        else:
            await self.rebalance()

    async def settle(self) -> None:
        """Rebalance again if the queue was dropped during a round; the next round drops it."""
        await at_rest()
        if self.is_reading and not self.assigned_queues:
            await self.rebalance()

    async def deliver(self) -> bool:
        """Answer the waiting pull with its next message. Return False if there is no pull."""
        held = self.under_way(RequestCode.PULL_MESSAGE)
        if held is None:
            return False
        offset = headers.read(PullRequest, held.request.fields).queue_offset
        fields = headers.write(PullResponse(0, offset + 1, 0, offset + 1))
        held.answer(held.request.answer(ResponseCode.SUCCESS, fields, _record(offset)))
        await at_rest()
        return True

    def take_back(self) -> None:
        """Remove messages that were delivered but whose processing has not started."""
        for held in self.consumer._queues.process_queues():
            held.remove(held.first(2)[len(self.calls) :])

    async def _listen(self, messages: Sequence[ReceivedMessage]) -> None:
        assert len(messages) == 1, "one message is delivered at a time"
        call: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.calls.append(call)
        try:
            await call
        finally:
            self.calls.remove(call)

    def at_once(self, request: Command) -> Command | None:
        """Answer offset requests immediately, too."""
        return offset_answer(request) or super().at_once(request)


class SteppedLock:
    """Drives a lock table and orderly consumers through a behaviour of OrderLock.

    Names of variables and actions are those of OrderLock.tla.
    """

    def open(self, script: Script) -> None:
        self._steps = script.steps
        self._is_last = script.disabled_at == len(script.steps)
        self._config: Config = bounded("OrderLock", script.configuration)
        self._tick_s = LIFE_S / self._config.lock_trust
        self._loop = StepLoop("mqproof.impl.client")
        self._run = self._loop.run
        self._broker = _Broker(
            BrokerConfig(name=QUEUE.broker_name),
            {QUEUE.topic: TopicConfig(QUEUE.topic)},
            {GROUP: SubscriptionGroup(group_name=GROUP)},
            self._no_locks(),
        )
        names = self._config.members
        self._members = self._run(self._started(names, self._loop.runtime))

    def take(self, at: int) -> None:
        step = self._steps[at]
        self._run(_ACTIONS[step.action](self, *step.parameters))

    def look(self) -> Variables:
        held = self._lease()
        left_s = held.ends_ms / 1000 - self._loop.now_s if held else 0.0
        lasts = self._config.lock_lease
        return {
            "holder": self._holder(),
            "held": min(lasts, lasts - ceil(left_s / self._tick_s)) if held else 0,
            "asking": [self._asking(member) for member in self._members.values()],
            "trust": [self._trust(member) for member in self._members.values()],
            "calls": sorted(name for name, member in self._members.items() for _ in member.calls),
        }

    def refuses(self, step: Stimulus) -> bool:
        tried = _REFUSALS.get(step.action)
        if tried is None:
            return False
        could: bool = self._run(tried(self, *step.parameters))
        return could

    def close(self) -> None:
        self._loop.close()

    # Rebalancing

    async def _gain(self, name: str) -> None:
        self._members[name].assigned_queues = [QUEUE]

    async def _drop(self, name: str) -> None:
        member = self._members[name]
        member.assigned_queues = []
        await member.settle()

    # The lock

    async def _request_lock(self, name: str) -> None:
        """Request the lock: by rebalancing for the first time or again, by the renewal task to renew it."""
        member = self._members[name]
        if member.is_leaving:
            raise ImpossibleError(f"{name} has not finished its former queue")
        await member.request_lock()
        if member.under_way(RequestCode.LOCK_BATCH_MQ) is None:
            raise DeviationError(f"{name} did not request the lock")

    async def _lock_queue(self, name: str) -> None:
        member = self._members[name]
        member.judged = self._broker.lock(self._request(member).request)

    async def _receive_answer(self, name: str) -> None:
        member = self._members[name]
        judged, member.judged = member.judged, None
        assert judged is not None, "the broker has not answered yet"
        self._request(member).answer(judged)
        await member.settle()

    async def _lose(self, name: str) -> None:
        member = self._members[name]
        member.judged = None
        self._request(member).lose()
        await member.settle()

    async def _unlock_queue(self, name: str) -> None:
        """Unlock the queue.

        A member that knows of no lock sends no request; if it has no lock, this makes no difference to the
        broker.
        """
        believed = self._members[name].locks.confirmed_s(QUEUE) is not None
        held = await self._unlocks(name)
        if held is not None:
            held.answer(self._broker.unlock(held.request))
            await at_rest()
        elif believed:
            raise DeviationError(f"{name} did not unlock the queue")
        elif self._holder() == name:
            raise ImpossibleError(f"{name} never received the grant of its lock")

    async def _lose_unlock(self, name: str) -> None:
        held = await self._unlocks(name)
        if held is not None:
            held.lose()
        await at_rest()

    async def _unlocks(self, name: str) -> Held | None:
        """Return the unlock request of a member that is done with the queue; None if there is none."""
        member = self._members[name]
        if member.unlocks is not None:
            unlocks, member.unlocks = member.unlocks, None
            unlocks.set_result(None)
            await at_rest()
        elif member.is_leaving:
            raise DeviationError(f"{name} has not settled its messages of the queue")
        return member.under_way(RequestCode.UNLOCK_BATCH_MQ)

    # Consuming

    async def _begin(self, name: str) -> None:
        member = self._members[name]
        if not await member.deliver():
            raise DeviationError(f"{name} has no pull in progress")
        if not member.calls:
            await asyncio.sleep(_UNLOCKED_PAUSE_S)
            await at_rest()

    async def _end(self, name: str) -> None:
        self._members[name].calls[0].set_result(None)
        await at_rest()

    # Time and faults

    async def _tick(self) -> None:
        await asyncio.sleep(self._tick_s)
        await at_rest()

    async def _restart(self) -> None:
        """Restart the broker; requests that are in progress get no answer."""
        self._broker.locks = self._no_locks()
        for name, member in self._members.items():
            if member.under_way(RequestCode.LOCK_BATCH_MQ) is not None:
                await self._lose(name)

    async def _stall(self, name: str) -> None:
        """Do nothing: the listener does not return while time passes."""

    # Disabled actions

    async def _refuses_gain(self, name: str) -> bool:
        """Assign a queue that the member already has, or has not finished leaving."""
        member = self._members[name]
        if member.is_rebalancing or not (member.is_reading or member.is_leaving):
            return False
        before, member.assigned_queues = member.assigned_queues, [QUEUE]
        await member.rebalance()
        member.assigned_queues = before
        return True

    async def _refuses_unassigned(self, name: str) -> bool:
        """Rebalance a member without assigning the queue to it."""
        member = self._members[name]
        if member.is_rebalancing or member.assigned_queues:
            return False
        await member.rebalance()
        return True

    async def _refuses_unlocking(self, name: str) -> bool:
        """Let a member try to unlock while its listener is active or its lock request is in progress.

        The unlock that starts here continues later.
        """
        member = self._members[name]
        if not self._is_last or member.assigned_queues or not (member.calls or self._asking(member) != "no"):
            return False
        if member.unlocks is not None and not member.unlocks.done():
            member.unlocks.set_result(None)
        await at_rest()
        if member.under_way(RequestCode.UNLOCK_BATCH_MQ) is not None:
            raise DeviationError(f"{name} unlocked a queue that it has not finished")
        return True

    async def _refuses_begin(self, name: str) -> bool:
        """Deliver a message to a member that does not trust its lock, or still consumes another message."""
        member = self._members[name]
        if not await member.deliver():
            return True  # it does not even pull without the lock
        calls = len(member.calls)
        await asyncio.sleep(_UNLOCKED_PAUSE_S)
        await at_rest()
        if len(member.calls) != calls:
            raise DeviationError(f"Begin({name}) is disabled, but was executed")
        member.take_back()
        return True

    async def _refuses_restart(self) -> bool:
        """Restart a broker without locks, which changes nothing.

        Otherwise only the model's limit of failures forbids the action.
        """
        if self._broker.locks._leases or any(self._asking(each) != "no" for each in self._members.values()):
            return False
        await self._restart()
        return True

    # Helper methods

    async def _started(self, names: Sequence[str], runtime: Runtime) -> dict[str, _Member]:
        members = {name: _Member(name, names, runtime) for name in names}
        for member in members.values():
            await member.start()
        return members

    def _no_locks(self) -> QueueLockTable:
        """Return an empty table whose leases are over in the tick that ends them."""
        return QueueLockTable(round(1000 * self._tick_s * self._config.lock_lease) - 1)

    def _lease(self) -> _Lease | None:
        return self._broker.locks._leases.get(GROUP, {}).get(_NAMED)

    def _holder(self) -> str:
        lease = self._lease()
        return lease.client_id if lease else NO_MEMBER

    def _request(self, member: _Member) -> Held:
        held = member.under_way(RequestCode.LOCK_BATCH_MQ)
        assert held is not None, "no lock request is in progress"
        return held

    def _asking(self, member: _Member) -> str:
        if member.under_way(RequestCode.LOCK_BATCH_MQ) is None:
            return "no"
        if member.judged is None:
            return "asked"
        granted = java_json.read(LockedQueues, member.judged.body).lock_ok_mq_set
        return "granted" if granted else "refused"

    def _trust(self, member: _Member) -> int:
        confirmed_s = member.locks.confirmed_s(QUEUE)
        most = self._config.lock_trust
        if confirmed_s is None:
            return most
        return min(most, int((self._loop.now_s - confirmed_s) / self._tick_s))


_ACTIONS: Final[Mapping[str, Any]] = {
    "Gain": SteppedLock._gain,
    "Drop": SteppedLock._drop,
    "Ask": SteppedLock._request_lock,
    "LockQueue": SteppedLock._lock_queue,
    "Hear": SteppedLock._receive_answer,
    "Lose": SteppedLock._lose,
    "UnlockQueue": SteppedLock._unlock_queue,
    "LoseUnlock": SteppedLock._lose_unlock,
    "Begin": SteppedLock._begin,
    "End": SteppedLock._end,
    "Tick": SteppedLock._tick,
    "Restart": SteppedLock._restart,
    "Stall": SteppedLock._stall,
}
_REFUSALS: Final[Mapping[str, Any]] = {
    "Gain": SteppedLock._refuses_gain,
    "Drop": SteppedLock._refuses_unassigned,
    "Ask": SteppedLock._refuses_unassigned,
    "UnlockQueue": SteppedLock._refuses_unlocking,
    "LoseUnlock": SteppedLock._refuses_unlocking,
    "Begin": SteppedLock._refuses_begin,
    "Restart": SteppedLock._refuses_restart,
}
"""Functions that try a disabled action; they return False if it could not be tried."""


@lru_cache(maxsize=64)
def _record(offset: int) -> bytes:
    draft = record.encode(Message(QUEUE.topic, b".", {UNIQUE_KEY: f"m{offset}"}, QUEUE.queue_id))
    record.place(draft, offset, offset * len(draft), 0)
    return bytes(draft)
