"""A campaign draws its sample by a seed, keeps its verdicts, and names lines that no suite executes."""

from dataclasses import replace
from pathlib import Path

import pytest

from mqproof.conformance.mutation import campaign
from mqproof.conformance.mutation.campaign import Campaign, Judged, run, sample
from mqproof.conformance.mutation.examiner import Judge, Outcome, Task, Verdict
from mqproof.conformance.mutation.fork_server import ForkServer
from mqproof.conformance.mutation.loading import modules
from mqproof.conformance.mutation.operators import Mutant, mutants
from mqproof.conformance.mutation.reach import Hits, Reach

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

    def survive(_: ForkServer, task: Task) -> Verdict:
        tasks.append(task)
        return Verdict(Outcome.SURVIVED)

    monkeypatch.setattr(ForkServer, "judge", survive)
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
    assert len(run(replace(options, minutes=0), lambda *_: None)) == 1


def test_the_suite_that_executes_a_line_with_the_least_time_judges_first() -> None:
    def reach(cpu_s: float, hits: Hits, *cases: str) -> Reach:
        return Reach(cpu_s, cases, {"m": frozenset({1})}, {"m": {5: hits}})

    reached = {
        "flush": reach(9.0, Hits(3, (2, 4, 7))),
        "wire": reach(4.0, Hits(2, (0, 2)), "a/1", "a/2", "a/3"),
        "admin": reach(1.0, Hits(1, (0,))),
        "damage": Reach(1.0, (), {}, {}),
    }
    change = campaign._Change(Mutant("m", 0, "shift-constant", 5, "1", "2"), {"m": frozenset({5})})
    assert campaign._judges(change, reached) == (
        Judge("admin", 10),
        Judge("wire", cases=("a/1", "a/3"), is_whole=True),
        Judge("flush", 12),
    )
    assert not campaign._is_imported(change, reached)
    constant = replace(change, lines={"m": frozenset({1})})
    assert [judge.suite for judge in campaign._judges(constant, reached)] == ["admin", "wire", "flush"]
    assert campaign._is_imported(constant, reached)
    unreached = replace(change, lines={"m": frozenset({6})})
    assert campaign._judges(unreached, reached) == ()
    patch = replace(unreached, sources={"m": ""})
    assert [judge.suite for judge in campaign._judges(patch, reached)] == ["admin", "wire", "flush"]
