"""Tests that the machine-readable result goes to a file or to standard output."""

from pathlib import Path

import pytest
import typer

from mqproof.impl.terminal.output import write_json


def test_a_dash_selects_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    write_json("send", Path("-"), '{"sends":1}')
    assert capsys.readouterr().out == '{"sends":1}\n'


def test_a_file_receives_the_result_and_nothing_is_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_json("send", tmp_path / "summary.json", '{"sends":1}')
    assert (tmp_path / "summary.json").read_text() == '{"sends":1}\n'
    assert capsys.readouterr().out == ""


def test_a_file_that_cannot_be_written_is_reported_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit):
        write_json("send", Path("/nowhere/s.json"), "{}")
    assert capsys.readouterr().err == "mqproof send: --json /nowhere/s.json: No such file or directory\n"
