"""Checks whether an adapter itself is correct, for its author (`mqproof conform check-adapter`).

Each check tests one thing that the suite assumes. They are ordered so that the first one that fails is the
first to fix. The suite judges the broker; with an adapter that fails here, it would judge a misunderstanding.
"""

import inspect
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from mqproof.conformance.engine.suite_definition import Suite
from mqproof.conformance.engine.suite_run import examine
from mqproof.conformance.engine.targets import TargetError
from mqproof.conformance.suites.flush.target import (
    Capability,
    Outcome,
    Pulled,
    PulledMessage,
    PullStatus,
    RestartFailedError,
    Sent,
    Setup,
    Target,
    WireOnly,
)
from mqproof.reference.flush import SYNC_FLUSH
from mqproof.report.model import Result, Verdict, Witness

LAYER: Final = "adapter"
_SETUP: Final = Setup(SYNC_FLUSH, queues=2)
_BODY: Final = bytes(range(256))
"""A body that makes an adapter fail if it treats bodies as text."""
_STATUSES: Final = ("SEND_OK", "FLUSH_DISK_TIMEOUT", "FLUSH_SLAVE_TIMEOUT", "SLAVE_NOT_AVAILABLE")
_METHODS: Final = {
    Capability.COMMIT_OFFSET: ("commit_offset", "query_offset"),
    Capability.ABANDON: ("abandon",),
    Capability.KILL: ("kill", "restart"),
    Capability.OS_CRASH: ("crash_os", "restart"),
    Capability.POWER_LOSS: ("lose_power", "restart"),
    Capability.CLEAN_RESTART: ("shutdown", "restart"),
    Capability.SYNC_FAILURE: ("fail_syncs",),
}
_ENDS: Final[dict[Capability, Callable[[Target], None]]] = {
    Capability.CLEAN_RESTART: lambda target: target.shutdown(),
    Capability.KILL: lambda target: target.kill(),
    Capability.OS_CRASH: lambda target: target.crash_os(1),
    Capability.POWER_LOSS: lambda target: target.lose_power(),
}


class _WrongError(Exception):
    """A check failed; the message has the expected and the actual result."""


def _expect(condition: bool, text: str) -> None:
    if not condition:
        raise _WrongError(text)


@dataclass(frozen=True, slots=True)
class _Check:
    id: str
    what: str
    """The property that the suite assumes."""
    run: Callable[[Target], None]
    needs: Capability | None = None


def _members(target: Any, protocol: type[object] = Target) -> None:
    where = f"{protocol.__module__.removeprefix('mqproof.').replace('.', '/')}.py"
    for name, member in vars(protocol).items():
        if name.startswith("_") or isinstance(member, property):
            continue
        count = len(inspect.signature(member).parameters) - 1
        try:
            inspect.signature(getattr(target, name)).bind(*range(count))
        except TypeError as error:
            raise _WrongError(f"{name} takes {count} arguments in {where}: {error}") from None


def _capabilities(target: Target) -> None:
    declared: Any = target.capabilities
    _expect(isinstance(declared, frozenset), f"a frozenset expected, found a {type(declared).__name__}")
    for one in declared:
        _expect(one in set(Capability), f"{one!r} is not one of {', '.join(Capability)}")
        for method in _METHODS.get(Capability(one), ()):
            own = getattr(type(target), method) is not getattr(WireOnly, method, None)
            _expect(
                own,
                f"{Capability(one).name} is declared, but {method} is that of WireOnly, which does nothing",
            )


def _open(target: Target) -> None:
    target.open(_SETUP)
    for queue_id in range(_SETUP.queues):
        low, high = (
            target.min_offset(_SETUP.topic, queue_id), target.max_offset(_SETUP.topic, queue_id)
        )  # fmt: skip
        _expect((low, high) == (0, 0), f"min and max offset of queue {queue_id} are {low}, {high}, not 0, 0")
    _status(_pull(target, 0, 0), PullStatus.NO_NEW, "of an empty queue")


