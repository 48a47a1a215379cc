"""A broker and a member whose messages fail, as a target for behaviours of Retry.

The broker's processors answer the member's requests, and move its delayed copies, when the script says so.
The member is complete, except for its timers. It sends a message back by one request, and a copy of it by
another one if that fails: both are the same action of the model. Each call of its listener ends when the
script says so. After a crash with an old progress, the broker has none: it is a slave that took over.
"""

import asyncio
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any, Final

from mqproof.conformance.behaviours.corpus import Script, Stimulus, Variables, bounded
from mqproof.conformance.behaviours.subject import DeviationError
from mqproof.conformance.subjects.stepped.delayed_requests import Held, at_rest
from mqproof.conformance.subjects.stepped.recorded_log import (
    ADDRESS,
    BROKER,
    RecordedLog,
    channel,
    send_request,
    sent,
    services_of,
)
from mqproof.conformance.subjects.stepped.step_loop import StepLoop
from mqproof.conformance.subjects.stepped.untimed_consumer import GROUP, QUEUE, SteppedMember, killed, route
from mqproof.impl.broker.config import BrokerConfig
from mqproof.impl.broker.delayed import DelayedDelivery, Ended
from mqproof.impl.broker.flow_control import SendGate
from mqproof.impl.broker.long_polling import PullHolds
from mqproof.impl.broker.processors import pull, retries
from mqproof.impl.broker.state.clients import ClientTable
from mqproof.impl.broker.state.pull_progress import PullProgress
from mqproof.impl.broker.state.statistics import Statistics
from mqproof.impl.broker.state.topics import DEAD_LETTER_PREFIX
from mqproof.impl.client.consuming.assigned_queues import PullLimits
from mqproof.impl.client.consuming.process_queue import ProcessQueue
from mqproof.impl.client.consuming.push_consumer import PushConsumerConfig
from mqproof.impl.client.model import MessageQueue, ReceivedMessage, RetryLater
from mqproof.impl.remoting import headers
from mqproof.impl.remoting.bodies import SubscriptionGroup, TopicConfig
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.command import Command
from mqproof.impl.remoting.headers import OffsetResponse, PullRequest, UpdateOffsetRequest
from mqproof.impl.remoting.message import (
    ORIGIN_MESSAGE_ID,
    RETRY_PREFIX,
    RETRY_TOPIC,
    Message,
    StoredMessage,
)
from mqproof.impl.remoting.request_handler import RefusedError
from mqproof.impl.runtime.clock import now_ms
from mqproof.impl.runtime.network import Address
from mqproof.impl.runtime.runtime import Runtime
from mqproof.impl.store.config import FlushMode, StoreConfig
from mqproof.impl.store.delay import SCHEDULE_TOPIC, unit_code
from mqproof.impl.store.results import PutStatus
from mqproof.reference import retry as reference

_RETRY: Final = MessageQueue(RETRY_PREFIX + GROUP, QUEUE.broker_name, 0)
_TICK_MS: Final = 10_000
_FIRST_LEVEL: Final = 3
_SHORT_MS: Final = 1
"""The delay of the levels below the first one of a retry."""
_LONG_MS: Final = 10**9
_AGAIN_S: Final = 5.0
"""A message that the broker did not take back is consumed again after this time."""
_KINDS: Final = {
    QUEUE.topic: "topic",
    SCHEDULE_TOPIC: "delay",
    _RETRY.topic: "retry",
    DEAD_LETTER_PREFIX + GROUP: "dead",
}
_QUEUES: Final = {"topic": QUEUE, "retry": _RETRY}
_FILE: Final = "config/delayOffset.json"
_FILES: Final = (_FILE, f"{_FILE}.bak")


class _Topics(dict[str, TopicConfig]):
    """The topics of the broker, each with one queue. It creates those that it needs."""

    async def ensure(self, name: str, _queues: int, **_: object) -> TopicConfig:
        return self.setdefault(name, TopicConfig(name, read_queue_nums=1, write_queue_nums=1))


class _OneByOne(DelayedDelivery):
    """A delivery that stores one message, and then waits as after a failure."""

    stored = 0

    def _put(self, stored: StoredMessage, address: Address, ended: Ended) -> None:
        if self.stored:
            ended(None, PutStatus.SERVICE_NOT_AVAILABLE)
            return
        self.stored += 1
        super()._put(stored, address, ended)


