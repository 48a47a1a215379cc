"""Tests the demo's verdict table: one row per invariant and layer that can check it, tested or not."""

from pathlib import Path

import pytest

from mqproof.demo.cli import Demo, _make_empty, _report
from mqproof.report.model import Report, Result, Verdict
from mqproof.spec.catalogue import catalogue


def _demo(*results: Result) -> Demo:
    run = Demo(Path("unused"), lambda _: None)
    for number, result in enumerate(results):
        run.reports[str(number)] = Report("", (result,))
    return run


def _held(layer: str) -> Result:
    return Result("DELIV-1", "NoAckedLost", layer, Verdict.HELD, {"examples": 3})


def test_an_invariant_without_result_is_not_tested_and_an_impossible_check_has_no_row() -> None:
    shown = _report(_demo(_held("audit")), 1.0).results
    known = catalogue()
    rows = {(result.id, result.layer) for result in shown}
    assert len(rows) == len(shown)
    assert [result.verdict for result in shown].count(Verdict.HELD) == 1
    impossible = {(id_, "fuzz") for id_, each in known.items() if each.cell("fuzz") == "n/a"}
    assert impossible
    assert not impossible & rows


def test_a_suite_that_could_not_test_does_not_hide_a_suite_that_did() -> None:
    untested = Result("DELIV-1", "NoAckedLost", "flush", Verdict.NOT_TESTED, detail="cannot kill")
    shown = _report(_demo(untested, _held("retry")), 1.0).results
    (row,) = [each for each in shown if (each.id, each.layer) == ("DELIV-1", "conformance")]
    assert row.verdict is Verdict.HELD


def test_a_violation_outside_the_catalogue_is_also_shown() -> None:
    probe = Result("probe", "a size", "tla", Verdict.VIOLATED, detail="more states than recorded")
    assert _report(_demo(_held("audit"), probe), 1.0).results[-1] == probe


def test_a_folder_with_other_files_is_not_deleted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "precious").write_text("x", encoding="utf-8")
    with pytest.raises(SystemExit) as ended:
        _make_empty(tmp_path)
    assert ended.value.code == 2
    assert (tmp_path / "precious").exists()
    assert "not a folder of an earlier demo" in capsys.readouterr().err


def test_the_folder_of_an_earlier_demo_is_replaced(tmp_path: Path) -> None:
    _make_empty(tmp_path / "demo")
    (tmp_path / "demo" / "report.html").touch()
    _make_empty(tmp_path / "demo")
    assert not (tmp_path / "demo" / "report.html").exists()
