"""A broker as a target of the suite of orderly consumption, and the reference as one."""

import asyncio
import random
from collections.abc import Set
from typing import Final

from mqproof.conformance.adapters.brokers.environments import Environment, OnEnvironment, loop_time_s
from mqproof.conformance.engine.broker_faults import ENDS, BrokerFault
from mqproof.conformance.engine.shared_steps import Span
from mqproof.conformance.engine.targets import REFERENCE
from mqproof.conformance.suites.ordering.target import GROUPS, QUEUES, Capability
from mqproof.impl.remoting import java_json
from mqproof.impl.remoting.bodies import LockedQueues, MessageQueue, QueueLocks, SubscriptionGroup
from mqproof.impl.remoting.codes import RequestCode
from mqproof.reference.order_lock import NO_MEMBER

_PATIENCE_S: Final = 5.0
"""The longest lease that is waited for in real time."""


class BrokerOrdering(OnEnvironment):
    """The target of the ordering suite that drives a broker in an environment."""

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self.lease_s = environment.lock_lease_s
        waits = environment.is_simulated or self.lease_s <= _PATIENCE_S
        able = frozenset(Capability) if waits else frozenset[Capability]()
        self.capabilities: frozenset[Capability | BrokerFault] = able | environment.faults

    def open(self) -> None:
        self._arrive()

    def lock(self, group: str, member: str, queues: Set[int]) -> tuple[frozenset[int], Span]:
        return self._environment.run(self._lock(group, member, queues))

    def lock_unheard(self, group: str, member: str, queues: Set[int]) -> Span:
        return self._environment.run(self._lock_unheard(group, member, queues))

    def unlock(self, group: str, member: str, queues: Set[int]) -> Span:
        return self._environment.run(self._unlock(group, member, queues))

    def now_s(self) -> float:
        return self._environment.run(loop_time_s())

    def wait(self, seconds: float) -> None:
        self._environment.run(asyncio.sleep(seconds))

    async def _open(self) -> None:
        self._topic = f"{self._caller.prefix}_topic"
        await self._caller.make_topic(self._topic, QUEUES)
        for group in GROUPS:
            await self._caller.make_group(SubscriptionGroup(group_name=self._group(group)))

    async def _leave(self) -> None:
        await self._caller.forget([self._topic], list(map(self._group, GROUPS)))
        await self._caller.stop()

    async def _lock(self, group: str, member: str, queues: Set[int]) -> tuple[frozenset[int], Span]:
        begin_s = await loop_time_s()
        answer = await self._caller.request(
            RequestCode.LOCK_BATCH_MQ, body=self._locks(group, member, queues)
        )
        granted = java_json.read(LockedQueues, answer.body).lock_ok_mq_set
        return frozenset(queue.queue_id for queue in granted), Span(begin_s, await loop_time_s())

    async def _lock_unheard(self, group: str, member: str, queues: Set[int]) -> Span:
        begin_s = await loop_time_s()
        await self._caller.request_oneway(RequestCode.LOCK_BATCH_MQ, body=self._locks(group, member, queues))
        return Span(begin_s, await loop_time_s())

    async def _unlock(self, group: str, member: str, queues: Set[int]) -> Span:
        begin_s = await loop_time_s()
        await self._caller.request(RequestCode.UNLOCK_BATCH_MQ, body=self._locks(group, member, queues))
        return Span(begin_s, await loop_time_s())

    def _locks(self, group: str, member: str, queues: Set[int]) -> bytes:
        named = [MessageQueue(self._caller.broker_name, queue_id, self._topic) for queue_id in sorted(queues)]
        client = f"127.0.0.1@{self._caller.prefix}_{member}"
        return java_json.write(QueueLocks(client, self._group(group), named), standard=True)

    def _group(self, group: str) -> str:
        return f"{self._caller.prefix}_{group}"


class ReferenceOrdering:
    """The reference itself, with random choices.

    If the suite does not explain its answers, the suite has a defect.
    """

    name = REFERENCE
    capabilities = frozenset[Capability | BrokerFault]({*Capability, *BrokerFault})
    lease_s = 3.0

    def __init__(self, seed: int = 0) -> None:
        self._chance = random.Random(seed)

    def open(self) -> None:
        self._now_s = 0.0
        self._held: dict[tuple[str, int], tuple[str, float]] = {}
        self._unheard: list[tuple[str, str, Set[int]]] = []

    def lock(self, group: str, member: str, queues: Set[int]) -> tuple[frozenset[int], Span]:
        self._receive_late()
        return self._take(group, member, queues), self._span()

    def lock_unheard(self, group: str, member: str, queues: Set[int]) -> Span:
        self._unheard.append((group, member, queues))
        return self._span()

    def unlock(self, group: str, member: str, queues: Set[int]) -> Span:
        self._receive_late()
        for queue_id in queues:
            if self._held.get((group, queue_id), (NO_MEMBER, 0.0))[0] == member:
                del self._held[group, queue_id]
        return self._span()

    def now_s(self) -> float:
        return self._now_s

    def wait(self, seconds: float) -> None:
        self._now_s += seconds

    def inject(self, fault: BrokerFault) -> None:
        self._now_s += self._chance.uniform(0, 4)
        if fault in ENDS:
            self._held.clear()
            self._unheard.clear()

    def close(self) -> None:
        pass

    def _receive_late(self) -> None:
        """Let some of the requests whose answers were not awaited arrive, in any order."""
        self._chance.shuffle(self._unheard)
        while self._unheard and self._chance.random() < 0.5:
            self._take(*self._unheard.pop())

    def _take(self, group: str, member: str, queues: Set[int]) -> frozenset[int]:
        granted = set()
        for queue_id in queues:
            holder, since_s = self._held.get((group, queue_id), (NO_MEMBER, 0.0))
            if holder in (NO_MEMBER, member) or self._now_s - since_s > self.lease_s:
                self._held[group, queue_id] = member, self._now_s
                granted.add(queue_id)
        return frozenset(granted)

    def _span(self) -> Span:
        return Span(self._now_s, self._now_s)
