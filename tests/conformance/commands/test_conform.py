"""`mqproof conform`: exit codes, a one-line error for wrong use, and the written files."""

from pathlib import Path
from typing import Any, NoReturn
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

from mqproof.conformance.commands.conform import app
from mqproof.conformance.engine.run_options import SINCE, RunOptions, since_of
from mqproof.conformance.engine.targets import TargetError
from mqproof.conformance.registry.mutant_judge import HUNTS
from mqproof.conformance.registry.suite_registry import conduct
from mqproof.conformance.traces.round_trip import Wrong
from mqproof.report import json_file
from mqproof.report.model import Exit, Verdict
from mqproof.spec.events import Kind, read_log


def conform(*arguments: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, ["conform", *arguments])
    return result.exit_code, result.stdout, result.stderr


def test_a_held_run_exits_with_0_and_writes_its_files(tmp_path: Path) -> None:
    files = {suffix: tmp_path / f"r.{suffix}" for suffix in ("json", "html", "xml")}
    logs = tmp_path / "logs"
    code, out, _ = conform(
        "--target", "impl", "--suite", "flush", "--examples", "12", "--seed", "1",
        "--json", str(files["json"]), "--report", str(files["html"]),
        "--junit", str(files["xml"]), "--events", str(logs),
    )  # fmt: skip
    assert code == Exit.HELD, out
    report = json_file.from_json(files["json"].read_text(), "r.json")
    assert {result.verdict for result in report.results} == {Verdict.HELD}
    assert all(path.stat().st_size for path in files.values())
    kept = [log.name for log in sorted(logs.iterdir())]
    assert kept == [f"flush-{number:05}.ndjson" for number in range(1, 13)]
    assert next(iter(read_log(logs / kept[-1]))).kind is Kind.RECOVER
    (suite,) = ElementTree.parse(files["xml"]).getroot()
    cases = sum(float(case.attrib["time"]) for case in suite.iter("testcase"))
    assert cases == pytest.approx(float(report.facts["seconds"]), abs=0.1)


def test_one_scoreboard_shows_all_suites_of_a_target(tmp_path: Path) -> None:
    file = tmp_path / "r.json"
    globs = [word for glob in ("FLUSH-4", "ROUTE-1", "remoting/max-offset/1") for word in ("--id", glob)]
    code, out, _ = conform("--target", "impl", "--examples", "6", *globs, "--json", str(file))
    assert code == Exit.HELD, out
    report = json_file.from_json(file.read_text())
    assert [(one.layer, one.id) for one in report.results] == [
        ("flush", "FLUSH-4"), ("routing", "ROUTE-1"),
        ("workload", "A08"), ("workload", "C01"), ("workload", "C04.1"),  # the rules of FLUSH-4
        ("wire", "remoting/max-offset/1"),
    ]  # fmt: skip
    evidence = next(table for table in report.tables if table.title == "Evidence")
    assert [row[0] for row in evidence.rows] == ["flush", "routing", "workload", "wire"]
    assert evidence.columns == (
        "suite", "examples", "operations", "traces", "transitions", "pairs covered", "pairs feasible",
        "cases", "exchanges", "seconds",
    )  # fmt: skip
    assert all(int(evidence.rows[0][at].replace(",", "")) for at in (1, 2, 4))
    faults = next(table for table in report.tables if table.title == "Faults")
    assert faults.columns == ("fault", "flush", "routing", "workload")
    assert all(any(row[at] != "0" for row in faults.rows) for at in (1, 2, 3))
    assert "not tried in every way" not in out


def test_a_suite_that_does_not_know_the_target_is_not_tested(tmp_path: Path) -> None:
    file = tmp_path / "r.json"
    conform("--target", "reference", "--examples", "5", "--json", str(file))
    report = json_file.from_json(file.read_text())
    absent = [one for one in report.results if one.layer in ("routing", "wire")]
    assert {one.verdict for one in absent} == {Verdict.NOT_TESTED}
    assert all(one.detail.startswith("'reference'") for one in absent)
    assert {one.layer for one in absent} == {"routing", "wire"}


def test_a_suite_that_could_not_run_is_unknown_and_the_others_are_judged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: Any) -> NoReturn:
        raise TargetError("the broker is on fire")

    monkeypatch.setattr("mqproof.conformance.adapters.routing.name_servers.ImplNameServer.open", refuse)
    code, out, _ = conform("--target", "impl", "--examples", "6", "--id", "FLUSH-4", "--id", "ROUTE-1")
    assert code == Exit.INCONCLUSIVE
    assert "unknown ROUTE-1 TablesAgree (routing): the broker is on fire" in out


def test_unavailable_wire_cases_have_one_row_each_in_files_and_one_row_on_screen() -> None:
    part = conduct(RunOptions("remoting://127.0.0.1:1", ids=("remoting/send/*",)), "wire", lambda *_: None)
    assert len(part.results) > 10
    assert {(one.verdict, "no connection" in one.detail) for one in part.results} == {(Verdict.UNKNOWN, True)}
    assert part.summary is not None
    assert [(one.id, one.verdict) for one in part.summary] == [("wire", Verdict.UNKNOWN)]


def test_the_order_of_suites_on_the_command_line_does_not_matter() -> None:
    chosen = ("--target", "reference", "--id", "FLUSH-4", "--id", "ROUTE-1", "--dry-run")
    first = conform(*chosen, "--suite", "flush", "--suite", "routing")
    assert first == conform(*chosen, "--suite", "routing", "--suite", "flush")
    assert [line.split()[:2] for line in first[1].splitlines()] == [
        ["FLUSH-4", "flush"], ["ROUTE-1", "routing"],
    ]  # fmt: skip


