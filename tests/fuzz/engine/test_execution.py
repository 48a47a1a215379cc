"""Tests one execution: the same defect has the same signature, and every input ends in time."""

import signal
from pathlib import Path

import pytest

from mqproof.fuzz.engine import execution
from mqproof.fuzz.engine.execution import Failure, judge
from mqproof.fuzz.target import ENDS_IN_TIME, ONLY_DOCUMENTED_ERRORS
from tests.fuzz import faulty
from tests.fuzz.faulty import Faulty


def test_an_execution_without_error_returns_none() -> None:
    assert judge(Faulty(faulty.fine), b"") is None


def test_a_finding_is_named_by_its_invariant() -> None:
    assert judge(Faulty(faulty.broken), b"abc") == Failure("Fine", "Fine", "3 bytes are not fine")


@pytest.fixture(autouse=True)
def tests_are_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execution, "_ROOT", Path(__file__).parents[3])
    monkeypatch.setattr(execution, "_OURS", frozenset({"tests"}))


def test_an_undocumented_error_is_named_by_its_stack() -> None:
    one = judge(Faulty(faulty.divides), b"a")
    two = judge(Faulty(faulty.divides), b"bb")
    elsewhere = judge(Faulty(faulty.divides_elsewhere), b"a")
    assert one is not None
    assert two is not None
    assert elsewhere is not None
    assert one.invariant == ONLY_DOCUMENTED_ERRORS
    assert one.signature.startswith("OnlyDocumentedErrors ZeroDivisionError")
    assert one.signature == two.signature
    assert one.signature != elsewhere.signature


def test_the_stack_names_only_our_files_innermost_first() -> None:
    failure = judge(Faulty(faulty.divides), b"a")
    assert failure is not None
    places = failure.signature.split(" ", 2)[2].split(" < ")
    assert [place.rsplit(":", 1)[0] for place in places] == [
        "tests/fuzz/faulty.py:_divide",
        "tests/fuzz/faulty.py:divides",
        "tests/fuzz/faulty.py:Faulty.run",
    ]


@pytest.mark.parametrize("function", [faulty.endless, faulty.swallows_everything])
def test_an_endless_loop_is_a_finding(function: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execution, "CPU_SECONDS_MAX", 0.1)
    assert judge(Faulty(faulty.divides), b"a"), "the first input installs the handler"
    before = signal.getsignal(signal.SIGVTALRM)
    failure = judge(Faulty(function), b"")  # type: ignore[arg-type]  # parametrised
    assert failure is not None
    assert failure.invariant == ENDS_IN_TIME
    assert failure.message.startswith("more than 0.1 seconds of processor time")
    assert signal.getsignal(signal.SIGVTALRM) == before
    assert signal.getitimer(signal.ITIMER_VIRTUAL) == (0.0, 0.0)
