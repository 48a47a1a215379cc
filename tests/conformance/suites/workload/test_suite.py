"""The suite workload of `conform`: one history with faults, judged by every rule."""

from pathlib import Path

import pytest

from mqproof.conformance.engine.run_options import RunOptions
from mqproof.conformance.engine.targets import UnknownTargetError
from mqproof.conformance.engine.value_pairs import shown
from mqproof.conformance.history.judge import check_files
from mqproof.conformance.history.lines import (
    NEMESIS,
    Fault,
    FaultValue,
    Message,
    Poll,
    Send,
    SendValue,
    SetupValue,
    Type,
)
from mqproof.conformance.history.recorder import Historian
from mqproof.conformance.history.rules import RULES
from mqproof.conformance.registry.suite_registry import SUITES
from mqproof.conformance.suites.workload import suite
from mqproof.conformance.suites.workload.dimensions import DIMENSIONS, scripts
from mqproof.report.model import Verdict

RUN = SUITES["workload"].run


def silent(_done: int, _all: int) -> None:
    pass


def test_every_rule_has_a_row_and_none_is_violated(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    part = RUN(
        RunOptions("impl", seed=4, examples=20, events=tmp_path), lambda done, all_: seen.append((done, all_))
    )
    assert [each.id for each in part.results] == [rule.id for rule in RULES]
    verdicts = {each.verdict for each in part.results}
    assert Verdict.HELD in verdicts
    assert Verdict.VIOLATED not in verdicts
    assert part.faults is not None
    assert sum(part.faults.values()) >= 2
    assert seen == sorted(seen)
    assert all(done <= all_ for done, all_ in seen)
    again = check_files([tmp_path / "workload-4.jsonl"])
    assert [each.verdict for each in again.results] == [each.verdict for each in part.results]


def test_a_defect_is_reported_with_its_replay_command() -> None:
    options = RunOptions("mutant:consumed-twice", examples=10, ids=("DELIV-3",))
    part = RUN(options, silent)
    found = {each.id: each for each in part.results}
    assert set(found) == {rule.id for rule in RULES if rule.invariant == "DELIV-3"}
    assert found["A07"].verdict is Verdict.VIOLATED
    command = "mqproof conform --target mutant:consumed-twice --suite workload --seed 0 --examples 10"
    assert found["A07"].replay == command


def test_a_fault_and_a_request_soon_after_it_are_a_pair() -> None:
    lines = Historian(lambda: 0, SetupValue()).lines
    lines += [
        Fault(0, 0, NEMESIS, Type.INFO, FaultValue("kill")),
        Poll(1, 14 * 10**9, "a", Type.INVOKE),
        Fault(2, 14 * 10**9, NEMESIS, Type.INFO, FaultValue("start")),
        Send(3, 16 * 10**9, "a", Type.INVOKE, SendValue("w-later", (Message("m"),))),
    ]
    (script,) = scripts(lines)
    assert [shown(pair) for pair in DIMENSIONS.shown_in(script)] == ["fault: kill with request: poll"]


@pytest.mark.deep("10 CPU seconds")
def test_a_hundred_examples_have_all_pairs() -> None:
    part = RUN(RunOptions("impl"), silent)
    assert part.looked_at["pairs covered"] == part.looked_at["pairs feasible"]
    assert not part.tables


@pytest.mark.parametrize("target", ["reference", "mutant:unknown", "remoting://nowhere"])
def test_an_unsupported_target_is_refused(target: str) -> None:
    with pytest.raises(UnknownTargetError, match=r"unknown|nowhere|expected"):
        RUN(RunOptions(target), silent)


def test_rules_are_selected_by_their_ids_and_by_those_of_their_invariants() -> None:
    assert [each.id for each in suite.listed(RunOptions("impl", ids=("C0[67]", "DELIV-11")))] == [
        "C06",
        "C07",
        "C15",
    ]
    assert len(list(suite.lines(RunOptions("impl")))) == len(RULES)
