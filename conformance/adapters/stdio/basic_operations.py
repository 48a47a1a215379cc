"""Drives flush, offsets and delivery through one small set of operations, if an adapter chooses them.

What the suites call differently, and what needs no client, is done here: the meaning of response codes, the
waits until a message is in its queue or a member is noticed, and searches relative to a stored message. See
docs/reference/conformance/adapter-protocol.md, "Basic operations".
"""

import time
from collections.abc import Callable, Set
from dataclasses import dataclass
from typing import Any, Final

from mqproof.conformance.adapters.stdio.adapter_process import AdapterProcess, called
from mqproof.conformance.adapters.stdio.wire_values import to_json
from mqproof.conformance.engine.targets import TargetError, UnknownTargetError
from mqproof.conformance.suites.delivery import target as delivery
from mqproof.conformance.suites.flush import target as flush
from mqproof.conformance.suites.offsets import target as offsets
from mqproof.reference.rules.pulling import Status

_STORED: Final = {
    0: "SEND_OK",
    10: "FLUSH_DISK_TIMEOUT",
    11: "SLAVE_NOT_AVAILABLE",
    12: "FLUSH_SLAVE_TIMEOUT",
}
_REFUSED: Final = (2, 13, 14, 16, 17)
"""Response codes after which the message is certainly not stored."""
_PULLED: Final = {0: Status.FOUND, 19: Status.NO_NEW, 20: Status.NO_MATCHED, 21: Status.MOVED}
_FLUSH_PULLED: Final = {
    0: flush.PullStatus.FOUND,
    19: flush.PullStatus.NO_NEW,
    21: flush.PullStatus.OFFSET_MOVED,
}

_NOTHING: Final = type(None)

_APART_S: Final = 0.002
"""The pause that gives messages different storing times."""
_BEFORE_SENDS_S: Final = 0.02
_LOOK_S: Final = 0.05
_NOTICED_S: Final = 30.0
_HOLD_MS: Final = 60_000
_ALL: Final = 32


@dataclass(frozen=True, slots=True)
class Sent:
    """The response to a send. The code is None if there was none."""

    code: int | None
    offset: int = -1


@dataclass(frozen=True, slots=True)
class Message:
    msg_id: str
    offset: int
    body: bytes
    topic: str
    queue_id: int
    tag: str = ""
    stored_ms: int = 0


@dataclass(frozen=True, slots=True)
class Pulled:
    """The response to a pull."""

    code: int
    next_offset: int
    min_offset: int
    max_offset: int
    messages: tuple[Message, ...] = ()


class _Operations:
    """The basic operations of the adapter's process."""

    def __init__(self, process: AdapterProcess) -> None:
        self._process = process
        self.topic = ""

    def call(self, method: str, result: Any, **arguments: Any) -> Any:
        values = {key: to_json(value) for key, value in arguments.items()}
        return called(self._process, method, values, result, {"target": TargetError})

    def open(self, queues: int) -> None:
        self.topic = self.call("open", str, queues=queues)

    def close(self) -> None:
        self.call("close", _NOTHING)

    def send(self, queue_id: int, msg_id: str, body: bytes, tag: str = "") -> Sent:
        """Send, and return after the message is in its queue, because brokers answer before that."""
        time.sleep(_APART_S)
        sent: Sent = self.call("send", Sent, queue_id=queue_id, msg_id=msg_id, body=body, tag=tag)
        if sent.code in _STORED:
            _await(lambda: self.end("max_offset", queue_id) > sent.offset)
        return sent

    def stored(self, queue_id: int, msg_id: str, tag: str = "") -> int:
        """Send a message that must be stored, and return its offset."""
        sent = self.send(queue_id, msg_id, msg_id.encode(), tag)
        if sent.code not in _STORED:
            raise TargetError(
                f"a send is answered with code {sent.code}, {', '.join(map(str, _STORED))} expected"
            )
        return sent.offset

    def pull(
        self,
        queue_id: int,
        offset: int,
        count: int,
        expression: str = "*",
        *,
        commit: int | None = None,
        member: str | None = None,
    ) -> Pulled:
        arguments = {"queue_id": queue_id, "offset": offset, "count": count, "expression": expression}
        found: Pulled = self.call("pull", Pulled, **arguments, commit=commit, member=member)
        return found

    def commit(self, queue_id: int, offset: int, member: str | None = None) -> int:
        """Commit and return the response code."""
        code: int = self.call("commit", int, queue_id=queue_id, offset=offset, member=member, oneway=False)
        return code

    def commit_oneway(self, queue_id: int, offset: int, member: str | None = None) -> None:
        self.call("commit", int | None, queue_id=queue_id, offset=offset, member=member, oneway=True)

    def query(self, queue_id: int) -> int | None:
        found: int | None = self.call("query", int | None, queue_id=queue_id)
        return found

    def end(self, which: str, queue_id: int) -> int:
        found: int = self.call(which, int, queue_id=queue_id)
        return found


