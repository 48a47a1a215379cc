"""The messages of a broker that wait for a time, as a target for behaviours of Timers.

The broker's processors get the requests, and its work is done step by step. Each record has a log segment of
its own, so the deletion of a segment is the deletion of a record. The broker can read only the records that
the model's broker has read.

The broker keeps a record, or a place in the log where finals may be, for longer than it has to. A point may
therefore cover less than the model's point, and a deletion may come too early. It writes no point that covers
nothing; here it is written. A recall of a message that is due is refused.
"""

import asyncio
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, Final

from mqproof.conformance.behaviours.corpus import Script, Stimulus, Variables, bounded
from mqproof.conformance.behaviours.subject import DeviationError, ImpossibleError
from mqproof.conformance.subjects.stepped.delayed_requests import at_rest
from mqproof.conformance.subjects.stepped.recorded_log import (
    ADDRESS,
    BROKER,
    TOPIC,
    RecordedLog,
    channel,
    send_request,
    sent,
    services_of,
)
from mqproof.conformance.subjects.stepped.step_loop import StepLoop
from mqproof.impl.broker import timed_messages
from mqproof.impl.broker.config import BrokerConfig
from mqproof.impl.broker.long_polling import PullHolds
from mqproof.impl.broker.processors import recalls
from mqproof.impl.broker.state.statistics import Statistics
from mqproof.impl.broker.timed_messages import TIMER_TOPIC, Point
from mqproof.impl.broker.timers import LOG_READER, Timers
from mqproof.impl.remoting import headers
from mqproof.impl.remoting.bodies import TopicConfig
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.command import Command, new_request
from mqproof.impl.remoting.headers import RecallMessageRequest
from mqproof.impl.remoting.message import TIMER_DELAY_MS, StoredMessage
from mqproof.impl.remoting.recall_handle import RecallHandle
from mqproof.impl.remoting.request_handler import RefusedError
from mqproof.impl.runtime.clock import now_ms
from mqproof.impl.store.config import StoreConfig
from mqproof.reference import timers as reference

_TICK_MS: Final = 3 * 86_400_000
"""The longest delay that a broker accepts by default, where the model's broker accepts one tick."""
_LATE_MS: Final = 1000
"""The broker delivers so long after a message is due."""
_SEGMENT_BYTES: Final = 390
"""Each record fits into a segment, and no two do, unless both are points."""
_STORE: Final = StoreConfig(
    commit_log_segment_bytes=_SEGMENT_BYTES,
    consume_queue_segment_bytes=20 * 64,
    index_enabled=False,
    file_reserved_ms=1,
)
_POINT: Final = {"of": [], "kind": "point"}