class _Member(SteppedMember):
    """The member, with the calls of its listener by queue and offset, and the offsets of its group."""

    def __init__(self, runtime: Runtime, reconsume_max: int, committed: dict[str, int]) -> None:
        self._committed = committed
        self.calls: dict[tuple[str, int], asyncio.Future[RetryLater | None]] = {}
        config = PushConsumerConfig(limits=PullLimits(batch=1), reconsume_max=reconsume_max)
        super().__init__("c", ["c"], runtime, self._listen, config)

    async def begin(self) -> None:
        await self.start()
        await self.rebalance()

    def share(self, queues: Sequence[MessageQueue], _ids: Sequence[str], _own: str) -> list[MessageQueue]:
        return list(queues)

    def pulled(self, queue: MessageQueue) -> Held | None:
        """Return the pull of a queue that is in progress."""
        pulls = (one for one in self.requests.held if one.request.code == RequestCode.PULL_MESSAGE)
        return next((one for one in pulls if one.request.fields["topic"] == queue.topic), None)

    def next(self, queue: MessageQueue) -> int:
        held = self.pulled(queue)
        if held is None:
            raise DeviationError(f"the member does not pull {queue}")
        return headers.read(PullRequest, held.request.fields).queue_offset

    def queue(self, queue: MessageQueue) -> ProcessQueue:
        return next(one for one in self.consumer._queues.process_queues() if one.queue == queue)

    async def die(self) -> None:
        await killed(self.consumer)
        for call in self.calls.values():
            call.cancel()
        await at_rest()

    async def _listen(self, messages: Sequence[ReceivedMessage]) -> RetryLater | None:
        (message,) = messages
        key = (message.queue.topic, message.queue_offset)
        call = self.calls[key] = asyncio.get_running_loop().create_future()
        try:
            answer: RetryLater | None = await call
            return answer
        finally:
            del self.calls[key]

    def at_once(self, request: Command) -> Command | None:
        fields = request.fields
        match request.code:
            case RequestCode.GET_ROUTEINFO_BY_TOPIC if fields["topic"] == _RETRY.topic:
                return request.answer(ResponseCode.SUCCESS, body=route())
            case RequestCode.QUERY_CONSUMER_OFFSET:
                offset = self._committed.get(fields["topic"], 0)
                return request.answer(ResponseCode.SUCCESS, headers.write(OffsetResponse(offset)))
            case RequestCode.UPDATE_CONSUMER_OFFSET:
                header = headers.read(UpdateOffsetRequest, fields)
                self._committed[header.topic] = header.commit_offset
                return request.answer(ResponseCode.SUCCESS)
            case _:
                return super().at_once(request)


