"""A broker as a target of the retry suite, and the reference as one."""

import asyncio
import random
from collections.abc import Mapping
from typing import Final, NamedTuple

from mqproof.conformance.adapters.brokers.environments import (
    Environment,
    OnEnvironment,
    SimulatedEnvironment,
    loop_time_s,
)
from mqproof.conformance.engine.broker_faults import CRASHES, BrokerFault
from mqproof.conformance.engine.shared_steps import Span
from mqproof.conformance.engine.targets import REFERENCE
from mqproof.conformance.suites.retry.oracle import bound_for, wait_s
from mqproof.conformance.suites.retry.steps import SendBack
from mqproof.conformance.suites.retry.target import (
    RETRIES_MAX,
    Answer,
    Capability,
    Copy,
    Place,
    Setup,
)
from mqproof.impl.client.connection.records import read_records
from mqproof.impl.remoting import headers
from mqproof.impl.remoting.bodies import SubscriptionGroup
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.headers import PULL_HAS_SUBSCRIPTION, PullRequest, PullResponse, SendBackRequest
from mqproof.impl.remoting.message import ORIGIN_MESSAGE_ID, RETRY_PREFIX, RETRY_TOPIC, StoredMessage
from mqproof.impl.store.delay import parse_levels

_DEAD_PREFIX: Final = "%DLQ%"
_SLACK_S: Final = 2.0
"""The tolerance for late messages in simulated time: our broker checks them at least once per second."""
_REAL_SLACK_S: Final = 60.0
"""The tolerance for late messages in real time; it is long, because a machine may be slow."""
_CLOCK_S: Final = 0.02
"""The tolerance of times: store times are whole milliseconds."""
_READS_MAX: Final = 1000


class BrokerRetry(OnEnvironment):
    """The target of the retry suite that drives a broker in an environment."""

    inspections = ("topics and groups", "frames")

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        able = frozenset(Capability) if environment.is_simulated else frozenset[Capability]()
        self.capabilities: frozenset[Capability | BrokerFault] = environment.faults | able
        self.is_simulated = environment.is_simulated

    def open(self, retry_queues: int) -> Setup:
        self._retry_queues = retry_queues
        self._arrive()
        slack_s = _SLACK_S if self.is_simulated else _REAL_SLACK_S
        return Setup(self._topic, self._levels_s, slack_s, _CLOCK_S)

    def send(self, msg_id: str, level: int) -> tuple[str, Span]:
        return self._environment.run(self._send(msg_id, level))

    def send_back(self, handle: int, level: int, times_max: int | None) -> tuple[Answer, Span]:
        return self._environment.run(self._send_back(handle, level, times_max))

    def send_back_oneway(self, handle: int, level: int, times_max: int | None) -> Span:
        return self._environment.run(self._send_back_oneway(handle, level, times_max))

    def read(self, place: Place) -> tuple[tuple[Copy, ...], Span]:
        return self._environment.run(self._read(place))

    def now_s(self) -> float:
        return self._environment.run(loop_time_s())

    def wait(self, seconds: float) -> None:
        self._environment.run(asyncio.sleep(seconds))

    def lose_messages(self) -> None:
        assert isinstance(self._environment, SimulatedEnvironment), "the capability"
        self._environment.lose_messages()
        self._environment.run(self._caller.until_it_serves())
        self._next.clear()

    async def _open(self) -> None:
        self._topic, self._group = f"{self._caller.prefix}_topic", f"{self._caller.prefix}_group"
        self._topics = {
            Place.TOPIC: (self._topic, 1),
            Place.RETRY: (RETRY_PREFIX + self._group, self._retry_queues),
            Place.DEAD: (_DEAD_PREFIX + self._group, 1),
        }
        self._next: dict[tuple[str, int], int] = {}
        self._levels_s = self._environment.delay_levels_s
        if not self.is_simulated:
            self._levels_s = _reported_levels_s(await self._caller.settings()) or self._levels_s
        await self._caller.make_topic(self._topic, 1)
        await self._caller.make_group(
            SubscriptionGroup(
                group_name=self._group, retry_max_times=RETRIES_MAX, retry_queue_nums=self._retry_queues
            )
        )

    async def _leave(self) -> None:
        await self._caller.forget([topic for topic, _ in self._topics.values()], [self._group])
        await self._caller.stop()

    async def _send(self, msg_id: str, level: int) -> tuple[str, Span]:
        begin_s = await loop_time_s()
        sent = await self._caller.send(self._topic, 0, msg_id, delay_level=level)
        return "" if level else sent.msg_id, Span(begin_s, await loop_time_s())

    async def _send_back(self, handle: int, level: int, times_max: int | None) -> tuple[Answer, Span]:
        begin_s = await loop_time_s()
        answer = await self._caller.request(
            RequestCode.CONSUMER_SEND_MSG_BACK, self._back(handle, level, times_max), accepts=()
        )
        done = Answer.OK if answer.code == ResponseCode.SUCCESS else Answer.REFUSED
        return done, Span(begin_s, await loop_time_s())

    async def _send_back_oneway(self, handle: int, level: int, times_max: int | None) -> Span:
        begin_s = await loop_time_s()
        await self._caller.request_oneway(
            RequestCode.CONSUMER_SEND_MSG_BACK, self._back(handle, level, times_max)
        )
        # When a later request is answered, this one has been processed, though other requests may have come
        # first.
        return Span(begin_s, await loop_time_s() + _SLACK_S)

    def _back(self, handle: int, level: int, times_max: int | None) -> SendBackRequest:
        """Return the request as clients send it; 5.5 fails without the topic."""
        return SendBackRequest(
            handle,
            self._group,
            level,
            origin_msg_id="",
            origin_topic=self._topic,
            unit_mode=False,
            max_reconsume_times=times_max,
        )

    async def _read(self, place: Place) -> tuple[tuple[Copy, ...], Span]:
        begin_s = await loop_time_s()
        topic, queues = self._topics[place]
        copies = [copy for queue_id in range(queues) for copy in await self._read_queue(topic, queue_id)]
        return tuple(copies), Span(begin_s, await loop_time_s())

    async def _read_queue(self, topic: str, queue_id: int) -> list[Copy]:
        found: list[Copy] = []
        for _ in range(_READS_MAX):
            offset = self._next.get((topic, queue_id), 0)
            header = PullRequest(
                consumer_group=self._group, topic=topic, queue_id=queue_id, queue_offset=offset,
                max_msg_nums=32, sys_flag=PULL_HAS_SUBSCRIPTION, commit_offset=0, suspend_timeout_millis=0,
                sub_version=0, subscription="*", expression_type="TAG",
            )  # fmt: skip
            codes = (ResponseCode.SUCCESS, ResponseCode.PULL_NOT_FOUND, ResponseCode.TOPIC_NOT_EXIST)
            answer = await self._caller.request(RequestCode.PULL_MESSAGE, header, accepts=codes)
            if answer.code != ResponseCode.SUCCESS:
                break
            self._next[topic, queue_id] = headers.read(PullResponse, answer.fields).next_begin_offset
            found += (_copy(stored, topic) for stored in read_records(answer.body))
        return found


