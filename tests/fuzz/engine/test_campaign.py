"""Tests campaigns: findings are saved once and can be replayed; deaths and interrupts are handled."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from mqproof.fuzz.engine import atheris_search, verdict
from mqproof.fuzz.engine import campaign as campaigns
from mqproof.fuzz.engine.campaign import Campaign, WorkerError
from mqproof.fuzz.engine.findings import load
from mqproof.fuzz.targets import UnknownTargetError
from mqproof.report.model import Verdict
from tests.commands import mqproof


def canary(tmp_path: Path, *, workers: int = 1, executions: int = 30_000, target: str = "canary") -> Campaign:
    return Campaign(
        target=target,
        seconds=60,
        workers=workers,
        seed=3,
        engine="python",
        findings=tmp_path / "findings",
        corpus=tmp_path / "corpus",
        executions=executions,
    )


def ignore(outcome: campaigns.Outcome) -> None:
    pass


def process(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from mqproof.cli import main; main()", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def test_two_workers_find_the_canary_and_save_it_once(tmp_path: Path) -> None:
    campaign = canary(tmp_path, workers=2, executions=10_000_000)

    def stop_when_found(outcome: campaigns.Outcome) -> None:
        # Workers exchange inputs while they run, so the seed does not determine which worker finds it when.
        if any(len(saved.input) == 9 for saved, _ in outcome.found.values()):
            raise KeyboardInterrupt

    outcome = campaigns.run(campaign, stop_when_found)
    assert list(outcome.found) == ["CanaryAlive"]
    (path,) = (tmp_path / "findings").iterdir()
    assert load(path).input == b"\x07\x00\x00\x00\x04gas!"
    assert len(list((tmp_path / "corpus" / "canary").iterdir())) > 5
    results = {result.name: result for result in verdict.results(campaign, outcome)}
    assert results["CanaryAlive"].verdict is Verdict.VIOLATED
    assert results["CanaryAlive"].replay == f"mqproof fuzz replay {path}"
    assert results["EndsInTime"].verdict is Verdict.HELD


def test_an_invariant_that_no_input_tested_is_unknown(tmp_path: Path) -> None:
    campaign = canary(tmp_path)
    results = list(verdict.results(campaign, campaigns.Outcome()))
    assert {result.verdict for result in results} == {Verdict.UNKNOWN}


def test_the_command_line_runs_reports_and_replays_a_campaign(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    findings = tmp_path / "findings"
    run = process(
        *("fuzz", "run", "canary", "--seed", "3", "--executions", "10000", "--engine", "python"),
        *("--findings", findings, "--json", report),
    )
    (path,) = findings.iterdir()
    assert run.returncode == 1, run.stderr
    assert run.stdout.startswith("fuzz target=canary seed=3 engine=python workers=1 ")
    (line,) = [line for line in run.stdout.splitlines() if line.startswith("finding ")]
    assert line.endswith(f"replay: mqproof fuzz replay {path}")
    assert json.loads(report.read_text())["verdict"] == "violated"

    replay = process("fuzz", "replay", path)
    assert replay.returncode == 1, replay.stderr
    assert "finding canary CanaryAlive: the canary is dead (the same)" in replay.stdout


def test_a_replay_without_a_finding_says_so(tmp_path: Path) -> None:
    campaigns.run(canary(tmp_path, executions=10_000), ignore)
    (path,) = (tmp_path / "findings").iterdir()
    path.write_text(path.read_text().replace("BwAAAARnYXMh", ""))
    replay = mqproof("fuzz", "replay", path)
    assert replay.returncode == 0
    assert "no finding" in replay.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("run", "nothing"), "no fuzz target 'nothing', expected one of canary, "),
        (("run", "canary", "--engine", "magic"), "--engine magic: expected auto, python or"),
        (("run", "canary", "--workers", "0"), "--workers"),
        (("replay", "/nonexistent/file.json"), "/nonexistent/file.json: No such file or directory"),
        (("replay", "pyproject.toml"), "pyproject.toml: not a finding"),
    ],
)
def test_wrong_use_is_reported_as_one_clear_error(arguments: tuple[str, ...], message: str) -> None:
    run = mqproof("fuzz", *arguments)
    assert run.returncode == 2
    assert message in run.stderr
    assert "Traceback" not in run.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nope",), "mqproof fuzz run: no fuzz target 'nope', expected one of "),
        (
            ("canary", "--findings", "{tmp}/file"),
            "mqproof fuzz run: --findings {tmp}/file: Not a directory: ",
        ),
        (
            ("canary", "--corpus", "{tmp}/file/c"),
            "mqproof fuzz run: --corpus {tmp}/file/c: Not a directory: ",
        ),
        (("canary", "--json", "{tmp}"), "mqproof fuzz run: --json {tmp}: Is a directory"),
        (
            ("canary", "--engine", "magic"),
            "mqproof fuzz run: --engine magic: expected auto, python or",
        ),
    ],
)
def test_arguments_are_checked_before_the_header(
    arguments: tuple[str, ...], message: str, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    run = mqproof("fuzz", "run", *(each.format(tmp=tmp_path) for each in arguments))
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr.startswith(message.format(tmp=tmp_path))
    assert run.stderr.count("\n") == 1


def test_a_report_that_cannot_be_written_is_refused_before_the_search(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    run = mqproof("fuzz", "run", "canary", "--seconds", "3600", "--json", tmp_path / "file" / "report.json")
    assert run.returncode == 2
    assert run.stderr.startswith(f"mqproof fuzz run: --json {tmp_path / 'file' / 'report.json'}: ")


@pytest.mark.skipif(atheris_search.available(), reason="atheris is installed")
def test_requesting_atheris_without_having_it_is_a_missing_tool() -> None:
    run = mqproof("fuzz", "run", "canary", "--engine", "atheris")
    assert run.returncode == 4
    assert "atheris is not installed" in run.stderr


@pytest.mark.skipif(not atheris_search.available(), reason="atheris is not installed")
def test_atheris_respects_its_limits(tmp_path: Path) -> None:
    run = process(
        *("fuzz", "run", "remoting-decode", "--engine", "atheris", "--seed", "1"),
        *("--executions", "500", "--findings", tmp_path / "findings"),
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert "executions: 500" in run.stdout


def test_list_names_targets_and_invariants() -> None:
    run = mqproof("fuzz", "list")
    assert run.returncode == 0
    assert "canary\n  CanaryAlive: " in run.stdout


def test_an_unknown_target_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnknownTargetError, match="no fuzz target 'nothing'"):
        campaigns.run(canary(tmp_path, target="nothing"), ignore)


def test_a_worker_that_cannot_start_is_a_failed_tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONHOME", "/nonexistent")
    with pytest.raises(WorkerError, match="a worker ended with 1: "):
        campaigns.run(canary(tmp_path), ignore)


def test_the_input_of_a_worker_that_dies_becomes_a_finding(tmp_path: Path) -> None:
    killed: list[int] = []

    def kill_worker(outcome: campaigns.Outcome) -> None:
        if outcome.executions > 1 and not killed:
            killed.extend(_children())
            for pid in killed:
                os.kill(pid, signal.SIGSEGV)

    outcome = campaigns.run(canary(tmp_path, executions=10_000_000), kill_worker)
    words = "the process died with status -11"
    deaths = [saved for saved, _ in outcome.found.values() if saved.message == words]
    assert len(deaths) == 1
    assert deaths[0].invariant == "OnlyDocumentedErrors"


def test_an_interrupt_ends_the_campaign_early_and_keeps_its_findings(tmp_path: Path) -> None:
    def interrupt(outcome: campaigns.Outcome) -> None:
        if outcome.executions > 1:
            raise KeyboardInterrupt

    outcome = campaigns.run(canary(tmp_path, executions=10_000_000), interrupt)
    assert 1 < outcome.executions < 10_000_000
    assert not _children()


def _children() -> list[int]:
    """Yield the workers that this process has started."""
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    return [
        int(pid)
        for pid in children
        if b"mqproof.fuzz.engine.worker" in Path(f"/proc/{pid}/cmdline").read_bytes()
    ]
