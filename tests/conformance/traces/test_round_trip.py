"""From TLC to code and back: counterexamples are replayed, and failing scripts are checked by TLC."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import pytest

from mqproof.conformance.adapters.mutant_broker import MutantTarget
from mqproof.conformance.adapters.routing.name_servers import MutantNameServer
from mqproof.conformance.behaviours.counterexample import (
    CounterexampleError,
    counterexample,
    replay_counterexample,
    variants,
)
from mqproof.conformance.behaviours.subject import ReferenceTarget
from mqproof.conformance.engine.examination import Examination, Failure
from mqproof.conformance.engine.finding import SPEC_1, Finding
from mqproof.conformance.engine.suite_definition import Suite
from mqproof.conformance.engine.suite_run import examine
from mqproof.conformance.mutants import routing as routing_mutants
from mqproof.conformance.mutants.flush import MUTANTS
from mqproof.conformance.subjects.stepped.model_targets import resolve
from mqproof.conformance.suites.flush.suite import FLUSH
from mqproof.conformance.suites.ordering.suite import ORDERING
from mqproof.conformance.suites.routing.suite import ROUTING
from mqproof.conformance.traces.check import LogVerdict, check_logs
from mqproof.conformance.traces.round_trip import Class, Wrong, classes, with_classes
from mqproof.conformance.traces.store import Window
from mqproof.impl.store.message_store import MessageStore
from mqproof.impl.store.results import PutStatus
from mqproof.report.model import Result, Verdict, Witness
from mqproof.spec.events import Event, Kind, encode, read_log
from mqproof.spec.tlc.errors import Reason, TlcError
from mqproof.spec.tlc.trace_check import TraceVerdict


async def _always_ok(*_: Any) -> PutStatus:
    return PutStatus.PUT_OK


def test_our_store_deviates_from_a_counterexample_at_the_wrong_step() -> None:
    make = resolve("impl", "Flush")
    assert make is not None
    answer = replay_counterexample("Flush", "FlushAckBeforeFlush", make)
    assert answer.violated == "SyncAckedDurable"
    assert answer.left is not None
    assert answer.script.steps[answer.left.at].action == "AnswerOk"


def test_a_store_with_the_defect_completes_the_counterexample(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MessageStore, "settle", _always_ok)
    make = resolve("impl", "Flush")
    assert make is not None
    assert replay_counterexample("Flush", "FlushAckBeforeFlush", make).left is None


def test_the_state_after_a_crash_is_examined() -> None:
    make = resolve("impl", "Flush")
    assert make is not None
    answer = replay_counterexample("Flush", "FlushPoolLostWithProcess", make)
    assert answer.left is not None
    assert answer.left.why.startswith("log is ")


def test_a_step_that_cannot_be_requested_proves_nothing() -> None:
    """A visible message is lost: our broker never shows a message that could be lost."""
    make = resolve("impl", "Delivery")
    assert make is not None
    answer = replay_counterexample("Delivery", "DeliverySeenBeforeSafe", make)
    assert answer.left is None
    assert answer.stuck_at is not None
    assert answer.script.steps[answer.stuck_at].action == "Lose"


def test_the_reference_takes_no_wrong_step() -> None:
    answer = replay_counterexample("Flush", "FlushLostOffsetUpdate", lambda: ReferenceTarget("Flush"))
    assert answer.left is not None


@pytest.mark.deep("TLC makes a counterexample for each broken model; one is replayed in every run")
@pytest.mark.timeout(900)
def test_our_store_deviates_from_every_counterexample_that_can_be_replayed() -> None:
    make = resolve("impl", "Flush")
    assert make is not None
    replayed = 0
    for name in variants("Flush"):
        try:
            answer = replay_counterexample("Flush", name, make)
        except CounterexampleError:
            continue  # counterexamples of liveness properties, or without a recovery
        assert answer.left is not None, name
        replayed += 1
    assert replayed >= 14


@pytest.mark.parametrize(
    ("name", "said"),
    [("FlushDispatcherDies", "is a liveness property"), ("Flush", "there is no Flush.cfg")],
)
def test_a_counterexample_that_cannot_be_replayed_gives_one_error(name: str, said: str) -> None:
    with pytest.raises(CounterexampleError, match=said):
        counterexample("Flush", name)


def test_a_failing_script_becomes_a_trace_that_tlc_refuses(tmp_path: Path) -> None:
    examination = examine(
        partial(MutantTarget, MUTANTS["ack-before-flush"]), 200, 0, shrink=False, suite=FLUSH
    )
    found = classes(examination, tmp_path)
    assert found.keys() == examination.failures.keys()
    for invariant, found_class in found.items():
        assert found_class.wrong is Wrong.CODE
        assert found_class.traces
        assert "closest" in found_class.witnesses[0].values
        assert next(read_log(tmp_path / f"violates-{invariant}.ndjson")).kind is Kind.RECOVER


def test_a_failing_script_of_a_name_server_becomes_a_trace_that_tlc_refuses() -> None:
    mutant = routing_mutants.MUTANTS["nothing-expires"]
    examination = examine(partial(MutantNameServer, mutant), 50, 0, suite=ROUTING, shrink=False)
    result_class = classes(examination)["ROUTE-3"]
    assert result_class.wrong is Wrong.CODE
    assert "tick" in result_class.witnesses[0].text


def _name_servers_log(listed: str) -> bytes:
    """Return the log of one broker that lists one topic, with a route of T that contains the broker."""
    broker = {"broker": "b-a", "address": "1.0.0.1:10911", "id": "0", "topics": listed, "version": "0.1.1"}
    events = (
        Event(0, 0, "ns", Kind.RECOVER, attrs={"expiry_ms": "120000", "scan_interval_ms": "10000"}),
        Event(1, 1, "ns", Kind.REGISTER, attrs=broker),
        Event(2, 2, "ns", Kind.ROUTE, topic="T", attrs={"brokers": "b-a:0", "writable": "b-a"}),
    )
    return b"".join(map(encode, events))


def test_a_route_with_a_broker_that_does_not_list_the_topic_is_refused(tmp_path: Path) -> None:
    logs = {listed: tmp_path / f"{listed}.ndjson" for listed in ("T", "U")}
    for listed, log in logs.items():
        log.write_bytes(_name_servers_log(listed))
    accepted = {
        verdict.path: verdict.accepted for verdict in check_logs(list(logs.values()), models=("Routing",))
    }
    assert accepted == {logs["T"]: 1, logs["U"]: 0}


@pytest.mark.parametrize(
    ("invariant", "explained", "wrong"),
    [
        ("FLUSH-1", 1, Wrong.CODE),
        (SPEC_1, 1, Wrong.MODEL),
        (SPEC_1, 2, Wrong.MAPPING),
        ("FLUSH-1", 2, Wrong.MAPPING),
    ],
)
def test_the_disagreeing_part_determines_the_class(
    invariant: str, explained: int, wrong: Wrong, monkeypatch: pytest.MonkeyPatch
) -> None:
    def check(paths: list[Path], **_: Any) -> tuple[LogVerdict, ...]:
        window = Window(({"event": "open"}, {"event": "append"}), (0, 1), 1, 1)
        return (LogVerdict(paths[0], "b0", (window,), (TraceVerdict(2, explained),)),)

    monkeypatch.setattr("mqproof.conformance.traces.round_trip.check_logs", check)
    assert classes(_failed(invariant, Event(0, 0, "b0", Kind.RECOVER)))[invariant].wrong is wrong


def _failed(invariant: str, *events: Event, suite: Suite = FLUSH) -> Examination:
    failure = Failure(("open",), Finding(Verdict.VIOLATED, {}), 1, events)
    return Examination(suite, failures={invariant: failure})


def _no_java(*_: Any, **__: Any) -> NoReturn:
    raise TlcError(Reason.TOOL_MISSING, "no Java")


def test_an_unclassified_failure_states_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    assert str(classes(_failed("FLUSH-1"))["FLUSH-1"]) == "not classified: the target keeps no event log"
    ordering = classes(_failed("DELIV-13", suite=ORDERING))["DELIV-13"]
    assert str(ordering) == "not classified: event logs of OrderLock are not checked"
    monkeypatch.setattr("mqproof.conformance.traces.round_trip.check_logs", _no_java)
    result_class = classes(_failed("FLUSH-1", Event(0, 0, "b0", Kind.RECOVER)))["FLUSH-1"]
    assert str(result_class) == "not classified: no Java"


def test_the_class_is_shown_with_the_failure() -> None:
    result = Result("FLUSH-1", "SyncAckedDurable", "flush", Verdict.VIOLATED, detail="violated by example 3")
    held = replace(result, id="FLUSH-2", verdict=Verdict.HELD, counts={"examples": 1}, detail="")
    result_class = Class(Wrong.CODE, traces=1, witnesses=(Witness("no action explains it"),))
    first, second = with_classes([result, held], {"FLUSH-1": result_class})
    assert first.detail == f"violated by example 3; {Wrong.CODE}"
    assert first.witnesses == result_class.witnesses
    assert second == held
