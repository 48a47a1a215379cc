"""`mqproof conform`: exit codes, one clear line for a wrong use, and the files it writes."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from conformance.cli import app
from report import json_file
from report.model import Exit, Verdict
from spec.events import Kind, read_log


def conform(*arguments: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, ["conform", *arguments])
    return result.exit_code, result.stdout, result.stderr


def test_what_holds_exits_with_0_and_writes_its_files(tmp_path: Path) -> None:
    files = {suffix: tmp_path / f"r.{suffix}" for suffix in ("json", "html", "xml")}
    logs = tmp_path / "logs"
    code, out, _ = conform(
        "--target", "impl", "--examples", "100", "--json", str(files["json"]),
        "--report", str(files["html"]), "--junit", str(files["xml"]), "--events", str(logs),
    )  # fmt: skip
    assert code == Exit.HELD, out
    report = json_file.from_json(files["json"].read_text(), "r.json")
    assert {result.verdict for result in report.results} == {Verdict.HELD}
    assert all(path.stat().st_size for path in files.values())
    events = list(read_log(sorted(logs.iterdir())[0]))
    assert events[0].kind is Kind.RECOVER


def test_a_violation_exits_with_1_and_shows_its_script(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("conformance.suite.SHRINK_EXAMPLES_MAX", 10)
    code, out, _ = conform("--target", "mutant:commit-goes-back", "--examples", "50")
    assert code == Exit.VIOLATED
    assert "Minimal script that violates" in out
    assert "replay: mqproof conform --target mutant:commit-goes-back --seed 0 --examples 50" in out


def test_too_few_examples_to_show_anything_are_inconclusive() -> None:
    assert conform("--target", "reference", "--examples", "1")[0] == Exit.INCONCLUSIVE


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--target", "nothing"], "mqproof: --target 'nothing' is no target"),
        (["--target", "impl", "--suite", "nothing"], "mqproof: --suite nothing: expected flush"),
        (["--target", "reference", "--events", "x"], "mqproof: --events: only the targets impl"),
    ],
)
def test_wrong_use_exits_with_2_and_one_line(arguments: list[str], line: str) -> None:
    code, _, err = conform(*arguments)
    assert code == Exit.USAGE
    assert err.startswith(line)
    assert err.count("\n") == 1


def test_a_cluster_that_is_not_there_exits_with_4_and_one_line() -> None:
    code, _, err = conform("--target", "remoting://127.0.0.1:1", "--examples", "1")
    assert code == Exit.TOOL
    assert err.startswith("mqproof: remoting://127.0.0.1:1: name server 127.0.0.1:1: no connection")
