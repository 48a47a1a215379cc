"""A broker as a target of the suite of pulls and offsets, and the reference as one."""

import asyncio
import random
import time
from typing import Final

from mqproof.conformance.adapters.brokers.drawn_commits import DrawnCommits
from mqproof.conformance.adapters.brokers.environments import CONFIG, Environment, OnEnvironment
from mqproof.conformance.adapters.caller import TIMEOUT_S
from mqproof.conformance.engine.broker_faults import BrokerFault
from mqproof.conformance.engine.targets import REFERENCE
from mqproof.conformance.suites.offsets.target import QUEUES, Capability, Held, Message, Pulled, Searched
from mqproof.impl.client.connection.records import read_records
from mqproof.impl.remoting import headers
from mqproof.impl.remoting.bodies import SubscriptionGroup
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.headers import (
    PULL_COMMITS_OFFSET,
    PULL_HAS_SUBSCRIPTION,
    PULL_MAY_SUSPEND,
    PullRequest,
    PullResponse,
    SearchOffsetRequest,
    UpdateOffsetRequest,
)
from mqproof.impl.remoting.message import TAGS, StoredMessage
from mqproof.reference.rules import pulling
from mqproof.reference.rules.pulling import Queue, Status

_STATUSES: Final[dict[int, Status]] = {
    ResponseCode.SUCCESS: Status.FOUND,
    ResponseCode.PULL_NOT_FOUND: Status.NO_NEW,
    ResponseCode.PULL_RETRY_IMMEDIATELY: Status.NO_MATCHED,
    ResponseCode.PULL_OFFSET_MOVED: Status.MOVED,
}
_HOLD_MS: Final = 15_000
_REAL_HOLD_MS: Final = 60_000
"""How long a pull may wait in real time; it is long, because a machine may be slow."""
_ALL: Final = 32
_APART_S: Final = 0.002
"""A pause, so that messages are stored at different times."""
_ARRIVED_S: Final = 0.02
"""The time given to a pull to arrive before messages are sent; it is not guaranteed to suffice."""
_WRITTEN_S: Final = CONFIG.offsets_flush_interval_ms / 1000 + 1
_OLD_S: Final = CONFIG.store.file_reserved_ms / 1000 + 1


