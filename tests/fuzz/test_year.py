"""Tests the simulated year: hours are kept, simulated once, and judged."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from math import inf
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mqproof.fuzz import hours, year
from mqproof.fuzz.cli import app
from mqproof.fuzz.cluster.program import Run
from mqproof.fuzz.hours import INVARIANTS, Hour
from mqproof.report.model import Verdict

HOUR = Hour(0, 3600.0, 6.0, 1800, 9, tuple(INVARIANTS))


def short_hour(number: int) -> Hour:
    return replace(HOUR, number=number)


def slow_hour(number: int) -> Hour:
    """Simulate an hour in a process whose id the environment's folder has then as a file."""
    Path(os.environ["PROCESSES"], str(os.getpid())).touch()
    time.sleep(0.5)
    return short_hour(number)


def run(folder: Path, count: int, seconds_max: float = inf) -> list[int]:
    """Run a year, and return the numbers of hours that were known after each new one."""
    known: list[int] = []
    year.run(folder, count, 1, seconds_max, lambda done: known.append(len(done)))
    return known


def test_each_hour_is_simulated_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hours, "simulate", short_hour)
    assert run(tmp_path, 3) == [1, 2, 3]
    assert run(tmp_path, 5) == [4, 5]
    assert run(tmp_path, 2) == []


def test_no_hour_begins_when_the_time_is_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hours, "simulate", short_hour)
    assert run(tmp_path, 9, 0) == [1]


def test_sigterm_ends_the_processes_too(tmp_path: Path) -> None:
    program = (
        f"from mqproof.fuzz import cli, hours; from {__name__} import {slow_hour.__name__} as simulate;"
        f"hours.simulate = simulate; cli.app(['fuzz', 'year', '--folder', {str(tmp_path / 'kept')!r}])"
    )
    (tmp_path / "processes").mkdir()
    environment = {**os.environ, "PROCESSES": str(tmp_path / "processes")}
    process = subprocess.Popen([sys.executable, "-c", program], env=environment, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 60
        while len(list((tmp_path / "processes").iterdir())) < 2:
            assert time.monotonic() < deadline, "no two processes within 60 seconds"
            assert process.poll() is None
            time.sleep(0.05)
        process.terminate()
        assert process.wait(timeout=60) == 128 + signal.SIGTERM
    finally:
        process.kill()
        process.wait()
    workers = [int(file.name) for file in (tmp_path / "processes").iterdir()]
    assert not [each for each in workers if Path("/proc", str(each)).exists()]


def test_an_hour_that_was_not_written_to_its_end_is_simulated_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hours, "simulate", short_hour)
    run(tmp_path, 3)
    kept = tmp_path / "hours.ndjson"
    kept.write_bytes(kept.read_bytes()[:-9])
    assert run(tmp_path, 3) == [3]
    assert run(tmp_path, 3) == []


def test_hours_of_another_version_are_simulated_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hours, "simulate", short_hour)
    run(tmp_path, 2)
    monkeypatch.setattr(year, "project_version", lambda: "0")
    assert run(tmp_path, 2) == [1, 2]


def test_a_file_that_has_no_hours_is_refused_by_its_line(tmp_path: Path) -> None:
    (tmp_path / "hours.ndjson").write_text("{}\n")
    result = CliRunner().invoke(app, ["fuzz", "year", "--folder", str(tmp_path), "--hours", "1"])
    assert result.exit_code == 2
    assert "hours.ndjson, line 1: a simulated hour expected" in result.stderr


def test_a_violation_in_one_hour_is_the_verdict_of_its_invariant() -> None:
    broken = replace(HOUR, number=7, invariant="NoAckedLost", message="m1 is gone")
    report = year.report([HOUR, broken])
    verdicts = {result.name: result.verdict for result in report.results}
    assert verdicts.pop("NoAckedLost") is Verdict.VIOLATED
    assert set(verdicts.values()) == {Verdict.HELD}
    (found,) = (result for result in report.results if result.found)
    assert found.replay == "mqproof fuzz year --hour 7"
    assert report.facts["simulated seconds a processor second"] == "600"


def test_an_error_of_the_code_is_a_violation_too() -> None:
    report = year.report([replace(HOUR, checked=(), invariant="OnlyDocumentedErrors", message="KeyError")])
    assert {result.verdict for result in report.results[:-1]} == {Verdict.UNKNOWN}
    assert report.results[-1].verdict is Verdict.VIOLATED


def test_one_hour_of_a_group_under_faults_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hours, "_STRETCH", 1)  # a minute
    file = tmp_path / "year.json"
    result = CliRunner().invoke(
        app, ["fuzz", "year", "--hour", "1", "--folder", str(tmp_path / "year"), "--json", str(file)]
    )
    written = json.loads(file.read_text())
    verdicts = {each["name"]: each["verdict"] for each in written["results"]}
    assert "violated" not in verdicts.values(), result.output
    assert verdicts["ElectionSafety"] == verdicts["NoAckedLost"] == "held"
    assert float(written["facts"]["sends"]) > 20


def test_a_broken_group_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hours, "_STRETCH", 1)
    monkeypatch.setattr(Run, "_consume", _nothing)
    assert hours.simulate(1).invariant == "AckedDelivered"


async def _nothing(_run: Run, _messages: object) -> None:
    """Receive messages without noting them."""


@pytest.mark.deep("a night on two processors")
@pytest.mark.timeout(86_400)
def test_a_simulated_year_breaks_no_invariant() -> None:
    simulated = year.run(Path("build/fuzz/year"), 365 * 24, 2, inf, lambda _: None)
    report = year.report(simulated.values())
    assert [result.name for result in report.results if result.verdict is not Verdict.HELD] == []
