"""A campaign draws its sample by a seed, keeps its verdicts, and names lines that no suite executes."""

from dataclasses import replace
from pathlib import Path
from queue import Queue

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


@pytest.mark.deep("measures what a suite reaches, in another process")
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
    assert run(replace(options, cpu_s=61, minutes=0), lambda *_: None) == found
    assert len(tasks) <= before + 2, "the time of the campaign is not kept to"
    run(replace(options, cpu_s=61), lambda *_: None)
    assert len(tasks) == 2 * before, "a survivor is not judged again with more time"
    run(replace(options, seed=1), lambda *_: None)
    assert len(tasks) > 2 * before, "a verdict under another seed is used"


@pytest.fixture
def same_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let all code have one digest: to read it takes longer than the rest of these tests."""
    monkeypatch.setattr(campaign, "_digest", lambda _: "")


@pytest.mark.usefixtures("same_code")
@pytest.mark.parametrize(
    ("outcome", "kept_cpu_s", "cpu_s", "is_judged"),
    [
        (Outcome.SURVIVED, 8, 60, True),
        (Outcome.ENDLESS, 8, 60, True),
        (Outcome.SURVIVED, 60, 60, False),
        (Outcome.SURVIVED, 8, 0, False),  # it cannot be shown, so more time is in vain
        (Outcome.VIOLATION, 8, 60, False),
    ],
)
def test_a_survivor_is_judged_again_with_more_time(
    tmp_path: Path, outcome: Outcome, kept_cpu_s: int, cpu_s: int, is_judged: bool
) -> None:
    campaign._Kept(Campaign(tmp_path)).judged("m", lambda: Verdict(outcome), kept_cpu_s)
    again = Verdict(Outcome.BROKEN)
    kept = campaign._Kept(Campaign(tmp_path))
    assert kept.judged("m", lambda: again, cpu_s) == (again if is_judged else Verdict(outcome))
    assert campaign._Kept(Campaign(tmp_path)).verdict("m") == kept.verdict("m")


@pytest.mark.usefixtures("same_code")
@pytest.mark.parametrize(
    ("examples", "original", "expected"),
    [
        (100, "m0 is lost", Outcome.SURVIVED),
        (100, "m1 is lost", Outcome.VIOLATION),
        (10, "m0 is lost", Outcome.VIOLATION),  # the original code held in the first examples
    ],
)
def test_a_suite_that_fails_on_the_original_code_in_the_same_way_detects_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, examples: int, original: str, expected: Outcome
) -> None:
    originals: list[Task] = []

    def judge(_: ForkServer, task: Task) -> Verdict:
        originals.extend([] if task.module else [task])
        witness = "m0 is lost" if task.module else original
        return Verdict(Outcome.VIOLATION, _SUITE, "REPL-2", witness, examples)

    monkeypatch.setattr(ForkServer, "judge", judge)
    servers = Queue[ForkServer]()
    servers.put(ForkServer())
    task = Task("m", 0, (Judge(_SUITE),), 100, 0, 60)
    kept = campaign._Kept(Campaign(tmp_path))
    assert [campaign._examined(servers, task, kept).outcome for _ in range(2)] == [expected] * 2
    assert len(originals) == (examples == 100), "the original code is judged once"


@pytest.mark.usefixtures("same_code")
def test_a_case_that_fails_on_the_original_code_detects_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def judge(_: ForkServer, task: Task) -> Verdict:
        if not task.judges or (not task.module and task.judges[0].cases != ("inspections/unsteady",)):
            return Verdict(Outcome.SURVIVED)
        case = "inspections/unsteady" if task.number == 0 else "inspections/steady"
        return Verdict(Outcome.VIOLATION, "inspections", case, "1 value differs")

    monkeypatch.setattr(ForkServer, "judge", judge)
    servers = Queue[ForkServer]()
    servers.put(ForkServer())
    kept = campaign._Kept(Campaign(tmp_path))
    for number, expected in ((0, Outcome.SURVIVED), (1, Outcome.VIOLATION)):
        task = Task("m", number, (Judge("inspections"),), 100, 0, 60)
        assert campaign._examined(servers, task, kept).outcome is expected


def test_a_test_that_fails_on_the_original_code_detects_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def judge(_: ForkServer, task: Task) -> Verdict:
        fails = task.module or "broken" in task.judges[0].cases[0]
        return Verdict(Outcome.VIOLATION, by=task.judges[0].cases[0]) if fails else Verdict(Outcome.SURVIVED)

    monkeypatch.setattr(ForkServer, "judge", judge)
    servers = Queue[ForkServer]()
    servers.put(ForkServer())
    task = Task("m", 0, (), 1, 0, 1)
    assert campaign._tested(servers, task, ("test_a.py",)).outcome is Outcome.VIOLATION
    verdict = campaign._tested(servers, task, ("test_broken.py",))
    assert (verdict.outcome, verdict.by) == (
        Outcome.SURVIVED, "test_broken.py fails on the original code, too",
    )  # fmt: skip


def test_the_case_that_executes_rare_lines_of_the_module_judges_first() -> None:
    lines = {5: Hits(3, (0, 1, 2)), 6: Hits(1, (1,))}
    reached = {"inspections": Reach(1.0, ("a", "b", "c"), {}, {"m": lines})}
    change = campaign._Change(Mutant("m", 0, "shift-constant", 5, "1", "2"), {"m": frozenset({5})})
    (judge,) = campaign._judges(change, reached)
    assert judge == Judge("inspections", cases=("b", "a", "c"), is_whole=True)


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
        Judge("admin"),
        Judge("wire", cases=("a/1", "a/3"), is_whole=True),
        Judge("flush", 2),
    )
    assert [judge.first_input for judge in campaign._judges(change, reached)] == [
        "admin example 1", "a/1", "flush example 3",
    ]  # fmt: skip
    assert not campaign._is_imported(change, reached)
    constant = replace(change, lines={"m": frozenset({1})})
    assert [judge.suite for judge in campaign._judges(constant, reached)] == ["admin", "wire", "flush"]
    assert campaign._is_imported(constant, reached)
    unreached = replace(change, lines={"m": frozenset({6})})
    assert campaign._judges(unreached, reached) == ()
    patch = replace(unreached, sources={"m": ""})
    assert [judge.suite for judge in campaign._judges(patch, reached)] == ["admin", "wire", "flush"]
