"""The targets of flush, offsets and delivery over basic operations, with a process that follows a script."""

import time
from collections.abc import Callable
from typing import Any

import pytest

from mqproof.conformance.adapters.stdio import basic_operations
from mqproof.conformance.adapters.stdio.adapter_process import RefusedCallError
from mqproof.conformance.adapters.stdio.basic_operations import basic_class
from mqproof.conformance.engine.targets import AdapterFailedError, TargetError, UnknownTargetError
from mqproof.conformance.suites.flush.target import Capability, Outcome, PullStatus, Setup
from mqproof.reference.flush import SYNC_FLUSH
from mqproof.reference.rules.pulling import Status

MESSAGE = {"msg_id": "m0", "offset": 0, "body": "aGk=", "topic": "t1", "queue_id": 0, "stored_ms": 5}
PULLED = {"code": 0, "next_offset": 1, "min_offset": 0, "max_offset": 1, "messages": [MESSAGE]}
EMPTY = {"code": 19, "next_offset": 1, "min_offset": 0, "max_offset": 1}


class Scripted:
    """An adapter whose answers are given by method; the last answer of a method repeats."""

    name = "stdio:scripted"

    def __init__(self, answers: dict[str, list[Any]]) -> None:
        self.answers: dict[str, list[Any]] = {"open": ["t1"], "max_offset": [100], "close": [None], **answers}
        self.calls: list[tuple[str, dict[str, Any]]] = []

    def call(self, method: str, arguments: dict[str, Any]) -> Any:
        self.calls.append((method, arguments))
        given = self.answers[method]
        answer = given.pop(0) if len(given) > 1 else given[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    def failed(self, reason: str) -> AdapterFailedError:
        return AdapterFailedError(reason)

    def last(self, method: str) -> dict[str, Any]:
        return next(arguments for name, arguments in reversed(self.calls) if name == method)


def target(suite: str, **answers: list[Any]) -> tuple[Any, Scripted]:
    process: Any = Scripted(answers)
    made = basic_class(process, suite, frozenset())()
    made.open(*([Setup(SYNC_FLUSH, queues=2)] if suite == "flush" else []))
    return made, process


@pytest.mark.parametrize(
    ("code", "outcome", "status"),
    [
        (0, Outcome.OK, "SEND_OK"),
        (10, Outcome.OK, "FLUSH_DISK_TIMEOUT"),
        (11, Outcome.OK, "SLAVE_NOT_AVAILABLE"),
        (12, Outcome.OK, "FLUSH_SLAVE_TIMEOUT"),
        (2, Outcome.FAILED, "code 2"),
        (16, Outcome.FAILED, "code 16"),
        (1, Outcome.INDETERMINATE, "code 1"),
        (None, Outcome.INDETERMINATE, "code None"),
    ],
)
def test_a_response_code_decides_the_outcome_of_a_send(
    code: int | None, outcome: Outcome, status: str
) -> None:
    made, _ = target("flush", send=[{"code": code, "offset": 7}])
    sent = made.send("conform", 0, "m0", b"hi")
    assert (sent.outcome, sent.status, sent.queue_offset) == (outcome, status, 7 if outcome == "ok" else -1)


def test_a_send_returns_after_its_message_is_in_its_queue() -> None:
    made, process = target("offsets", send=[{"code": 0, "offset": 7}], max_offset=[7, 7, 8])
    assert made.send(1, "m0", "a") == 7
    assert [name for name, _ in process.calls][-3:] == ["max_offset"] * 3
    assert process.last("send") == {"queue_id": 1, "msg_id": "m0", "body": "bTA=", "tag": "a"}


def test_a_pull_of_flush_names_its_own_topic_as_the_suite_does() -> None:
    strange = {**MESSAGE, "topic": "other", "offset": 1}
    made, process = target(
        "flush", pull=[{**PULLED, "messages": [MESSAGE, strange]}, EMPTY, {**EMPTY, "code": 21}]
    )
    found = made.pull("conform", 0, 0, 5)
    assert [(each.topic, each.body, each.queue_offset) for each in found.messages] == [
        ("conform", b"hi", 0),
        ("other", b"hi", 1),
    ]
    assert process.last("pull") == {
        "queue_id": 0,
        "offset": 0,
        "count": 5,
        "expression": "*",
        "commit": None,
        "member": None,
    }
    assert found.status is PullStatus.FOUND
    assert made.pull("conform", 0, 1, 5).status is PullStatus.NO_NEW
    assert made.pull("conform", 0, 9, 5).status is PullStatus.OFFSET_MOVED


def test_offsets_of_flush_are_committed_and_queried() -> None:
    made, process = target("flush", commit=[0, 1], query=[None, 3], min_offset=[2])
    assert (made.commit_offset("conform", 0, 3), made.commit_offset("conform", 0, 3)) == (True, False)
    assert (made.query_offset("conform", 0), made.query_offset("conform", 0)) == (0, 3)
    assert (made.min_offset("conform", 0), made.max_offset("conform", 0)) == (2, 100)
    assert process.last("commit") == {"queue_id": 0, "offset": 3, "member": None, "oneway": False}
    assert made.capabilities == {Capability.COMMIT_OFFSET}


def test_a_held_pull_gets_what_is_sent_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = iter([10.0, 20.0, 30.0, 30.5])
    made, process = target("offsets", start_pull=[None], end_pull=[PULLED], send=[{"code": 0, "offset": 0}])
    monkeypatch.setattr(basic_operations.time, "monotonic", lambda: next(now_s))  # type: ignore[attr-defined]
    held = made.hold(0, 0, 5, "a", (("m0", "a"),))
    assert [name for name, _ in process.calls] == ["open", "start_pull", "send", "max_offset", "end_pull"]
    assert (held.sent[0].offset, held.answer.status, held.answer.messages[0].msg_id) == (
        0,
        Status.FOUND,
        "m0",
    )
    assert held.waited_s == 10.0
    assert process.last("start_pull")["hold_ms"] > 0


def test_a_search_is_relative_to_the_storing_time_of_a_message() -> None:
    second = {**MESSAGE, "offset": 1, "stored_ms": 9}
    pages = [{**PULLED, "messages": [MESSAGE, second]}, EMPTY]
    made, process = target("offsets", min_offset=[0], pull=pages, search=[1])
    found = made.search(0, 3, -2)
    assert (found.times, found.requested_ms, found.offset) == (((0, 5), (1, 9)), 7, 1)
    assert process.last("search") == {"queue_id": 0, "time_ms": 7}
    made, process = target("offsets", min_offset=[0], pull=[EMPTY], search=[0])
    assert abs(made.search(0, 0, 0).requested_ms - time.time() * 1000) < 600_000


def test_members_are_named_by_the_ends_of_their_ids() -> None:
    made, process = target(
        "delivery",
        join=[None],
        leave=[None],
        members=[["1@t1_c1", "1@t1_c2"], ["1@t1_c2"]],
        notified=[[], ["c1"], ["c2", "c9"]],
    )
    made.join("c1")
    made.join("c2")
    assert made.notified({"c1", "c2"}) == {"c1", "c2"}
    made.die("c1")  # returns when c1 is no longer a member
    assert process.last("leave") == {"member": "c1", "unregister": False}
    assert made.members("c2") == {"c2"}
    assert process.last("members") == {"member": "c2"}
    made.leave("c2")
    assert process.last("leave") == {"member": "c2", "unregister": True}


def test_a_member_pulls_and_commits() -> None:
    made, process = target("delivery", pull=[PULLED], commit=[0, None, 1], query=[1])
    assert [(each.msg_id, each.offset) for each in made.pull("c1", 0, 0, 5)] == [("m0", 0)]
    assert process.last("pull")["member"] == "c1"
    made.commit("c1", 0, 1)
    made.commit_oneway("c1", 0, 1)
    assert process.last("commit") == {"queue_id": 0, "offset": 1, "member": "c1", "oneway": True}
    with pytest.raises(TargetError, match="a commit is answered with code 1, 0 expected"):
        made.commit("c1", 0, 1)
    assert made.query(0) == 1


@pytest.mark.parametrize(
    ("answers", "act", "error", "problem"),
    [
        (
            {"send": [{"code": 1}]},
            lambda made: made.send(0, "m", ""),
            TargetError,
            "code 1, 0, 10, 11, 12 expected",
        ),
        (
            {"pull": [{**EMPTY, "code": 1}]},
            lambda made: made.pull(0, 0, 1, "*"),
            TargetError,
            "code 1, one of 0",
        ),
        ({"pull": ["x"]}, lambda made: made.pull(0, 0, 1, "*"), AdapterFailedError, "result of pull"),
        ({"query": ["x"]}, lambda made: made.query(0), AdapterFailedError, "result of query"),
        ({"query": [RefusedCallError("target", "gone")]}, lambda made: made.query(0), TargetError, "gone"),
        ({"query": [RefusedCallError("x", "y")]}, lambda made: made.query(0), AdapterFailedError, "kind 'x'"),
    ],
    ids=["send refused", "pull refused", "pull nonsense", "query nonsense", "target error", "other error"],
)
def test_an_answer_that_is_not_of_the_protocol_is_an_error(
    answers: dict[str, list[Any]], act: Callable[[Any], Any], error: type[Exception], problem: str
) -> None:
    made, _ = target("offsets", **answers)
    with pytest.raises(error, match=problem):
        act(made)


def test_an_adapter_that_is_gone_can_be_closed() -> None:
    made, _ = target("offsets", close=[AdapterFailedError("gone")], query=[AdapterFailedError("gone")])
    made.close()
    with pytest.raises(AdapterFailedError):
        made.query(0)


def test_a_suite_without_basic_operations_is_not_supported() -> None:
    process: Any = Scripted({})
    with pytest.raises(
        UnknownTargetError, match="does not support the suite timers: there are basic operations"
    ):
        basic_class(process, "timers", frozenset())
