"""Goal: the matrix has TLC's verdicts, is compared with matrix.toml and with the book, and is displayed.

TLC decides one row here (a few thousand states); `mqproof matrix` decides all rows.
"""

import json
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

import msgspec
import pytest
from typer.testing import CliRunner

from mqproof.spec.guarantee import claims, document, recorded, show
from mqproof.spec.guarantee.cli import app
from mqproof.spec.guarantee.matrix import (
    FAULTS,
    Cell,
    Matrix,
    Outcome,
    Setup,
    columns,
    damage_columns,
    decide,
    decide_damage,
    joined,
    setups,
)
from mqproof.spec.guarantee.picture import file_name, picture
from mqproof.spec.guarantee.view import View, build

ROW = Setup("SYNC_FLUSH", "none", "sync")
CHOSEN = {"flush": ROW.flush, "replication": ROW.replication, "producer": ROW.producer}
OPTIONS = ("--flush", ROW.flush, "--replication", ROW.replication, "--producer", ROW.producer)


@cache
def _row() -> Matrix:
    return decide(CHOSEN)


def _view(**how: str) -> View:
    verdicts, known = recorded.load(), claims.load()
    return build(verdicts, known, claims.compare(verdicts, known), document.pictures(), **how)  # type: ignore[arg-type]


def test_tlc_decides_one_row_of_the_matrix_as_recorded() -> None:
    assert list(recorded.changed(_row().verdicts, recorded.load())) == []
    assert [cell.faults for cell in _row().verdicts] == list(columns())


@pytest.mark.deep("TLC decides the cells of these columns; it decides one row in every run")
def test_tlc_decides_the_columns_of_a_damaged_disk_as_recorded() -> None:
    chosen = {"flush": "SYNC_FLUSH", "producer": "sync"}
    matrix = decide_damage(chosen)
    assert list(recorded.changed(matrix.verdicts, recorded.load())) == []
    found = {cell.setup.replication: outcome for cell, outcome in matrix.verdicts.items()}
    assert found["none"] is found["ASYNC_MASTER"] is Outcome.GONE
    assert found["SYNC_MASTER"] is Outcome.SILENT, "the slave has what was answered with SEND_OK"
    cell = Cell(ROW, ("flip",))
    svg = picture(cell, matrix.verdicts[cell], matrix.counterexamples[cell])
    assert "its record is damaged, and no other node has it" in svg


@pytest.mark.deep("TLC decides every cell of the matrix; it decides one row in every run")
def test_tlc_decides_the_whole_matrix_as_recorded() -> None:
    matrix = decide()
    assert joined(matrix, decide_damage()).verdicts == recorded.load()
    assert matrix.states == 152768


def test_each_unsafe_combination_has_a_counterexample_and_a_picture() -> None:
    matrix = _row()
    bad = {cell for cell, outcome in matrix.verdicts.items() if outcome not in (Outcome.SAFE, Outcome.NEVER)}
    assert set(matrix.counterexamples) == bad
    power = Cell(ROW, ("power",))
    assert "MCPowerLoss" in matrix.counterexamples[power].actions
    svg = picture(power, matrix.verdicts[power], matrix.counterexamples[power])
    assert ElementTree.fromstring(svg).tag.endswith("svg")
    assert "NoSilentLoss is violated" in svg
    assert "FLUSH_DISK_TIMEOUT" in svg


def test_a_combination_of_faults_that_cannot_occur_is_not_called_safe() -> None:
    assert _row().verdicts[Cell(ROW, ("machine", "machine"))] is Outcome.NEVER


def test_a_verdict_that_differs_from_the_recorded_one_is_reported() -> None:
    cell = Cell(ROW, ("clean",))
    other = {**recorded.load(), cell: Outcome.GONE}
    assert list(recorded.changed(_row().verdicts, other)) == [f"{cell}: safe, gone recorded"]


def test_the_recorded_matrix_is_complete_and_is_unchanged_when_written_and_read(tmp_path: Path) -> None:
    verdicts = recorded.load()
    assert set(verdicts) == {
        Cell(setup, faults) for setup in setups() for faults in (*columns(), *damage_columns())
    }
    (tmp_path / "matrix.toml").write_text(recorded.render(verdicts), encoding="utf-8")
    assert recorded.load(tmp_path / "matrix.toml") == verdicts
    assert recorded.render(verdicts) == recorded.RECORDED_FILE.read_text(encoding="utf-8")