def test_a_violation_exits_with_1_and_shows_its_script(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mqproof.conformance.engine.suite_run.SHRINK_EXAMPLES_MAX", 4)
    code, out, _ = conform("--target", "mutant:commit-goes-back", "--examples", "4", "--seed", "7")
    assert code == Exit.VIOLATED
    assert "Minimal script that violates" in out
    assert "mqproof conform --target mutant:commit-goes-back --suite flush --seed 7 --examples 4" in out
    assert str(Wrong.MAPPING) in out


def test_a_violation_of_an_invariant_that_was_not_selected_does_not_count() -> None:
    code, out, _ = conform("--target", "mutant:commit-goes-back", "--examples", "8", "--id", "FLUSH-4")
    assert code == Exit.HELD
    assert "suites: flush\n" in out  # the suite that owns the mutant


def test_too_few_examples_are_inconclusive() -> None:
    assert conform("--target", "reference", "--examples", "1")[0] == Exit.INCONCLUSIVE


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--target", "nothing"], "mqproof: --target 'nothing' is not a target"),
        (["--target", "mutant:nope"], "mqproof: --target 'mutant:nope' is not a mutant of any suite"),
        ([], "mqproof: --target is missing"),
        (["--target", "impl", "--suite", "nothing"], "mqproof: --suite nothing: expected flush"),
        (["--target", "impl", "--id", "NO-*"], "mqproof: --id NO-*: no invariant and no case"),
        (["--target", "reference", "--events", "x"], "mqproof: --events: only the targets impl"),
    ],
)
def test_wrong_use_exits_with_2_and_one_line(arguments: list[str], line: str) -> None:
    code, _, err = conform(*arguments)
    assert code == Exit.USAGE
    assert err.startswith(line)
    assert err.count("\n") == 1


def test_an_unknown_mutant_names_the_page_that_lists_the_mutants_of_all_suites() -> None:
    page = "docs/reference/conformance/mutants.md"
    expected = f"mqproof: --target 'mutant:nope' is not a mutant of any suite; {page} lists them\n"
    assert conform("--target", "mutant:nope")[2] == expected
    listed = (Path(__file__).parents[3] / page).read_text(encoding="utf-8")
    for hunt in HUNTS:
        assert all(f"| {mutant} |" in listed for mutant in hunt.mutants)


def test_a_misspelled_mutant_is_answered_with_the_nearest_names() -> None:
    err = conform("--target", "mutant:ack-befor-flush")[2]
    assert "is not a mutant of any suite; did you mean ack-before-flush" in err
    assert len(err) < 300


def test_a_target_that_dies_during_the_run_exits_with_4_and_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> NoReturn:
        raise TargetError("the broker is on fire")

    monkeypatch.setattr("mqproof.conformance.adapters.reference.ReferenceTarget.pull", refuse)
    code, _, err = conform("--target", "reference", "--suite", "flush", "--examples", "20")
    assert code == Exit.TOOL
    assert err.splitlines()[-1] == "mqproof: reference: the broker is on fire"
    assert "Traceback" not in err


def test_an_unreachable_cluster_exits_with_4_and_is_recorded_in_the_files(tmp_path: Path) -> None:
    file = tmp_path / "r.json"
    chosen = ("--suite", "flush", "--suite", "wire", "--id", "FLUSH-4", "--id", "remoting/send/1")
    code, out, err = conform("--target", "remoting://127.0.0.1:1", *chosen, "--json", str(file))
    assert (code, out) == (Exit.TOOL, "")
    assert err.startswith("mqproof: remoting://127.0.0.1:1: name server 127.0.0.1:1: no connection")
    assert err.count("\n") == 1
    found = json_file.from_json(file.read_text()).results
    assert {(one.layer, one.verdict) for one in found} == {
        ("flush", Verdict.UNKNOWN), ("wire", Verdict.UNKNOWN),
    }  # fmt: skip


@pytest.mark.parametrize("target", ["reference", "remoting://127.0.0.1:1"])
def test_a_suite_without_such_a_target_does_not_affect_the_others(target: str, tmp_path: Path) -> None:
    file = tmp_path / "r.json"
    chosen = ("--suite", "flush", "--suite", "consumers", "--examples", "5", "--id", "DELIV-4")
    code, out, err = conform("--target", target, *chosen, "--json", str(file))
    assert code == Exit.USAGE
    assert err.splitlines()[-1].startswith(
        f"mqproof: --target {target!r}: the suite examines only our own consumers"
    )
    flush, consumers = json_file.from_json(file.read_text()).results
    assert (flush.verdict is Verdict.HELD) == ("flush" in out) == (target == "reference")
    assert consumers.verdict is Verdict.NOT_TESTED


def test_a_release_line_of_apache_is_tested_by_its_own_rules_and_so_is_a_replay() -> None:
    listed = {
        line: conform("--target", f"apache:{line}", "--suite", "wire", "--dry-run")[1] for line in SINCE
    }
    assert 0 < listed["4.9"].count("\n") < listed["5"].count("\n")
    assert "--since" not in RunOptions("apache:4.9", since=since_of("apache:4.9")).replay("routing")
    assert RunOptions("remoting://a:1", since="4.9").replay("routing").endswith("--suite routing --since 4.9")