def _send(target: Target) -> None:
    for number in range(2):
        sent: Any = target.send(_SETUP.topic, 0, f"m{number}", _BODY)
        _expect(isinstance(sent, Sent), f"a Sent expected, found {sent!r}")
        _expect(sent.outcome is Outcome.OK, f"message {number} is not stored: {sent.outcome}, {sent.status}")
        _expect(sent.status in _STATUSES, f"status {sent.status!r} is not one of {', '.join(_STATUSES)}")
        _expect(sent.queue_offset == number, f"queue_offset {sent.queue_offset}, not {number}")


def _pull_back(target: Target) -> None:
    pulled = _pull(target, 0, 0)
    _status(pulled, PullStatus.FOUND, "of a queue with two messages")
    ids = [message.msg_id for message in pulled.messages]
    _expect(ids[:1] == ["m0"], f"msg_id is the unique key given to send: m0 expected, found {ids}")
    if len(ids) == 1:  # a broker may return fewer messages than possible
        pulled = _pull(target, 0, pulled.next_offset)
        ids += [message.msg_id for message in pulled.messages]
    _expect(ids == ["m0", "m1"], f"m0 and m1 expected, found {ids}")
    number = 2 - len(pulled.messages)
    for message in pulled.messages:
        expected = PulledMessage(f"m{number}", _BODY, _SETUP.topic, 0, number, message.stored_ms)
        _expect(message == expected, f"{expected} expected, found {message}")
        number += 1
    _expect(pulled.next_offset == 2, f"next_offset {pulled.next_offset} after offset 1, 2 expected")
    _expect(
        pulled.max_offset == 2, f"max_offset {pulled.max_offset}: 2, one more than the last offset, expected"
    )


def _few(target: Target) -> None:
    pulled = target.pull(_SETUP.topic, 0, 0, 1)
    _expect(len(pulled.messages) == 1, f"at most 1 was requested, received {len(pulled.messages)}")
    _expect(pulled.next_offset == 1, f"next_offset {pulled.next_offset}, not 1")


def _at_the_end(target: Target) -> None:
    pulled = _pull(target, 0, 2)
    _status(pulled, PullStatus.NO_NEW, "at the end")
    _expect(pulled.next_offset == 2, f"next_offset {pulled.next_offset}, not 2")
    beyond = _pull(target, 0, 9)
    _status(beyond, PullStatus.OFFSET_MOVED, "beyond the end")
    _expect(beyond.next_offset == 2, f"next_offset {beyond.next_offset}: 2, the end of the queue, expected")


def _apart(target: Target) -> None:
    high = target.max_offset(_SETUP.topic, 1)
    _expect(high == 0, f"nothing was sent to queue 1, but its max offset is {high}")


def _offsets(target: Target) -> None:
    offset: Any = target.query_offset(_SETUP.topic, 0)
    _expect(offset == 0, f"a group without a commit is at {offset!r}, 0 expected")
    taken: Any = target.commit_offset(_SETUP.topic, 0, 1)
    _expect(taken is True, f"commit_offset returned {taken!r}, True expected")
    offset = target.query_offset(_SETUP.topic, 0)
    _expect(offset == 1, f"1 was committed, but the broker has {offset!r}")


def _abandon(target: Target) -> None:
    target.abandon(_SETUP.topic, 1, "m2", _BODY)
    sent = target.send(_SETUP.topic, 1, "m3", _BODY)
    _expect(sent.outcome is Outcome.OK, f"the next send is not stored: {sent.outcome}, {sent.status}")
    _expect(sent.queue_offset in (0, 1), f"the next send is at {sent.queue_offset}, 0 or 1 expected")


def _ends(capability: Capability) -> Callable[[Target], None]:
    def check(target: Target) -> None:
        _ENDS[capability](target)
        try:
            target.restart()
        except RestartFailedError as error:
            raise _WrongError(f"the broker does not restart: {error}") from None
        # The messages that a crash may lose depend on the flush mode; an answer is always required.
        _expect(isinstance(_pull(target, 0, 0), Pulled), "no answer after the restart")

    return check


def _close(target: Target) -> None:
    target.close()
    target.close()


def _pull(target: Target, queue_id: int, offset: int) -> Pulled:
    pulled: Any = target.pull(_SETUP.topic, queue_id, offset, 8)
    _expect(isinstance(pulled, Pulled), f"a Pulled expected, found {pulled!r}")
    return pulled  # type: ignore[no-any-return]


