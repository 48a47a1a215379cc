"""A broker as a target of the suite of timers, and the reference as one."""

import asyncio
import random
from typing import Final

from mqproof.conformance.adapters.brokers.environments import Environment, OnEnvironment, loop_time_s
from mqproof.conformance.engine.broker_faults import ENDS, BrokerFault
from mqproof.conformance.engine.targets import REFERENCE
from mqproof.conformance.suites.timers.target import DELAY_MAX_S, Answer, Capability, Sent
from mqproof.impl.client.connection.records import read_records
from mqproof.impl.remoting import headers
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.headers import (
    PULL_HAS_SUBSCRIPTION,
    PullRequest,
    PullResponse,
    RecallMessageRequest,
    SendRequest,
    SendResponse,
)
from mqproof.impl.remoting.message import encode_properties
from mqproof.reference import timers
from mqproof.reference.timers import Config

_GROUP: Final = "conform_timers"
_PULLED: Final = (ResponseCode.SUCCESS, ResponseCode.PULL_NOT_FOUND, ResponseCode.PULL_OFFSET_MOVED)


class BrokerTimers(OnEnvironment):
    """The target of the suite that drives a broker in an environment."""

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        able = frozenset(Capability) if environment.is_simulated else frozenset[Capability]()
        self.capabilities: frozenset[Capability | BrokerFault] = able | environment.faults

    def open(self) -> None:
        self._seen: dict[int, str] = {}
        """The messages that were read, by their offset: old segments are deleted during a run."""
        self._arrive()

    def send(self, msg_id: str, delay_s: float) -> Sent | None:
        return self._environment.run(self._send(msg_id, delay_s))

    def recall(self, sent: Sent) -> Answer:
        return self._environment.run(self._recall(sent))

    def read(self) -> tuple[str, ...]:
        return self._environment.run(self._read())

    def now_s(self) -> float:
        return self._environment.run(loop_time_s())

    def wait(self, seconds: float) -> None:
        self._environment.run(self._wait(seconds))

    def delete_old(self) -> None:
        self._environment.run(self._caller.request(RequestCode.DELETE_EXPIRED_COMMITLOG))

    async def _open(self) -> None:
        self._topic = f"{self._caller.prefix}_topic"
        await self._caller.make_topic(self._topic, 1)

    async def _leave(self) -> None:
        await self._caller.forget([self._topic], [])
        await self._caller.stop()

    async def _send(self, msg_id: str, delay_s: float) -> Sent | None:
        properties = {
            "TIMER_DELAY_MS": str(round(delay_s * 1000)),
            "UNIQ_KEY": f"{self._caller.prefix}-{msg_id}",
        }
        header = SendRequest(
            producer_group=_GROUP, topic=self._topic, default_topic="TBW102", default_topic_queue_nums=1,
            queue_id=0, sys_flag=0, born_timestamp=int(1000 * await loop_time_s()), flag=0,
            properties=encode_properties(properties), reconsume_times=0, unit_mode=False, batch=False,
        )  # fmt: skip
        codes = (ResponseCode.SUCCESS, ResponseCode.MESSAGE_ILLEGAL)
        fields = headers.write_send_v2(header)
        answer = await self._caller.request_fields(
            RequestCode.SEND_MESSAGE_V2, fields, msg_id.encode(), accepts=codes
        )
        if answer.code != ResponseCode.SUCCESS:
            return None
        return Sent(msg_id, headers.read(SendResponse, answer.fields).recall_handle)

    async def _recall(self, sent: Sent) -> Answer:
        header = RecallMessageRequest(self._topic, sent.handle or "", _GROUP)
        codes = (ResponseCode.SUCCESS, ResponseCode.ILLEGAL_OPERATION, ResponseCode.SYSTEM_BUSY)
        answer = await self._caller.request(RequestCode.RECALL_MESSAGE, header, accepts=codes)
        return Answer.OK if answer.code == ResponseCode.SUCCESS else Answer.REFUSED

    async def _read(self) -> tuple[str, ...]:
        found: dict[int, str] = {}
        offset, end = 0, 0
        while True:
            header = PullRequest(
                consumer_group=_GROUP, topic=self._topic, queue_id=0, queue_offset=offset, max_msg_nums=32,
                sys_flag=PULL_HAS_SUBSCRIPTION, commit_offset=0, suspend_timeout_millis=0, sub_version=0,
                subscription="*", expression_type="TAG",
            )  # fmt: skip
            answer = await self._caller.request(RequestCode.PULL_MESSAGE, header, accepts=_PULLED)
            response = headers.read(PullResponse, answer.fields)
            end = response.max_offset
            if answer.code == ResponseCode.SUCCESS:
                for stored in read_records(answer.body):
                    found[stored.queue_offset] = stored.message.body.decode()
            elif answer.code != ResponseCode.PULL_OFFSET_MOVED or response.next_begin_offset <= offset:
                break
            offset = response.next_begin_offset
        kept = {place: body for place, body in self._seen.items() if place < end}
        self._seen = dict(sorted({**kept, **found}.items()))
        return tuple(self._seen.values())

    async def _wait(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
        await self._caller.until_it_serves()


class ReferenceTimers:
    """The reference itself, with random choices.

    If the suite does not explain its answers, the suite has a defect.
    """

    name = REFERENCE
    capabilities = frozenset[Capability | BrokerFault]({*Capability, *BrokerFault})
    _config = Config(("m",), copies_max=1 << 20, points_max=1 << 20)

    def __init__(self, seed: int = 0) -> None:
        self._chance = random.Random(seed)

    def open(self) -> None:
        self._now_s = 0.0
        self._states: dict[str, timers.State] = {}
        self._due_s: dict[str, float] = {}
        self._visible: list[str] = []

    def send(self, msg_id: str, delay_s: float) -> Sent | None:
        if delay_s > DELAY_MAX_S:
            return None
        (state,) = timers.initial(self._config)
        state = _taken(timers.send(self._config, state, "m", 1))
        state = _taken(timers.learn(self._config, state))
        self._states[msg_id] = _taken(timers.secure(self._config, state))
        self._due_s[msg_id] = self._now_s + delay_s
        return Sent(msg_id, msg_id)

    def recall(self, sent: Sent) -> Answer:
        self._deliver()
        recalled = timers.recall(self._config, self._states[sent.msg_id], "m")
        if recalled is None:
            return Answer.REFUSED
        self._states[sent.msg_id] = _taken(timers.secure(self._config, recalled))
        return Answer.OK

    def read(self) -> tuple[str, ...]:
        self._deliver()
        return tuple(self._visible)

    def now_s(self) -> float:
        return self._now_s

    def wait(self, seconds: float) -> None:
        self._now_s += seconds

    def delete_old(self) -> None:
        """Roll the messages that wait, and perhaps write a point."""
        for msg_id, state in self._states.items():
            rolled = timers.roll(self._config, state, "m") or state
            learned = rolled
            while (further := timers.learn(self._config, learned)) is not None:
                learned = further
            pointed = timers.point(self._config, learned) if self._chance.random() < 0.5 else None
            after = pointed or learned
            self._states[msg_id] = after._replace(safe=len(after.log))

    def _deliver(self) -> None:
        for msg_id, state in self._states.items():
            if self._now_s < self._due_s[msg_id]:
                continue
            due = timers.tick(self._config, state) or state
            delivered = timers.deliver(self._config, due, "m")
            self._states[msg_id] = delivered or due
            if delivered is not None:
                self._visible.append(msg_id)

    def inject(self, fault: BrokerFault) -> None:
        self._deliver()
        if fault not in ENDS:
            return
        self._now_s += 1
        for msg_id, state in self._states.items():
            shortest = state.safe if fault is BrokerFault.POWER_LOSS else len(state.log)
            length = self._chance.randint(shortest, len(state.log))
            after = _taken(timers.crash(self._config, state, length))
            self._states[msg_id] = _taken(timers.read_log(self._config, after))
            if timers.has(state.log, "final", "m") and not timers.has(after.log, "final", "m"):
                self._visible.remove(msg_id)

    def close(self) -> None:
        pass


def _taken(state: timers.State | None) -> timers.State:
    assert state is not None
    return state