class _Basic:
    """What the targets of all three suites share. `process` is set by `basic_class`."""

    process: AdapterProcess

    def __init__(self) -> None:
        self._do = _Operations(self.process)

    def query(self, queue_id: int) -> int | None:
        return self._do.query(queue_id)

    def min_offset(self, queue_id: int) -> int:
        return self._do.end("min_offset", queue_id)

    def max_offset(self, queue_id: int) -> int:
        return self._do.end("max_offset", queue_id)

    def inject(self, fault: object) -> None:
        raise NotImplementedError(f"{fault} is no basic operation")

    def close(self) -> None:
        self._do.close()


class FlushByBasic(flush.WireOnly):
    """The target of the suite flush."""

    process: AdapterProcess

    def __init__(self) -> None:
        self._do = _Operations(self.process)

    def open(self, setup: flush.Setup) -> None:
        self._topic = setup.topic
        self._do.open(setup.queues)

    def send(self, topic: str, queue_id: int, msg_id: str, body: bytes) -> flush.Sent:  # noqa: ARG002
        sent = self._do.send(queue_id, msg_id, body)
        if sent.code in _STORED:
            return flush.Sent(flush.Outcome.OK, _STORED[sent.code], sent.offset)
        is_refused = sent.code in _REFUSED
        outcome = flush.Outcome.FAILED if is_refused else flush.Outcome.INDETERMINATE
        return flush.Sent(outcome, f"code {sent.code}")

    def pull(self, topic: str, queue_id: int, offset: int, max_count: int) -> flush.Pulled:  # noqa: ARG002
        found = self._do.pull(queue_id, offset, max_count)
        messages = (
            flush.PulledMessage(
                each.msg_id, each.body, self._named(each.topic), each.queue_id, each.offset, each.stored_ms
            )
            for each in found.messages
        )
        status = _meaning(_FLUSH_PULLED, found.code)
        return flush.Pulled(status, tuple(messages), found.next_offset, found.min_offset, found.max_offset)

    def _named(self, topic: str) -> str:
        return self._topic if topic == self._do.topic else topic

    def commit_offset(self, topic: str, queue_id: int, offset: int) -> bool:  # noqa: ARG002
        return self._do.commit(queue_id, offset) == 0

    def query_offset(self, topic: str, queue_id: int) -> int:  # noqa: ARG002
        return self._do.query(queue_id) or 0

    def min_offset(self, topic: str, queue_id: int) -> int:  # noqa: ARG002
        return self._do.end("min_offset", queue_id)

    def max_offset(self, topic: str, queue_id: int) -> int:  # noqa: ARG002
        return self._do.end("max_offset", queue_id)

    def close(self) -> None:
        self._do.close()


class OffsetsByBasic(_Basic):
    """The target of the suite offsets."""

    def open(self) -> None:
        self._do.open(offsets.QUEUES)

    def send(self, queue_id: int, msg_id: str, tag: str) -> int:
        return self._do.stored(queue_id, msg_id, tag)

    def pull(
        self, queue_id: int, offset: int, count: int, expression: str, commit: int | None = None
    ) -> offsets.Pulled:
        return _offsets_pulled(self._do.pull(queue_id, offset, count, expression, commit=commit))

    def hold(
        self, queue_id: int, offset: int, count: int, expression: str, then: tuple[tuple[str, str], ...]
    ) -> offsets.Held:
        arguments = {"queue_id": queue_id, "offset": offset, "count": count, "expression": expression}
        self._do.call("start_pull", _NOTHING, **arguments, hold_ms=_HOLD_MS)
        time.sleep(_BEFORE_SENDS_S)
        sent = tuple(
            offsets.Message(msg_id, tag, self._do.stored(queue_id, msg_id, tag)) for msg_id, tag in then
        )
        sent_s = time.monotonic()
        answer = _offsets_pulled(self._do.call("end_pull", Pulled))
        return offsets.Held(answer, sent, time.monotonic() - sent_s)

    def commit(self, queue_id: int, offset: int) -> None:
        _require_success(self._do.commit(queue_id, offset))

    def commit_oneway(self, queue_id: int, offset: int) -> None:
        self._do.commit_oneway(queue_id, offset)

    def search(self, queue_id: int, place: int, shift_ms: int) -> offsets.Searched:
        times: list[tuple[int, int]] = []
        offset = self._do.end("min_offset", queue_id)
        while found := self._do.pull(queue_id, offset, _ALL).messages:
            times += [(each.offset, each.stored_ms) for each in found]
            offset = found[-1].offset + 1
        of_ms = times[place % len(times)][1] if times else round(time.time() * 1000)
        at: int = self._do.call("search", int, queue_id=queue_id, time_ms=of_ms + shift_ms)
        return offsets.Searched(tuple(times), of_ms + shift_ms, at)

    def expire(self) -> None:
        raise NotImplementedError

    def write(self) -> None:
        raise NotImplementedError


