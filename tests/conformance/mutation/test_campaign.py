"""A campaign draws its sample by a seed, keeps its verdicts, and names lines that no suite executes."""

from dataclasses import replace
from pathlib import Path

import pytest

from mqproof.conformance.mutation import campaign
from mqproof.conformance.mutation.campaign import Campaign, Judged, modules, run, sample
from mqproof.conformance.mutation.examiner import Outcome, Task, Verdict
from mqproof.conformance.mutation.operators import mutants

_SUITE = "producers"


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
    with (tmp_path / "verdicts.ndjson").open("a", encoding="utf-8") as file:
        file.write('{"key": "cut off')  # the campaign was killed
    assert run(options, lambda *_: None) == found
    assert len(tasks) == before, "a kept verdict is judged again"
    run(replace(options, cpu_s=61), lambda *_: None)
    assert len(tasks) == 2 * before, "a verdict under other options is used"
