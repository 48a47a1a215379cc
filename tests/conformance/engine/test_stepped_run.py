"""The possible states of a run are kept until an observation decides, and determine the verdict."""

from collections.abc import Iterable

import pytest

from mqproof.conformance.engine import stepped_run
from mqproof.conformance.engine.finding import SPEC_1, Finding
from mqproof.conformance.engine.stepped_run import Explanation, Run, Stepped
from mqproof.report.model import Verdict, Witness


def after(state: int, operation: str) -> Iterable[int]:
    """`?` adds one or nothing; a digit is an observation."""
    return (state, state + 1) if operation == "?" else (state,) * (str(state) == operation)


EXPLANATION: Explanation[int, str] = Explanation((0,), after, str, lambda operation: f"saw {operation}")


def never(_run: Run[str]) -> Finding:
    return Finding(Verdict.VIOLATED, {}, (Witness("wrong"),))


def seen(*operations: str) -> Stepped[int, str]:
    session = Stepped("a counter", EXPLANATION, {})
    for operation in operations:
        session.observe(operation)
    return session


def test_an_unknown_result_keeps_several_states_until_an_observation_decides() -> None:
    assert seen("?", "?").states == {0, 1, 2}
    assert seen("?", "?", "1").states == {1}


def test_an_operation_that_no_state_explains_is_a_violation() -> None:
    session = seen("?", "5", "1")
    finding = session.findings()[SPEC_1]
    assert finding.verdict is Verdict.VIOLATED
    assert finding.witnesses[0].text == "no state of the model explains step 3 (5)"
    assert finding.witnesses[0].values == {"the model allowed before": "0 or 1"}
    assert session.actions() == {"saw ?": 1}


def test_a_violation_of_a_named_invariant_is_not_reported_twice() -> None:
    session = Stepped("a counter", EXPLANATION, {"DELIV-1": never})
    session.observe("5")
    verdicts = {i: finding.verdict for i, finding in session.findings().items()}
    assert verdicts == {"DELIV-1": Verdict.VIOLATED, SPEC_1: Verdict.UNKNOWN}


def test_an_empty_run_and_a_run_with_too_many_states_are_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    assert seen().findings()[SPEC_1].verdict is Verdict.UNKNOWN
    assert seen("?", "?").findings()[SPEC_1].verdict is Verdict.HELD
    monkeypatch.setattr(stepped_run, "STATES_MAX", 2)
    assert seen("?", "?", "9").findings()[SPEC_1].verdict is Verdict.UNKNOWN


def test_the_script_begins_with_the_opening_step() -> None:
    assert seen("?", "1").script() == ["a counter", "?", "1"]