def _status(pulled: Pulled, expected: PullStatus, where: str) -> None:
    _expect(pulled.status is expected, f"a pull {where}: {expected} expected, found {pulled.status!r}")


CHECKS: Final = (
    _Check("members", "the methods have the parameters of conformance/suites/flush/target.py", _members),
    _Check(
        "capabilities", "capabilities is a frozenset of Capability, each one with its methods", _capabilities
    ),
    _Check("open", "open starts a broker with an empty topic", _open),
    _Check("send", "send returns status and queue offset", _send),
    _Check("pull", "pull returns id, body, topic, queue and offset", _pull_back),
    _Check("pull-few", "pull returns no more messages than requested", _few),
    _Check("pull-end", "NO_NEW at the end, OFFSET_MOVED beyond it", _at_the_end),
    _Check("queues", "queues are separate", _apart),
    _Check("offsets", "a committed offset can be queried", _offsets, Capability.COMMIT_OFFSET),
    _Check("abandon", "an abandoned send does not affect the next one", _abandon, Capability.ABANDON),
    *(_Check(each, f"{each}, then restart: the broker serves again", _ends(each), each) for each in _ENDS),
    _Check("close", "close can be called twice", _close),
)


def check(factory: Callable[[], Target], replay: str) -> Iterator[Result]:
    """Yield a result for each check, as soon as it is known.

    After a check in which the adapter raises, the remaining checks except `close` are not tested.
    """
    broken = ""
    target: Target | None = None
    for one in (*CHECKS, _Check("again", "a new object starts with an empty topic", _open)):
        began = time.monotonic()
        verdict, detail = Verdict.HELD, ""
        try:
            if target is None or one.id == "again":
                target = factory()
            if broken and one.id != "close":
                verdict, detail = Verdict.NOT_TESTED, f"{broken} failed before"
            elif one.needs and one.needs not in target.capabilities:
                verdict, detail = Verdict.NOT_TESTED, f"{one.needs.name} is not declared"
            else:
                one.run(target)
        except _WrongError as error:
            verdict, detail = Verdict.VIOLATED, str(error)
        except Exception as error:
            verdict, detail, broken = Verdict.VIOLATED, _error_text(error), broken or one.id
        yield _result(one, verdict, detail, replay, time.monotonic() - began)
    if target is not None:
        target.close()


def check_for(
    suite: Suite, protocol: type[object], factory: Callable[[], Any], replay: str
) -> Iterator[Result]:
    """Yield the results of general checks, for a suite that has no list of its own.

    They test the members of the target, and that an example runs to its end, whatever its verdict.
    """

    def drive(_: Any) -> None:
        examine(factory, 1, 0, suite=suite, shrink=False)

    checks = (
        _Check(f"{suite.name}-members", f"the methods have the parameters of {protocol.__name__}",
               lambda target: _members(target, protocol)),
        _Check(f"{suite.name}-close", "close can be called before open, and twice", _close),
        _Check(f"{suite.name}-example", "an example runs to its end", drive),
    )  # fmt: skip
    for one in checks:
        began = time.monotonic()
        verdict, detail = Verdict.HELD, ""
        try:
            one.run(factory())
        except _WrongError as error:
            verdict, detail = Verdict.VIOLATED, str(error)
        except Exception as error:
            verdict, detail = Verdict.VIOLATED, _error_text(error)
        yield _result(one, verdict, detail, replay, time.monotonic() - began)


def _error_text(error: Exception) -> str:
    return str(error) if isinstance(error, TargetError) else f"{type(error).__name__}: {error}"


def _result(one: _Check, verdict: Verdict, detail: str, replay: str, seconds: float) -> Result:
    witnesses = (Witness(detail),) if verdict is Verdict.VIOLATED else ()
    counts = {"checks": 1} if verdict in (Verdict.HELD, Verdict.VIOLATED) else {}
    command = replay if verdict is Verdict.VIOLATED else ""
    return Result(one.id, one.what, LAYER, verdict, counts, witnesses, detail, command, seconds)
