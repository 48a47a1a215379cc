"""The commands convert a history to columns and back, and check columns."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mqproof.conformance.commands.histories import app
from mqproof.conformance.history.formats import READERS, WRITERS
from mqproof.conformance.history.lines import encode
from tests.conformance.history.columns.healthy import healthy


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "h.jsonl"
    path.write_bytes(b"".join(map(encode, healthy(1, 6).lines)))
    return path


def _run(*arguments: object) -> tuple[int, str]:
    result = CliRunner().invoke(app, list(map(str, arguments)))
    return result.exit_code, result.output


def test_every_format_that_is_written_or_read_is_in_the_help() -> None:
    text = _run("convert-history", "--help")[1]
    assert all(name in text for name in {*READERS, *WRITERS})


def test_columns_are_checked_and_converted_back(source: Path, tmp_path: Path) -> None:
    folder, back = tmp_path / "h.columns", tmp_path / "back.jsonl"
    assert _run("convert-history", source, folder, "--to", "columns")[0] == 0
    for name, history in (("lines", source), ("columns", folder)):
        _run("check-history", history, "--json", tmp_path / f"{name}.json", "--processes", 1)
    lines, columns = (json.loads((tmp_path / f"{name}.json").read_text()) for name in ("lines", "columns"))
    assert [(each["id"], each["verdict"], each["counts"]) for each in columns["results"]] == [
        (each["id"], each["verdict"], each["counts"]) for each in lines["results"]
    ]
    assert columns["facts"]["queues judged from columns"] == "4"
    assert _run("convert-history", folder, back, "--from", "columns", "--to", "jsonl")[0] == 0
    assert len(back.read_bytes().splitlines()) == len(source.read_bytes().splitlines())


def test_an_invalid_folder_of_columns_is_one_line_and_exit_code_2(source: Path, tmp_path: Path) -> None:
    folder = tmp_path / "h.columns"
    assert _run("convert-history", source, folder, "--to", "columns")[0] == 0
    assert _run("convert-history", source, folder, "--to", "columns")[0] == 2
    (folder / "0.bytes").write_bytes(b"")
    code, text = _run("check-history", folder)
    assert (code, "0.bytes: 0 bytes, expected " in text) == (2, True)


@pytest.mark.parametrize("option", [("--parts", 2), ("--orders", "o")])
def test_an_option_that_needs_lines_is_refused(option: tuple[str, object], tmp_path: Path) -> None:
    code, text = _run("check-history", tmp_path, *option)
    assert (code, "convert them with --from columns --to jsonl" in text) == (2, True)