class DeliveryByBasic(_Basic):
    """The target of the suite delivery."""

    def open(self) -> None:
        self._do.open(delivery.QUEUES)
        self._present: set[str] = set()

    def send(self, queue_id: int, msg_id: str) -> int:
        return self._do.stored(queue_id, msg_id)

    def join(self, member: str) -> None:
        self._do.call("join", _NOTHING, member=member)
        self._present.add(member)

    def leave(self, member: str) -> None:
        self._gone(member, unregister=True)

    def die(self, member: str) -> None:
        self._gone(member, unregister=False)
        _await(lambda: member not in self._members(None))

    def _gone(self, member: str, *, unregister: bool) -> None:
        self._present.discard(member)
        self._do.call("leave", _NOTHING, member=member, unregister=unregister)

    def fall_silent(self, member: str) -> None:
        raise NotImplementedError(f"{member} cannot fall silent by basic operations")

    def members(self, asker: str) -> frozenset[str]:
        return self._members(asker)

    def _members(self, asker: str | None) -> frozenset[str]:
        ids = self._do.call("members", tuple[str, ...], member=asker)
        return frozenset(each.rpartition("_")[2] for each in ids)

    def notified(self, expected: Set[str]) -> frozenset[str]:
        found: set[str] = set()

        def has_all() -> bool:
            found.update(self._do.call("notified", tuple[str, ...]))
            return found >= expected

        _await(has_all)
        return frozenset(found & self._present)

    def pull(self, member: str, queue_id: int, offset: int, count: int) -> tuple[delivery.Message, ...]:
        found = self._do.pull(queue_id, offset, count, member=member)
        return tuple(delivery.Message(each.msg_id, each.offset) for each in found.messages)

    def commit(self, member: str, queue_id: int, offset: int) -> None:
        _require_success(self._do.commit(queue_id, offset, member))

    def commit_oneway(self, member: str, queue_id: int, offset: int) -> None:
        self._do.commit_oneway(queue_id, offset, member)


_CLASSES: Final[dict[str, type[Any]]] = {
    "flush": FlushByBasic,
    "offsets": OffsetsByBasic,
    "delivery": DeliveryByBasic,
}

_IMPLIED: Final = {"flush": frozenset({flush.Capability.COMMIT_OFFSET})}
"""Capabilities that every adapter with basic operations has."""


def basic_class(process: AdapterProcess, suite: str, capabilities: frozenset[Any]) -> type[Any]:
    """Return the class of the targets of a suite.

    Raises:
        UnknownTargetError: there are no basic operations for this suite.
    """
    if suite not in _CLASSES:
        raise UnknownTargetError(
            f"{process.name!r} does not support the suite {suite}: there are basic operations for "
            f"{', '.join(_CLASSES)}"
        )
    shared = {
        "process": process,
        "name": process.name,
        "capabilities": capabilities | _IMPLIED.get(suite, frozenset()),
    }
    return type("BasicTarget", (_CLASSES[suite],), shared)


def _offsets_pulled(found: Pulled) -> offsets.Pulled:
    messages = (offsets.Message(each.msg_id, each.tag, each.offset) for each in found.messages)
    return offsets.Pulled(
        _meaning(_PULLED, found.code), found.next_offset, found.min_offset, found.max_offset, tuple(messages)
    )


def _meaning(statuses: dict[int, Any], code: int) -> Any:
    if code not in statuses:
        known = ", ".join(map(str, statuses))
        raise TargetError(f"a pull is answered with code {code}, one of {known} expected")
    return statuses[code]


def _require_success(code: int) -> None:
    if code != 0:
        raise TargetError(f"a commit is answered with code {code}, 0 expected")


def _await(is_reached: Callable[[], bool]) -> None:
    """Wait until the condition holds, or should."""
    end_s = time.monotonic() + _NOTICED_S
    while not is_reached() and time.monotonic() < end_s:
        time.sleep(_LOOK_S)