class SteppedRetries:
    """Drives a broker and a member through a behaviour of Retry.

    Names of variables and actions are those of Retry.tla.
    """

    def open(self, script: Script) -> None:
        self._steps = script.steps
        self._states = list(script.states())
        self._at = 0
        config: reference.Config = bounded("Retry", script.configuration)
        self._config = config
        self._loop = StepLoop("mqproof.impl")
        self._run = self._loop.run
        # A level more than the ladder has, unless the ladder ends there: a wrong level has another delay.
        levels = config.level_max + (config.retries_max <= config.level_max)
        ladder_ms = (_TICK_MS * retry for retry in range(1, levels + 1))
        delays_ms = (*[_SHORT_MS] * (_FIRST_LEVEL - 1), *ladder_ms)
        self._log = RecordedLog(
            StoreConfig(
                flush_mode=FlushMode.SYNC_FLUSH,
                commit_log_segment_bytes=1 << 13,
                consume_queue_segment_bytes=20 * 64,
                index_enabled=False,
                sync_flush_timeout_ms=_LONG_MS,
                delay_levels_ms=delays_ms,
            )
        )
        self._begin_ms = now_ms(self._log.clock)
        broker = BrokerConfig(name=BROKER, store=self._log.config)
        names = (QUEUE.topic, _RETRY.topic)
        self._services = SimpleNamespace(
            config=broker,
            runtime=self._log.runtime,
            address=ADDRESS,
            is_slave=False,
            topics=_Topics(
                {name: TopicConfig(name, read_queue_nums=1, write_queue_nums=1) for name in names}
            ),
            groups={GROUP: SubscriptionGroup(group_name=GROUP)},
            clients=ClientTable(),
            pull_progress=PullProgress(broker.offset_pairs_max),
            sends=SendGate(1000, 1 << 20, _LONG_MS, lambda: asyncio.get_running_loop().time()),
            statistics=Statistics("cluster"),
            events=None,
            level_logged_s=float("-inf"),
            tracing_fields=dict,
        )
        self._origins: list[int] = []
        self._requests: dict[int, Held] = {}
        """By place: the member's request to send the record back."""
        self._answers: dict[int, asyncio.Task[Command]] = {}
        """By place of the copy: the broker's answer."""
        self._committed: dict[str, int] = {}
        self._start_broker()
        self._start_member()

    def take(self, at: int) -> None:
        step = self._steps[at]
        _ACTIONS[step.action](self, *step.parameters)
        self._at = at + 1

    def look(self) -> Variables:
        records = self._log.records()
        if len(records) != len(self._origins):
            raise DeviationError(f"the log has {len(records)} records, {len(self._origins)} expected")
        begun = self._begun(records)
        calls = {i for i in begun if self._key(records[i - 1]) in self._member.calls}
        held = {i for i in begun if self._is_held(records[i - 1])}
        return {
            "log": [self._shown(records, i) for i in range(len(records))],
            "moved": sorted(i for i, one in enumerate(records, 1) if self._is_moved(one)),
            "now": self._ticks(now_ms(self._log.clock)),
            "calls": sorted(calls),
            "failed": sorted(held - calls),
            "done": sorted(begun - held),
        }

    def refuses(self, step: Stimulus) -> bool:
        tried = _REFUSALS.get(step.action)
        return tried is not None and bool(tried(self, *step.parameters))

    def close(self) -> None:
        self._loop.close()

    # The broker

    def _send(self, message: str) -> None:
        self._run(self._appended(message))
        self._origins.append(0)

    async def _appended(self, message: str) -> None:
        answer = asyncio.ensure_future(sent(self._services, send_request(message, {}, message.encode())))
        await at_rest()
        answer.cancel()

    def _secure(self) -> None:
        self._run(self._log.secure())
        self._run(at_rest())
        self._run(self._delays.persist())

    def _move(self, place: int) -> None:
        self._delays.stored = 0
        self._run(self._moved(self._level(self._log.records()[place - 1])))
        self._require_added(place)

    async def _moved(self, *levels: int) -> None:
        """Let the broker deliver the copies of these levels that are due, but at most one."""
        work = [asyncio.ensure_future(self._delays._deliver(level, ADDRESS)) for level in levels]
        await at_rest()
        for each in work:
            each.cancel()
        await asyncio.gather(*work, return_exceptions=True)

    def _tick(self) -> None:
        self._log.clock.advance_ms(_TICK_MS)

    def _crash(self, length: int, old: bool) -> None:
        self._log.crash(length)
        del self._origins[length:]
        for path in _FILES if old else ():
            if self._log.disk.exists(path):
                self._log.disk.lose(path)
        self._start_broker()
        for place in list(self._answers):
            self._lose(place)

    def _start_broker(self) -> None:
        self._log.start()
        holds = PullHolds()
        self._delays = _OneByOne(_FILE, self._log.store, holds, self._log.runtime)
        self._delays.load()
        self._delays.cut()
        self._services.store, self._services.holds, self._services.delays = (
            self._log.store,
            holds,
            self._delays,
        )

    # The member

    def _start_member(self) -> None:
        self._member = _Member(self._loop.runtime, self._config.retries_max, self._committed)
        self._run(self._member.begin())

    def _deliver(self, place: int) -> None:
        stored = self._log.records()[place - 1]
        queue = _QUEUES[_KINDS[stored.message.topic]]
        if (offset := self._member.next(queue)) != stored.queue_offset:
            raise DeviationError(f"the member pulls from {offset} of {queue}, {stored.queue_offset} expected")
        held = self._member.pulled(queue)
        assert held is not None
        answer = self._run(self._pulled(held.request))
        if answer is None:
            raise DeviationError(f"the record at {place} is not delivered")
        held.answer(answer)
        self._run(at_rest())

    async def _pulled(self, request: Command) -> Command | None:
        reply = pull.pull_message(services_of(self._services), request, channel())
        if reply is None or isinstance(reply, Command):
            return reply
        waiting = asyncio.ensure_future(reply)
        await at_rest()
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        return None

    def _succeed(self, place: int) -> None:
        self._return(place, None)

    def _fail(self, place: int) -> None:
        self._return(place, RetryLater())
        self._note_request(place)

    def _return(self, place: int, answer: RetryLater | None) -> None:
        self._member.calls[self._key(self._log.records()[place - 1])].set_result(answer)
        self._run(at_rest())

    def _note_request(self, place: int) -> None:
        """Find the request that the member sends now to send the record back; it may send none."""
        known = [*self._requests.values(), *(self._member.pulled(queue) for queue in _QUEUES.values())]
        new = [held for held in self._member.requests.held if held not in known]
        if len(new) > 1:
            raise DeviationError(f"the member sends {len(new)} requests for one message")
        if new:
            self._requests[place] = new[0]

    def _send_back(self, place: int) -> None:
        if place not in self._requests:
            self._fail_again(place)
        work = self._loop.loop.create_task(self._answered(self._requests[place].request))
        self._run(at_rest())
        self._require_added(place)
        self._answers[len(self._origins)] = work

    def _fail_again(self, place: int) -> None:
        """Let the member consume a message again that no request took back; it fails as before."""
        self._run(asyncio.sleep(_AGAIN_S))
        self._run(at_rest())
        if self._key(self._log.records()[place - 1]) not in self._member.calls:
            raise DeviationError(f"the member does not send the record at {place} back")
        self._fail(place)

    async def _answered(self, request: Command) -> Command:
        if request.code != RequestCode.CONSUMER_SEND_MSG_BACK:
            return await sent(self._services, request)
        try:
            answer = await retries.send_back(services_of(self._services), request, channel())
        except RefusedError as error:
            return request.answer(error.code, remark=error.remark)
        assert answer is not None, "every request is answered"
        return answer

    def _confirm(self, place: int) -> None:
        work, held = self._answers.pop(place), self._requests.pop(self._origins[place - 1])
        if not work.done():
            raise DeviationError(f"the copy at {place} is durable, but not confirmed")
        if work.result().code != ResponseCode.SUCCESS:
            raise DeviationError(f"the copy at {place} was answered {work.result().remark}")
        held.answer(work.result())
        self._run(at_rest())

    def _lose(self, place: int) -> None:
        self._answers.pop(place).cancel()
        origin = self._states[self._at]["log"][place - 1]["origin"]
        self._requests.pop(origin).lose()
        self._run(at_rest())
        self._note_request(origin)

    def _member_ends(self, old: bool) -> None:
        if old:
            self._committed.clear()
        else:
            self._run(self._member.consumer._offsets.save())
        for work in self._answers.values():
            work.cancel()
        self._answers, self._requests = {}, {}
        self._run(self._member.die())
        self._start_member()

    # Disabled actions

    def _refuses_move(self, place: int) -> bool:
        """Let the broker deliver what is due, immediately before the next tick."""
        state = self._states[self._at]
        del place
        if self._log.durable_count() > state["safe"] or any(
            self._is_due(i) for i in range(1, state["safe"] + 1)
        ):
            return False
        self._log.clock.advance_ms(_TICK_MS - 1)
        self._delays.stored = 0
        self._run(self._moved(*range(1, len(self._log.config.delay_levels_ms) + 1)))
        self._log.clock.advance_ms(1 - _TICK_MS)
        return True

    def _is_due(self, place: int) -> bool:
        state = self._states[self._at]
        record = state["log"][place - 1]
        return record["kind"] == "delay" and place not in state["moved"] and record["due"] <= state["now"]

    def _refuses_delivery(self, place: int) -> bool:
        """Pull a record that is not durable yet."""
        records = self._log.records()
        if not self._log.durable_count() < place <= len(records):
            return False
        queue = _QUEUES.get(_KINDS[records[place - 1].message.topic])
        held = None if queue is None else self._member.pulled(queue)
        if queue is None or held is None or self._member.next(queue) != records[place - 1].queue_offset:
            return False
        if self._run(self._pulled(held.request)) is not None:
            raise DeviationError(f"the record at {place} is delivered, although it is not durable")
        return True

    def _refuses_confirmation(self, place: int) -> bool:
        """Look for the answer while the copy is not durable."""
        if place not in self._answers:
            return False
        if self._answers[place].done():
            raise DeviationError(f"the copy at {place} is confirmed, although it is not durable")
        return True

    # Helper methods

    def _require_added(self, origin: int) -> None:
        """Raise DeviationError unless one record was added; it is a copy of the one at `origin`."""
        if len(self._log.records()) != len(self._origins) + 1:
            raise DeviationError(f"{len(self._log.records()) - len(self._origins)} records were added")
        self._origins.append(origin)

    def _shown(self, records: Sequence[StoredMessage], i: int) -> dict[str, Any]:
        stored, message = records[i], records[i].message
        kind, stored_ms = _KINDS[message.topic], records[i].store_timestamp_ms
        if self._origins[i]:
            self._require_origin(message, records)
        due_ms = unit_code(message, stored_ms, self._log.config.delay_levels_ms) if kind == "delay" else 0
        return {
            "kind": kind,
            "of": message.body.decode(),
            "times": message.reconsume_times,
            "origin": self._origins[i],
            "at": self._ticks(stored.store_timestamp_ms) if kind in ("delay", "retry") else 0,
            "due": self._ticks(due_ms) if due_ms else 0,
        }

    def _require_origin(self, message: Message, records: Sequence[StoredMessage]) -> None:
        """Raise DeviationError unless the copy names the record of the topic, whatever it is a copy of."""
        first = next(one for one in records if one.message.body == message.body)
        expected = {RETRY_TOPIC: QUEUE.topic, ORIGIN_MESSAGE_ID: first.offset_message_id}
        named = {name: message.properties.get(name) for name in expected}
        if named != expected:
            raise DeviationError(f"a copy names {named}, {expected} expected")

    def _begun(self, records: Sequence[StoredMessage]) -> set[int]:
        """Return the places of the records that the member has received."""
        ends = {queue.topic: self._member.next(queue) for queue in _QUEUES.values()}
        return {i for i, one in enumerate(records, 1) if one.queue_offset < ends.get(one.message.topic, 0)}

    def _is_held(self, stored: StoredMessage) -> bool:
        queue = self._member.queue(_QUEUES[_KINDS[stored.message.topic]])
        return stored.queue_offset in queue._messages

    def _is_moved(self, stored: StoredMessage) -> bool:
        if stored.message.topic != SCHEDULE_TOPIC:
            return False
        return stored.queue_offset < self._delays.offsets().offset_table.get(self._level(stored), 0)

    def _level(self, stored: StoredMessage) -> int:
        return stored.message.queue_id + 1

    def _key(self, stored: StoredMessage) -> tuple[str, int]:
        return stored.message.topic, stored.queue_offset

    def _ticks(self, time_ms: int) -> int:
        return (time_ms - self._begin_ms) // _TICK_MS


_ACTIONS: Final[Mapping[str, Any]] = {
    "Send": SteppedRetries._send,
    "Secure": SteppedRetries._secure,
    "Tick": SteppedRetries._tick,
    "Move": SteppedRetries._move,
    "Deliver": SteppedRetries._deliver,
    "Succeed": SteppedRetries._succeed,
    "Fail": SteppedRetries._fail,
    "SendBack": SteppedRetries._send_back,
    "Confirm": SteppedRetries._confirm,
    "Lose": SteppedRetries._lose,
    "Crash": SteppedRetries._crash,
    "MemberEnds": SteppedRetries._member_ends,
}
_REFUSALS: Final[Mapping[str, Any]] = {
    "Move": SteppedRetries._refuses_move,
    "Deliver": SteppedRetries._refuses_delivery,
    "Confirm": SteppedRetries._refuses_confirmation,
}
"""Functions that try a disabled action; they return False if it could not be tried."""
