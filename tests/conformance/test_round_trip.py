"""From TLC to code and back: counterexamples are replayed, failing scripts are held against the model."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from conformance.behaviours.counterexample import CounterexampleError, ask, counterexample, variants
from conformance.behaviours.target import ReferenceTarget, resolve
from conformance.round_trip import Wrong, _wrong, classify
from conformance.session import SPEC_1
from conformance.targets.mutants import MUTANTS, MutantTarget
from conformance.traces.check import LogVerdict
from conformance.traces.store import Window
from impl.store.message_store import MessageStore
from impl.store.results import PutStatus
from spec.tlc.trace_check import TraceVerdict


async def _always_ok(*_: Any) -> PutStatus:
    return PutStatus.PUT_OK


def test_our_store_leaves_a_counterexample_at_the_step_that_is_wrong() -> None:
    make = resolve("impl", "Flush")
    assert make is not None
    answer = ask("Flush", "FlushAckBeforeFlush", make)
    assert answer.violated == "SyncAckedDurable"
    assert answer.left is not None
    assert answer.script.steps[answer.left.at].action == "AnswerOk"


def test_a_store_with_the_defect_follows_it_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MessageStore, "settle", _always_ok)
    make = resolve("impl", "Flush")
    assert make is not None
    assert ask("Flush", "FlushAckBeforeFlush", make).left is None


def test_what_is_left_after_a_crash_is_looked_at() -> None:
    make = resolve("impl", "Flush")
    assert make is not None
    answer = ask("Flush", "FlushPoolLostWithProcess", make)
    assert answer.left is not None
    assert answer.left.why.startswith("log is ")


def test_the_reference_takes_no_wrong_step_either() -> None:
    answer = ask("Flush", "FlushLostOffsetUpdate", lambda: ReferenceTarget("Flush"))
    assert answer.left is not None


@pytest.mark.deep
@pytest.mark.timeout(900)
def test_our_store_leaves_every_counterexample_that_can_be_replayed() -> None:
    make = resolve("impl", "Flush")
    assert make is not None
    replayed = 0
    for name in variants("Flush"):
        try:
            answer = ask("Flush", name, make)
        except CounterexampleError:
            continue  # of liveness, or beyond recovery
        assert answer.left is not None, name
        replayed += 1
    assert replayed >= 14


@pytest.mark.parametrize(
    ("name", "said"),
    [("FlushDispatcherDies", "never happens"), ("Flush", "there is no Flush.cfg")],
)
def test_what_cannot_be_replayed_is_one_error(name: str, said: str) -> None:
    with pytest.raises(CounterexampleError, match=said):
        counterexample("Flush", name)


def test_a_failing_script_becomes_a_trace_that_tlc_refuses(tmp_path: Path) -> None:
    mutant = MUTANTS["ack-before-flush"]
    found = classify(partial(MutantTarget, mutant), tmp_path, examples=200, shrink=False)
    assert found
    for classed in found:
        assert classed.wrong is Wrong.CODE
        assert classed.trace.read_bytes()
        assert classed.verdicts[0].closest


def _verdict(*, explained: int) -> LogVerdict:
    window = Window(({"event": "open"}, {"event": "append"}), (0, 1), 1, 1)
    return LogVerdict(Path("log"), "b0", (window,), (TraceVerdict(2, explained),))


@pytest.mark.parametrize(
    ("invariant", "explained", "wrong"),
    [
        ("FLUSH-1", 1, Wrong.CODE),
        (SPEC_1, 1, Wrong.MODEL),
        (SPEC_1, 2, Wrong.MAPPING),
        ("FLUSH-1", 2, Wrong.MAPPING),
    ],
)
def test_who_disagrees_tells_what_is_wrong(invariant: str, explained: int, wrong: Wrong) -> None:
    assert _wrong(invariant, [_verdict(explained=explained)]) is wrong
