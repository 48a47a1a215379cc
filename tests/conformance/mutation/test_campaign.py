"""A small campaign judges in processes, keeps its verdicts, and measures what each suite executes."""

from dataclasses import replace
from pathlib import Path

import pytest

from mqproof.conformance.mutation import campaign
from mqproof.conformance.mutation.campaign import Campaign, Judged, modules, run, sample
from mqproof.conformance.mutation.examiner import Outcome, Task, Verdict
from mqproof.conformance.mutation.operators import mutants
from mqproof.conformance.mutation.reach import ReachError, measure

_CHOICE = "mqproof.impl.client.producing.queue_choice"
_SUITE = "producers"


def _number(module: str, text: str) -> int:
    source = modules(("client",))[module].read_text(encoding="utf-8")
    return next(mutant.number for mutant in mutants(module, source) if text in mutant.after)


def test_sample_is_determined_by_its_seed() -> None:
    first = sample(("namesrv",), 20, 1)
    assert first == sample(("namesrv",), 20, 1) != sample(("namesrv",), 20, 2)
    assert len({mutant.id for mutant in first}) == 20


def test_sample_reaches_every_module() -> None:
    drawn = sample(("namesrv", "replication"), 60, 0)
    with_mutants = {
        name
        for name, file in modules(("namesrv", "replication")).items()
        if mutants(name, file.read_text(encoding="utf-8"))
    }
    assert {mutant.module for mutant in drawn} == with_mutants


def test_campaign_keeps_verdicts_and_names_unreached_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = Campaign(tmp_path, ("client",), (_SUITE,), size=40, examples=2, workers=1)
    judged: list[Judged] = []
    tasks: list[Task] = []

    def survive(task: Task) -> Verdict:
        tasks.append(task)
        return Verdict(Outcome.SURVIVED)

    monkeypatch.setattr(campaign, "_in_a_process", survive)
    found = run(options, lambda one, *_: judged.append(one))
    assert {one.mutant for one in judged} == {one.mutant for one in found}
    assert all(bool(one.reached_by) == (one.verdict.outcome is Outcome.SURVIVED) for one in found)
    assert {one.verdict.outcome for one in found} == {Outcome.SURVIVED, Outcome.UNREACHED}
    before = len(tasks)
    assert run(options, lambda *_: None) == found
    assert len(tasks) == before, "a kept verdict is judged again"
    run(replace(options, cpu_s=61), lambda *_: None)
    assert len(tasks) == 2 * before, "a verdict under other options is used"


def test_defect_of_the_client_is_detected_by_its_suite() -> None:
    task = Task(_CHOICE, _number(_CHOICE, "- 1"), (_SUITE,), 20, 0, 60)
    verdict = campaign._in_a_process(task)
    assert verdict.outcome in {Outcome.VIOLATION, Outcome.BROKEN}
    assert verdict.suite == _SUITE


def test_module_that_cannot_be_imported_is_broken_and_names_the_suite() -> None:
    verdict = campaign._in_a_process(Task(_CHOICE, 10**9, (_SUITE,), 1, 0, 60))
    assert (verdict.outcome, verdict.suite) == (Outcome.BROKEN, _SUITE)


def test_process_without_an_end_is_endless() -> None:
    verdict = campaign._in_a_process(Task("", 0, (_SUITE,), 100_000, 0, 2))
    assert (verdict.outcome, verdict.suite) == (Outcome.ENDLESS, _SUITE)


def test_reach_names_executed_lines_only() -> None:
    lines, seconds = measure(_SUITE, 2, 0)
    source = modules(("client",))[_CHOICE].read_text(encoding="utf-8").splitlines()
    returns = {at for at, line in enumerate(source, 1) if line.strip().startswith("return")}
    assert lines[_CHOICE] & returns, "no function of the module ran"
    assert returns - lines[_CHOICE], "two examples cannot reach every line"
    assert seconds > 0


def test_unknown_suite_is_no_reach() -> None:
    with pytest.raises(ReachError, match="suite nothing"):
        measure("nothing", 2, 0)
