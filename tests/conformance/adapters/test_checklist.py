"""Adapters of other authors: the template passes, and the checklist finds the defects of a wrong adapter."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from mqproof.conformance.adapters.checklist import CHECKS, check
from mqproof.conformance.adapters.impl import ImplTarget
from mqproof.conformance.adapters.reference import ReferenceTarget
from mqproof.conformance.adapters.resolution import resolve
from mqproof.conformance.adapters.template import MyBroker
from mqproof.conformance.commands.conform import app
from mqproof.conformance.engine.targets import TargetError, UnknownTargetError
from mqproof.conformance.suites.flush.target import (
    Capability,
    Outcome,
    Pulled,
    PullStatus,
    RestartFailedError,
    Sent,
)
from mqproof.report import json_file
from mqproof.report.model import Exit, Result, Verdict

TEMPLATE = "python:mqproof.conformance.adapters.template:MyBroker"


def invoke(*arguments: str) -> tuple[int, str, str]:
    done = CliRunner().invoke(app, ["conform", *arguments])
    return done.exit_code, done.stdout, done.stderr


def test_the_template_passes_its_checklist_and_the_suite(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert invoke("template", "begun_here.py")[0] == Exit.HELD
    assert invoke("check-adapter", "python:begun_here:MyBroker")[0] == Exit.HELD
    file = tmp_path / "r.json"
    code, out, _ = invoke(
        "--target", "python:begun_here:MyBroker", "--examples", "40", "--json", str(file)
    )  # fmt: skip
    assert code == Exit.HELD, out
    verdicts = {(one.layer, one.id): one.verdict for one in json_file.from_json(file.read_text()).results}
    assert verdicts["flush", "DELIV-1"] is Verdict.HELD
    assert verdicts["flush", "FLUSH-1"] is Verdict.NOT_TESTED
    assert verdicts["routing", "ROUTE-1"] is Verdict.NOT_TESTED
    of_wire = [verdict for (layer, _), verdict in verdicts.items() if layer == "wire"]
    assert len(of_wire) > 600
    assert set(of_wire) == {Verdict.NOT_TESTED}


def test_writing_a_template_does_not_overwrite_a_file(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("mine")
    code, _, err = invoke("template", str(file))
    assert (code, err) == (Exit.USAGE, f"mqproof: {file}: File exists\n")
    assert file.read_text() == "mine"


def failed(adapter: Callable[[], Any]) -> dict[str, str]:
    return {one.id: one.detail for one in check(adapter, "") if one.verdict is Verdict.VIOLATED}


@pytest.mark.parametrize("adapter", [MyBroker, ReferenceTarget, ImplTarget])
def test_a_correct_adapter_passes(adapter: Callable[[], Any]) -> None:
    assert failed(adapter) == {}


def _truncated(broker: MyBroker, *args: Any) -> Pulled:
    pulled = MyBroker.pull(broker, *args)
    return replace(pulled, messages=tuple(replace(m, body=m.body.rstrip(b"\xff")) for m in pulled.messages))


def _own_id(broker: MyBroker, topic: str, queue_id: int, _msg_id: str, body: bytes) -> Sent:
    return MyBroker.send(broker, topic, queue_id, "0A0B", body)


def _last_is_max(broker: MyBroker, *args: Any) -> Pulled:
    pulled = MyBroker.pull(broker, *args)
    return replace(pulled, max_offset=max(0, pulled.max_offset - 1))


def _from_one(broker: MyBroker, *args: Any) -> Sent:
    sent = MyBroker.send(broker, *args)
    return replace(sent, queue_offset=sent.queue_offset + 1)


def _remembers(broker: MyBroker, *_: Any) -> None:
    broker.queues, broker.committed = _SHARED, [0, 0]


_SHARED: list[list[tuple[str, bytes]]] = [[], []]


def _stays_down(*_: Any) -> None:
    raise RestartFailedError("no such file")


def _short_of_one(_broker: MyBroker, _topic: str, _queue_id: int, _body: bytes) -> None:
    pass


def _greedy(broker: MyBroker, topic: str, queue_id: int, offset: int, _max_count: int) -> Pulled:
    return MyBroker.pull(broker, topic, queue_id, offset, 9)


def _silent_beyond(broker: MyBroker, *args: Any) -> Pulled:
    pulled = MyBroker.pull(broker, *args)
    moved = pulled.status is PullStatus.OFFSET_MOVED
    return replace(pulled, status=PullStatus.NO_NEW) if moved else pulled


@pytest.mark.parametrize(
    ("changes", "check_id", "said"),
    [
        ({"send": _short_of_one}, "members", "send takes 4 arguments"),
        ({"capabilities": ["kill"]}, "capabilities", "a frozenset expected"),
        ({"capabilities": frozenset({"fly"})}, "capabilities", "'fly' is not one of"),
        ({"capabilities": frozenset({Capability.ABANDON})}, "capabilities", "abandon is that of WireOnly"),
        ({"open": _remembers}, "again", "min and max offset of queue 0 are 0, 2"),
        ({"send": lambda *_: Sent(Outcome.FAILED, "no")}, "send", "message 0 is not stored: failed, no"),
        ({"send": _from_one}, "send", "queue_offset 1, not 0"),
        ({"send": _own_id}, "pull", "msg_id is the unique key"),
        ({"pull": _truncated}, "pull", "expected, found PulledMessage"),
        ({"pull": _last_is_max}, "pull", "one more than the last"),
        ({"pull": _greedy}, "pull-few", "at most 1 was requested, received 2"),
        ({"pull": _silent_beyond}, "pull-end", "a pull beyond the end: OFFSET_MOVED expected"),
        ({"max_offset": lambda broker, *_: len(broker.queues[0])}, "queues", "its max offset is 2"),
        ({"commit_offset": lambda *_: None}, "offsets", "commit_offset returned None"),
        ({"query_offset": lambda *_: 0}, "offsets", "1 was committed, but the broker has 0"),
        ({"restart": _stays_down}, "kill", "does not restart: no such file"),
    ],
)
def test_the_checklist_finds_the_defect(changes: dict[str, Any], check_id: str, said: str) -> None:
    _SHARED[:] = [[], []]
    found = failed(type("Wrong", (MyBroker,), changes))
    assert said in found[check_id]


def test_checks_after_an_exception_are_not_tested() -> None:
    def refuse(*_: Any) -> None:
        raise TargetError("no docker here")

    found = {one.id: one for one in check(type("Wrong", (MyBroker,), {"open": refuse}), "again!")}
    assert list(found) == [one.id for one in CHECKS] + ["again"]
    assert (found["open"].verdict, found["open"].detail) == (Verdict.VIOLATED, "no docker here")
    assert found["open"].replay == "again!"
    assert found["send"].verdict is Verdict.NOT_TESTED
    assert found["close"].verdict is Verdict.HELD


def test_an_import_error_of_an_adapter_is_reported() -> None:
    def stumble(*_: Any) -> None:
        raise KeyError("port")

    results: list[Result] = list(check(type("Wrong", (MyBroker,), {"open": stumble}), ""))
    assert next(one.detail for one in results if one.id == "open") == "KeyError: 'port'"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("python:", "python:MODULE:CLASS expected"),
        ("python:mqproof.conformance.suites.flush.target", "python:MODULE:CLASS expected"),
        ("python:no.such.module:Broker", "ModuleNotFoundError: No module named 'no'"),
        (
            "python:mqproof.conformance.suites.flush.target:Nothing",
            "mqproof.conformance.suites.flush.target has no class Nothing",
        ),
        (
            "python:mqproof.conformance.suites.flush.target:Outcome",
            "is not a Target: it lacks name, capabilities, open, send",
        ),
    ],
)
def test_a_class_that_is_not_an_adapter_is_refused_with_a_reason(name: str, said: str) -> None:
    with pytest.raises(UnknownTargetError, match=said):
        resolve(name)
    code, _, err = invoke("check-adapter", name)
    assert (code, err.count("\n")) == (Exit.USAGE, 1)


BROKERS = "python:mqproof.conformance.adapters.brokers"


@pytest.mark.parametrize(
    ("suite", "name"),
    [
        ("offsets", f"{BROKERS}.offsets:ReferenceOffsets"),
        ("retry", f"{BROKERS}.retry:ReferenceRetry"),
        ("delivery", f"{BROKERS}.delivery:ReferenceDelivery"),
        ("ordering", f"{BROKERS}.ordering:ReferenceOrdering"),
        ("transactions", f"{BROKERS}.transactions:ReferenceTransactions"),
        ("timers", f"{BROKERS}.timers:ReferenceTimers"),
        ("request_reply", f"{BROKERS}.request_reply:ReferenceRequestReply"),
        ("admin", f"{BROKERS}.admin:ReferenceAdmin"),
        ("producers", "python:mqproof.conformance.adapters.producers.factories:ReferenceProducer"),
    ],
)
def test_an_adapter_can_be_checked_for_any_suite(suite: str, name: str, tmp_path: Path) -> None:
    code, out, _ = invoke("check-adapter", name)
    assert code == Exit.HELD, out
    assert f"{suite}-example" in out
    file = tmp_path / "r.json"
    invoke("--target", name, "--examples", "3", "--json", str(file))
    results = json_file.from_json(file.read_text()).results
    assert {one.layer for one in results if one.verdict is Verdict.HELD} == {suite}
    assert not [one for one in results if one.verdict is Verdict.VIOLATED]


@pytest.mark.parametrize(
    "suite",
    [
        "offsets",
        "retry",
        "delivery",
        "ordering",
        "transactions",
        "request_reply",
        "timers",
        "admin",
        "producers",
        "routing",
    ],
)
def test_a_skeleton_has_all_members_without_an_implementation(
    suite: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    module = f"skeleton_for_{suite}"
    assert invoke("template", f"{module}.py", "--suite", suite)[0] == Exit.HELD
    code, out, _ = invoke("check-adapter", f"python:{module}:MyTarget")
    assert code == Exit.VIOLATED
    assert f"{suite}-members" in out
    assert out.count("NotImplementedError") >= 2


def test_a_suite_that_takes_no_adapter_has_no_template(tmp_path: Path) -> None:
    code, _, err = invoke("template", str(tmp_path / "x.py"), "--suite", "wire")
    known = (
        "flush, routing, offsets, retry, delivery, ordering, transactions, timers, request_reply, admin, "
        "producers"
    )
    assert (code, err) == (Exit.USAGE, f"mqproof: --suite wire: expected {known}\n")


def test_a_class_of_this_package_can_be_a_target() -> None:
    assert resolve(TEMPLATE) is MyBroker