def test_a_recorded_row_with_missing_verdicts_is_reported_with_its_name(tmp_path: Path) -> None:
    (tmp_path / "matrix.toml").write_text(
        '["SYNC_FLUSH none sync"]\nalone = "safe"\npairs = ""\n', encoding="utf-8"
    )
    with pytest.raises(recorded.RecordedError, match=r"\[SYNC_FLUSH none sync\]: 1 verdicts, 29 expected"):
        recorded.load(tmp_path / "matrix.toml")


def test_each_difference_from_the_book_is_explained_and_each_explanation_is_needed() -> None:
    verdicts, known = recorded.load(), claims.load()
    compared = claims.compare(verdicts, known)
    assert claims.stale(compared, known) == ()
    for difference in known.difference:
        assert verdicts[difference.example_cell] not in (Outcome.SAFE, Outcome.NEVER), difference.name


def test_an_unexplained_difference_is_an_error_and_a_needless_explanation_is_stale() -> None:
    verdicts, known = recorded.load(), claims.load()
    without = msgspec.structs.replace(known, difference=known.difference[1:])
    with pytest.raises(
        claims.ClaimsError, match="process: TLC says safe, the book's async-flush differs; no expl"
    ):
        claims.compare(verdicts, without)
    agreeing = [
        entry for entry in claims.compare(verdicts, known) if entry.difference is not known.difference[0]
    ]
    assert claims.stale(agreeing, known) == ("page-cache",)


def test_the_guarantees_page_equals_the_recorded_matrix_and_has_all_pictures() -> None:
    text = document.DOCUMENT.read_text(encoding="utf-8")
    assert document.refreshed(text, recorded.load()) == text
    committed = {path.name for path in (document.DOCUMENT.parent / "guarantees").iterdir()}
    assert committed == {Path(name).name for name in document.pictures().values()}


def test_the_matrix_page_links_pictures_and_marks_differences_from_the_book() -> None:
    view = _view()
    page = show.html(view)
    name = file_name(Cell(ROW, ("power",)))
    assert f'href="guarantees/{name}"' in page
    assert 'href="#difference-2"' in page
    assert f"](guarantees/{name})" in show.markdown(view)


def test_the_view_of_one_fault_has_only_the_columns_with_that_fault() -> None:
    view = _view(fault="power")
    assert [column.name for column in view.single_columns] == ["4"]
    assert [column.name for column in view.double_columns] == ["14", "24", "34", "44", "45", "46"]
    assert {entry for claim in view.claims for entry in claim.differences} == {1, 2, 3}


def test_matrix_exits_0_prints_the_row_and_writes_pages_and_pictures(tmp_path: Path) -> None:
    arguments = (
        "matrix",
        *OPTIONS,
        "--fault",
        "power",
        "--out",
        str(tmp_path),
        "--json",
        str(tmp_path / "m.json"),
    )
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert "SYNC_FLUSH  none           sync   silent ≠1" in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 120
    cells = {tuple(cell["faults"]): cell for cell in json.loads((tmp_path / "m.json").read_text())["cells"]}
    assert cells["power",]["verdict"] == cells["power",]["recorded"] == "silent"
    assert (tmp_path / cells["power",]["counterexample"]).is_file()
    assert "counterexamples/" in (tmp_path / "matrix.html").read_text(encoding="utf-8")


def test_matrix_exits_1_if_a_verdict_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    cell = Cell(ROW, ("clean",))
    other = {**recorded.load(), cell: Outcome.GONE}
    monkeypatch.setattr(recorded, "load", lambda: other)
    monkeypatch.setattr("mqproof.spec.guarantee.matrix.decide", lambda _chosen: _row())
    result = CliRunner().invoke(app, ("matrix", *OPTIONS))
    assert result.exit_code == 1
    assert f"✗ {cell}: safe, gone recorded" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--fault", "fire"), f"--fault fire: expected one of {', '.join(FAULTS)}"),
        (("--flush", "never"), "--flush never: expected one of ASYNC_FLUSH, SYNC_FLUSH"),
        (("--record", "--fault", "os"), "--record: expected without --fault"),
    ],
)
def test_a_wrong_option_value_exits_2_with_a_one_line_message(
    arguments: tuple[str, ...], message: str
) -> None:
    result = CliRunner().invoke(app, ("matrix", *arguments))
    assert result.exit_code == 2
    assert message in result.stderr