class BrokerOffsets(OnEnvironment):
    """A broker in an environment. Only in simulated time can the target let time pass and messages expire."""

    inspections = ("statistics", "frames")

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        able = frozenset(Capability) if environment.is_simulated else frozenset[Capability]()
        self.capabilities: frozenset[Capability | BrokerFault] = able | environment.faults

    def open(self) -> None:
        self._arrive()

    def send(self, queue_id: int, msg_id: str, tag: str) -> int:
        return self._environment.run(self._send(queue_id, msg_id, tag))

    def pull(
        self, queue_id: int, offset: int, count: int, expression: str, commit: int | None = None
    ) -> Pulled:
        return self._environment.run(self._pull(queue_id, offset, count, expression, commit))

    def hold(
        self, queue_id: int, offset: int, count: int, expression: str, then: tuple[tuple[str, str], ...]
    ) -> Held:
        return self._environment.run(self._hold(queue_id, offset, count, expression, then))

    def commit(self, queue_id: int, offset: int) -> None:
        header = self._update(queue_id, offset)
        self._environment.run(self._caller.request(RequestCode.UPDATE_CONSUMER_OFFSET, header))

    def commit_oneway(self, queue_id: int, offset: int) -> None:
        header = self._update(queue_id, offset)
        self._environment.run(self._caller.request_oneway(RequestCode.UPDATE_CONSUMER_OFFSET, header))

    def query(self, queue_id: int) -> int | None:
        return self._environment.run(self._caller.committed(self._group, self._topic, queue_id))

    def search(self, queue_id: int, place: int, shift_ms: int) -> Searched:
        return self._environment.run(self._search(queue_id, place, shift_ms))

    def min_offset(self, queue_id: int) -> int:
        return self._environment.run(self._caller.offset(RequestCode.GET_MIN_OFFSET, self._topic, queue_id))

    def max_offset(self, queue_id: int) -> int:
        return self._environment.run(self._caller.offset(RequestCode.GET_MAX_OFFSET, self._topic, queue_id))

    def expire(self) -> None:
        self._environment.run(self._expire())

    def write(self) -> None:
        self._environment.run(asyncio.sleep(_WRITTEN_S))

    async def _open(self) -> None:
        self._topic, self._group = f"{self._caller.prefix}_topic", f"{self._caller.prefix}_group"
        await self._caller.make_topic(self._topic, QUEUES)
        await self._caller.make_group(SubscriptionGroup(group_name=self._group))

    async def _leave(self) -> None:
        await self._caller.forget([self._topic], [self._group])
        await self._caller.stop()

    async def _send(self, queue_id: int, msg_id: str, tag: str) -> int:
        sent = await self._caller.send(self._topic, queue_id, msg_id, tag=tag)
        await asyncio.sleep(_APART_S)
        return sent.queue_offset

    async def _search(self, queue_id: int, place: int, shift_ms: int) -> Searched:
        times: list[tuple[int, int]] = []
        offset = await self._caller.offset(RequestCode.GET_MIN_OFFSET, self._topic, queue_id)
        while found := await self._stored(queue_id, offset):
            times += [(each.queue_offset, each.store_timestamp_ms) for each in found]
            offset = times[-1][0] + 1
        of = times[place % len(times)][1] if times else round(time.time() * 1000)
        header = SearchOffsetRequest(self._topic, queue_id, of + shift_ms)
        answer = await self._caller.request(RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, header)
        offset = headers.read(headers.OffsetResponse, answer.fields).offset
        return Searched(tuple(times), of + shift_ms, offset)

    async def _stored(self, queue_id: int, offset: int) -> list[StoredMessage]:
        answer = await self._caller.request(
            RequestCode.PULL_MESSAGE, self._request(queue_id, offset, _ALL, "*"), accepts=_STATUSES
        )
        return list(read_records(answer.body))

    async def _pull(
        self, queue_id: int, offset: int, count: int, expression: str, commit: int | None, hold_ms: int = 0
    ) -> Pulled:
        header = self._request(queue_id, offset, count, expression, commit, hold_ms)
        timeout_s = TIMEOUT_S + hold_ms / 1000
        answer = await self._caller.request(
            RequestCode.PULL_MESSAGE, header, accepts=_STATUSES, timeout_s=timeout_s
        )
        response = headers.read(PullResponse, answer.fields)
        return Pulled(
            _STATUSES[answer.code],
            response.next_begin_offset,
            response.min_offset,
            response.max_offset,
            tuple(map(_message, read_records(answer.body))),
        )

    async def _hold(
        self, queue_id: int, offset: int, count: int, expression: str, then: tuple[tuple[str, str], ...]
    ) -> Held:
        loop = asyncio.get_running_loop()
        hold_ms = _HOLD_MS if self._environment.is_simulated else _REAL_HOLD_MS

        async def answered() -> tuple[Pulled, float]:
            answer = await self._pull(queue_id, offset, count, expression, None, hold_ms)
            return answer, loop.time()

        pulling = asyncio.create_task(answered())
        await asyncio.sleep(_ARRIVED_S)
        sent = []
        for msg_id, tag in then:
            stored = await self._caller.send(self._topic, queue_id, msg_id, tag=tag)
            sent.append(Message(msg_id, tag, stored.queue_offset))
        sent_s = loop.time()
        answer, answered_s = await pulling
        return Held(answer, tuple(sent), max(0.0, answered_s - sent_s))

    async def _expire(self) -> None:
        await asyncio.sleep(_OLD_S)
        await self._caller.request(RequestCode.DELETE_EXPIRED_COMMITLOG)

    def _request(
        self, queue_id: int, offset: int, count: int, expression: str, commit: int | None = None,
        hold_ms: int = 0,
    ) -> PullRequest:  # fmt: skip
        flags = PULL_HAS_SUBSCRIPTION
        flags |= PULL_MAY_SUSPEND if hold_ms else 0
        flags |= PULL_COMMITS_OFFSET if commit is not None else 0
        kind = "SQL92" if expression.startswith(pulling.SQL) else "TAG"
        return PullRequest(
            consumer_group=self._group, topic=self._topic, queue_id=queue_id, queue_offset=offset,
            max_msg_nums=count, sys_flag=flags, commit_offset=commit or 0, suspend_timeout_millis=hold_ms,
            sub_version=0, subscription=expression.removeprefix(pulling.SQL),
            expression_type=kind,
        )  # fmt: skip

    def _update(self, queue_id: int, offset: int) -> UpdateOffsetRequest:
        return UpdateOffsetRequest(self._group, self._topic, queue_id, offset)