def _reported_levels_s(settings: Mapping[str, str]) -> tuple[float, ...]:
    """Return the delay levels in a broker's configuration; empty if it does not report them."""
    try:
        return tuple(delay_ms / 1000 for delay_ms in parse_levels(settings.get("messageDelayLevel", "")))
    except ValueError:
        return ()


def _copy(stored: StoredMessage, topic: str) -> Copy:
    message = stored.message
    return Copy(
        message.body.decode(),
        message.reconsume_times,
        message.properties.get(RETRY_TOPIC, topic),
        message.properties.get(ORIGIN_MESSAGE_ID, ""),
        stored.commit_offset,
        stored.store_timestamp_ms / 1000,
    )


class _Stored(NamedTuple):
    due_s: float
    place: Place
    copy: Copy


class ReferenceRetry:
    """The reference itself, with random choices.

    If the suite does not explain its answers, the suite has a defect.
    """

    name = REFERENCE
    is_simulated = True
    capabilities = frozenset[Capability | BrokerFault]({*Capability, *BrokerFault})

    def __init__(self, seed: int = 0) -> None:
        self._chance = random.Random(seed)

    def open(self, retry_queues: int) -> Setup:
        self._retry_queues = retry_queues
        self._now_s = 0.0
        self._stored: list[_Stored] = []
        self._unread: list[_Stored] = []
        self._delayed: list[_Stored] = []
        self._setup = Setup("topic", SimulatedEnvironment.delay_levels_s, _SLACK_S, _CLOCK_S)
        return self._setup

    def send(self, msg_id: str, level: int) -> tuple[str, Span]:
        copy = Copy(msg_id, 0, "topic", "", len(self._stored))
        self._store(Place.TOPIC, copy, wait_s(self._setup, level))
        return "" if level else f"id of {msg_id}", self._span()

    def send_back(self, handle: int, level: int, times_max: int | None) -> tuple[Answer, Span]:
        if handle >= len(self._stored):
            return (Answer.REFUSED if self._retry_queues else Answer.OK), self._span()
        original = self._stored[handle].copy
        if self._retry_queues:
            request = SendBack(original, level, times_max, Answer.OK, self._span())
            place, waits_s = bound_for(self._setup, request)
            origin = original.origin or f"id of {original.msg_id}"
            copy = original._replace(times=original.times + 1, origin=origin, handle=len(self._stored))
            self._store(place, copy, waits_s + self._chance.uniform(0, _SLACK_S))
        return Answer.OK, self._span()

    def send_back_oneway(self, handle: int, level: int, times_max: int | None) -> Span:
        if self._chance.random() < 0.5:
            self.send_back(handle, level, times_max)
        return self._span()

    def read(self, place: Place) -> tuple[tuple[Copy, ...], Span]:
        due = [each for each in self._unread if each.place is place and each.due_s <= self._now_s]
        self._unread = [each for each in self._unread if each not in due]
        return tuple(each.copy._replace(stored_s=each.due_s) for each in due), self._span()

    def now_s(self) -> float:
        return self._now_s

    def wait(self, seconds: float) -> None:
        self._now_s += seconds

    def inject(self, fault: BrokerFault) -> None:
        """Apply the fault: after a crash, delayed messages that had arrived may arrive once more."""
        self._now_s += self._chance.uniform(0, 3)
        if fault in CRASHES:
            came = [each for each in self._delayed if each.due_s <= self._now_s]
            again = [each for each in came if self._chance.random() < 0.3]
            self._unread += [each._replace(due_s=self._now_s) for each in again]

    def lose_messages(self) -> None:
        self._unread.clear()
        self._delayed.clear()

    def close(self) -> None:
        pass

    def _store(self, place: Place, copy: Copy, waits_s: float) -> None:
        stored = _Stored(self._now_s + waits_s, place, copy)
        self._stored.append(stored)
        self._unread.append(stored)
        if waits_s and place is not Place.DEAD:
            self._delayed.append(stored)

    def _span(self) -> Span:
        return Span(self._now_s, self._now_s)