class SteppedTimers:
    """Drives a broker through a behaviour of Timers.

    Names of variables and actions are those of Timers.tla.
    """

    def open(self, script: Script) -> None:
        self._steps = script.steps
        self._states = list(script.states())
        self._at = 0
        self._config: reference.Config = bounded("Timers", script.configuration)
        self._loop = StepLoop("mqproof.impl")
        self._run = self._loop.run
        self._log = RecordedLog(_STORE)
        self._begin_ms = now_ms(self._log.clock)
        self._services = SimpleNamespace(
            config=BrokerConfig(name=BROKER, timer_delay_max_s=self._config.delay_max * _TICK_MS // 1000),
            runtime=self._log.runtime,
            address=ADDRESS,
            is_slave=False,
            topics={TOPIC: TopicConfig(TOPIC, read_queue_nums=1, write_queue_nums=1)},
            statistics=Statistics("cluster"),
            events=None,
            tracing_fields=dict,
        )
        self._start()

    def take(self, at: int) -> None:
        step = self._steps[at]
        _ACTIONS[step.action](self, *step.parameters)
        self._at = at + 1

    def look(self) -> Variables:
        records = self._log.records()
        shown = {
            "log": self._shown_log(records),
            "begin": self._log.deleted_count,
            "ready": self._log.is_up,
            "now": self._ticks(now_ms(self._log.clock)),
        }
        if not self._log.is_up:
            return {**shown, "waiting": []}
        table = self._timers._table
        waiting = [one.commit_offset for one in table.all_waiting() if one.original not in table._held]
        return {**shown, "waiting": sorted(self._place(records, at) for at in waiting)}

    def refuses(self, step: Stimulus) -> bool:
        tried = _REFUSALS.get(step.action)
        return tried is not None and self._log.is_up and bool(tried(self, *step.parameters))

    def close(self) -> None:
        self._loop.close()

    # Producers

    def _send(self, message: str, delay: int) -> None:
        answer = self._run(self._sent(message, delay))
        if answer.code != ResponseCode.SUCCESS:
            raise DeviationError(f"{message} was refused: {answer.remark}")

    async def _sent(self, message: str, delay: int) -> Command:
        return await sent(
            self._services, send_request(message, {TIMER_DELAY_MS: str(delay * _TICK_MS)}, bytes(90))
        )

    def _recall(self, message: str) -> None:
        code, remark = self._run(self._recalled(message))
        if code == ResponseCode.ILLEGAL_OPERATION and self._due(message) <= self._ticks(self._now_ms()):
            raise ImpossibleError("a message that is due is not recalled")
        if code != ResponseCode.SUCCESS:
            raise DeviationError(f"the recall of {message} was refused: {remark}")

    async def _recalled(self, message: str) -> tuple[int, str | None]:
        due_ms = self._begin_ms + self._due(message) * _TICK_MS
        handle = RecallHandle(TOPIC, BROKER, due_ms, message).encode()
        header = RecallMessageRequest(producer_group="P", topic=TOPIC, recall_handle=handle)
        request = new_request(RequestCode.RECALL_MESSAGE, headers.write(header))
        try:
            answer = await recalls.recall_message(services_of(self._services), request, channel())
        except RefusedError as error:
            return error.code, error.remark
        assert answer is not None, "every recall is answered"
        return answer.code, answer.remark

    def _only_known_to_producers(self, _message: str) -> None:
        """The producer receives a result: the broker does not know it."""

    # The broker

    def _learn(self) -> None:
        """Let the broker read the next record."""
        self._let_read(self._states[self._at + 1]["read"])
        self._timers._catch_up()

    def _deliver(self, message: str) -> None:
        del message
        before = len(self._log.records())
        self._deliver_at(_LATE_MS)
        if len(self._log.records()) > before + 1:
            raise ImpossibleError("the broker delivers all messages that are due")

    async def _delivered(self) -> None:
        """Let the broker deliver what is due, until it waits for the next message."""
        work = asyncio.ensure_future(self._timers._deliver())
        await at_rest()
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)

    def _deliver_at(self, later_ms: int) -> None:
        self._log.clock.advance_ms(later_ms)
        self._run(self._delivered())
        self._log.clock.advance_ms(-later_ms)

    def _roll(self, message: str) -> None:
        """Let the broker want to delete the record of the message."""
        found = [one for one in self._timers._table.all_waiting() if one.key == (TOPIC, message)]
        if len(found) != 1:
            raise DeviationError(f"{message} waits {len(found)} times")
        self._log.store._cleaner.wanted_before = found[0].commit_offset + 1
        try:
            self._run(self._timers._roll())
        finally:
            self._log.store._cleaner.wanted_before = 0

    def _write_point(self) -> None:
        records = self._log.records()
        if records and timed_messages.point_of(records[-1].message) is not None:
            raise ImpossibleError("two points fit into one segment")
        before = len(records)
        self._run(self._timers._write_point())
        if len(self._log.records()) == before:
            self._run(self._point_of_nothing())

    async def _point_of_nothing(self) -> None:
        store = self._log.store
        point = self._timers._table.point(store.now_ms(), store.next_commit_offset)
        await store.put(timed_messages.point(point, store.now_ms(), ADDRESS), wait=False)

    def _delete(self) -> None:
        if not self._run(self._deleted()):
            raise ImpossibleError("the broker still needs the record, or the next one is not durable")

    async def _deleted(self) -> bool:
        """Let the store delete its first segment, but no other one."""
        store, own = self._log.store, self._timers._needed_from
        limit = (store.log_begin // _SEGMENT_BYTES + 1) * _SEGMENT_BYTES
        store.keep_log_from(LOG_READER, lambda: min(limit, limit if (needed := own()) is None else needed))
        self._log.clock.advance_ms(1)
        try:
            return await self._log.delete_first()
        finally:
            self._log.clock.advance_ms(-1)
            store.keep_log_from(LOG_READER, own)

    def _secure(self) -> None:
        self._run(self._log.secure())

    def _tick(self) -> None:
        self._log.clock.advance_ms(_TICK_MS)

    def _crash(self, length: int) -> None:
        self._log.crash(length)

    def _start(self) -> None:
        self._log.start()
        store = self._log.store
        self._timers = Timers(store, PullHolds())
        self._services.store, self._services.timers = store, self._timers
        store.keep_log_from(LOG_READER, self._timers._needed_from)
        self._run(self._timers._read(lambda: None))
        self._timers._is_ready = True
        self._let_read(len(self._log.records()))

    # Disabled actions

    def _refuses_send(self, message: str, delay: int) -> bool:
        """Ask for a delay that is too long."""
        if delay <= self._config.delay_max:
            return False
        code = self._run(self._sent(message, delay)).code
        if code != ResponseCode.MESSAGE_ILLEGAL:
            raise DeviationError(f"a delay of {delay} ticks was answered {code}")
        return True

    def _refuses_delivery(self, message: str) -> bool:
        """Let the broker deliver what is due, immediately before the next tick."""
        del message
        is_due = any(self._due(one) <= self._states[self._at]["now"] for one in self._config.msgs)
        self._deliver_at(0 if is_due else _TICK_MS - 1)
        return True

    def _refuses_recall(self, message: str) -> bool:
        """Recall a message that is delivered, recalled, or not read yet."""
        if not self._states[self._at]["asked"][self._config.msgs.index(message)]:
            return False
        self._run(self._recalled(message))
        return True

    def _refuses_deletion(self) -> bool:
        """Let the store delete the first record, which a message needs.

        A start flushes the log; what is needed in the model may then be deleted.
        """
        state = self._states[self._at]
        if state["begin"] >= state["safe"] or self._log.durable_count() > state["safe"]:
            return False
        self._run(self._deleted())
        return True

    # Helper methods

    def _let_read(self, length: int) -> None:
        """Let the broker read that many records of the log."""
        records = self._log.records()
        self._log.store.readable_end = (
            records[length - 1].commit_offset + records[length - 1].size if length else 0
        )
        self._log.store.dispatch()

    def _shown_log(self, records: list[StoredMessage]) -> list[dict[str, Any]]:
        wanted = self._states[self._at]["log"]
        return [self._shown(records, i, wanted[i] if i < len(wanted) else {}) for i in range(len(records))]

    def _shown(self, records: list[StoredMessage], i: int, wanted: Mapping[str, Any]) -> dict[str, Any]:
        stored = records[i]
        assert stored.commit_offset == i * _SEGMENT_BYTES, "a record has a segment of its own"
        message, at = stored.message, self._ticks(stored.store_timestamp_ms)
        if (point := timed_messages.point_of(message)) is not None:
            return self._shown_point(records, point, at, wanted)
        kind, due_ms = "final", timed_messages.due_ms_of(message)
        key = message.properties.get(timed_messages.RECALLED_KEY, stored.message_id)
        if message.topic == TIMER_TOPIC:
            kind = "timer" if timed_messages.recalled_by(message) is None else "recall"
        if kind == "recall":
            due_ms = self._begin_ms + self._due(key) * _TICK_MS
        due = -1 if due_ms is None else self._ticks(due_ms)
        return {"kind": kind, "of": [key], "due": due, "at": at, "read": 0, "scan": 0}

    def _shown_point(
        self, records: list[StoredMessage], point: Point, at: int, wanted: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return a point as the script has it, if it covers no more; otherwise as it is."""
        in_queue = [one for one in records if one.message.topic == TIMER_TOPIC and not one.message.queue_id]
        read = records.index(in_queue[point.read_end - 1]) + 1 if point.read_end else 0
        due = self._ticks(point.due_ms) if point.due_ms else 0
        scan = 1 + sum(one.commit_offset < point.scan_from for one in records)
        shown = {**_POINT, "due": due, "at": at, "read": read, "scan": scan}
        if all(shown[name] <= wanted.get(name, -1) for name in ("due", "read", "scan")):
            shown |= {name: wanted[name] for name in ("due", "read", "scan")}
        return shown

    def _place(self, records: list[StoredMessage], commit_offset: int) -> int:
        return next(i for i, one in enumerate(records, 1) if one.commit_offset == commit_offset)

    def _due(self, message: str) -> int:
        """Return the tick that the producer requested, by the script."""
        due: int = self._states[self._at]["asked"][self._config.msgs.index(message)]
        return due

    def _now_ms(self) -> int:
        return now_ms(self._log.clock)

    def _ticks(self, time_ms: int) -> int:
        return (time_ms - self._begin_ms) // _TICK_MS


_ACTIONS: Final[Mapping[str, Any]] = {
    "Send": SteppedTimers._send,
    "Acknowledge": SteppedTimers._only_known_to_producers,
    "AcknowledgeRecall": SteppedTimers._only_known_to_producers,
    "Deliver": SteppedTimers._deliver,
    "Recall": SteppedTimers._recall,
    "Roll": SteppedTimers._roll,
    "Learn": SteppedTimers._learn,
    "Point": SteppedTimers._write_point,
    "Delete": SteppedTimers._delete,
    "Secure": SteppedTimers._secure,
    "Tick": SteppedTimers._tick,
    "Crash": SteppedTimers._crash,
    "Read": SteppedTimers._start,
}
_REFUSALS: Final[Mapping[str, Any]] = {
    "Send": SteppedTimers._refuses_send,
    "Deliver": SteppedTimers._refuses_delivery,
    "Recall": SteppedTimers._refuses_recall,
    "Delete": SteppedTimers._refuses_deletion,
}
"""Functions that try a disabled action; they return False if it could not be tried."""
