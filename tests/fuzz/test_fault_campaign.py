"""Tests the campaign of single faults: every point has a verdict, whatever the number of workers."""

import json
from collections import Counter
from math import inf
from pathlib import Path

import pytest

from mqproof.fuzz import fault_campaign
from mqproof.fuzz.cli import app
from mqproof.fuzz.fault_campaign import SINGLE, Tally
from mqproof.fuzz.store.fault_judge import FaultVerdict
from mqproof.fuzz.targets.store_rot import StoreRot
from mqproof.report.model import Verdict

COMMAND = "mqproof fuzz faults --target impl"
POINTS = 210


def test_no_point_begins_when_the_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fault_campaign, "_CHUNK", 5)
    tally = fault_campaign.run(SINGLE, 3, range(10_000), 1, 0, lambda _: None)
    assert tally.points == 5


def test_a_sample_of_all_faults_breaks_no_invariant_and_shows_every_verdict() -> None:
    seen: list[int] = []
    tally = fault_campaign.run(SINGLE, 3, range(POINTS), 1, inf, lambda so_far: seen.append(so_far.points))
    assert tally.findings == []
    assert tally.points == seen[-1] == POINTS
    verdicts = {verdict for *_, verdict in tally.counts}
    assert verdicts >= {
        FaultVerdict.HARMLESS,
        FaultVerdict.REPAIRED,
        FaultVerdict.REFUSED,
        FaultVerdict.REPORTED,
    }
    report = fault_campaign.report(COMMAND, {}, tally)
    assert [result.verdict for result in report.results] == [Verdict.HELD] * 4
    (table,) = report.tables
    assert sum(int(cell.replace(",", "")) for row in table.rows for cell in row[2:]) == POINTS


@pytest.mark.deep("50,000 points; fewer are judged in every run")
@pytest.mark.timeout(3600)
def test_fifty_thousand_points_break_no_invariant() -> None:
    tally = fault_campaign.run(SINGLE, 1, range(50_000), 2, inf, lambda _: None)
    assert tally.findings == []
    assert tally.points == 50_000


def test_the_points_do_not_depend_on_the_chunks() -> None:
    whole = fault_campaign.run_points(SINGLE, 5, range(12))
    parts = Tally()
    for numbers in range(7), range(7, 12):
        parts.add(fault_campaign.run_points(SINGLE, 5, numbers))
    assert (parts.counts, parts.checked) == (whole.counts, whole.checked)


def test_a_finding_is_a_violation_with_the_command_that_replays_it() -> None:
    tally = Tally(Counter({("any", "zeroed", fault_campaign.VIOLATED): 1}))
    tally.findings.append(("NeverSilentlyLost", "lost without a report: m1", "0102"))
    report = fault_campaign.report(COMMAND, {}, tally)
    (lost,) = [result for result in report.results if result.verdict is Verdict.VIOLATED]
    assert (lost.name, lost.replay) == ("NeverSilentlyLost", f"{COMMAND} --point 0102")


def test_the_command_writes_its_report_and_judges_one_point(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, page = tmp_path / "faults.json", tmp_path / "faults.md"
    arguments = ["fuzz", "faults", "--points", "21", "--seed", "4", "--json", str(data), "--page", str(page)]
    assert _run(*arguments) == 0
    assert "Single faults" in capsys.readouterr().out
    assert {result["name"] for result in json.loads(data.read_text())["results"]} == set(StoreRot.invariants)
    assert "misdirected write" in page.read_text()
    assert _run("fuzz", "faults", "--point", fault_campaign.point(4, 0).encode().hex()) == 0
    assert "while running" in capsys.readouterr().out


def test_the_command_damages_brokers_with_peers(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["fuzz", "faults", "--brokers", "pair", "--seed", "4"]
    assert _run(*arguments, "--points", "2") == 3, "no start was refused, so one invariant was not tested"
    data = fault_campaign.point_of("pair", 4, 0).hex()
    assert _run(*arguments, "--point", data) == 0
    assert "kind='pair'" in capsys.readouterr().out.replace("\n", "")
    assert _run(*arguments, "--target", "apache:4") == 2


def _run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        app(list(arguments))
    return int(str(ended.value.code))