def _message(stored: StoredMessage) -> Message:
    return Message(stored.message.body.decode(), stored.message.properties.get(TAGS, ""), stored.queue_offset)


class ReferenceOffsets:
    """The reference itself, with random choices.

    If the suite does not explain its answers, the suite has a defect.
    """

    name = REFERENCE
    capabilities = frozenset[Capability | BrokerFault]({*Capability, *BrokerFault})

    def __init__(self, seed: int = 0) -> None:
        self._chance = random.Random(seed)

    def open(self) -> None:
        self._queues = [Queue()] * QUEUES
        self._ids: list[list[str]] = [[] for _ in range(QUEUES)]
        self._times: list[list[int]] = [[] for _ in range(QUEUES)]
        self._now_ms = 1
        self._commits = DrawnCommits(self._chance, QUEUES)

    def send(self, queue_id: int, msg_id: str, tag: str) -> int:
        queue = self._queues[queue_id]
        self._queues[queue_id] = queue._replace(tags=(*queue.tags, tag))
        self._ids[queue_id].append(msg_id)
        self._now_ms += self._chance.randint(0, 3)
        self._times[queue_id].append(self._now_ms)
        return queue.end

    def pull(
        self, queue_id: int, offset: int, count: int, expression: str, commit: int | None = None
    ) -> Pulled:
        self._commits.arrive()
        if commit is not None:
            self.commit(queue_id, commit)
        return self._pulled_from(queue_id, pulling.pulled(self._queues[queue_id], offset, count, expression))

    def hold(
        self, queue_id: int, offset: int, count: int, expression: str, then: tuple[tuple[str, str], ...]
    ) -> Held:
        sent = []
        answer: Pulled | None = None
        for msg_id, tag in then:
            sent.append(Message(msg_id, tag, self.send(queue_id, msg_id, tag)))
            wanted = pulling.selects(expression, tag)
            if answer is None and (wanted or self._chance.random() < 0.3):
                answer = self.pull(queue_id, offset, count, expression)
        return Held(answer or self.pull(queue_id, offset, count, expression), tuple(sent), 0.0)

    def commit(self, queue_id: int, offset: int) -> None:
        self._commits.commit(queue_id, offset)

    def commit_oneway(self, queue_id: int, offset: int) -> None:
        self._commits.commit_oneway(queue_id, offset)

    def query(self, queue_id: int) -> int | None:
        self._commits.arrive()
        offsets = pulling.begins(self._queues[queue_id], self._commits[queue_id])
        return self._chance.choice(sorted(offsets, key=str))

    def search(self, queue_id: int, place: int, shift_ms: int) -> Searched:
        queue = self._queues[queue_id]
        times = tuple((at, self._times[queue_id][at]) for at in range(queue.first, queue.end))
        requested_ms = (times[place % len(times)][1] if times else self._now_ms) + shift_ms
        found = self._chance.choice(sorted(pulling.found_by_time(times, requested_ms)))
        return Searched(times, requested_ms, found)

    def min_offset(self, queue_id: int) -> int:
        return self._queues[queue_id].first

    def max_offset(self, queue_id: int) -> int:
        return self._queues[queue_id].end

    def expire(self) -> None:
        self._queues = [q._replace(first=self._chance.randint(q.first, q.end)) for q in self._queues]

    def write(self) -> None:
        self._commits.write()

    def inject(self, fault: BrokerFault) -> None:
        self._commits.inject(fault)

    def close(self) -> None:
        pass

    def _pulled_from(self, queue_id: int, answer: pulling.Answer) -> Pulled:
        queue, ids = self._queues[queue_id], self._ids[queue_id]
        messages = tuple(Message(ids[at], queue.tags[at], at) for at in answer.offsets)
        return Pulled(answer.status, answer.next_offset, queue.first, queue.end, messages)
