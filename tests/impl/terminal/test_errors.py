"""Tests one-line errors and their exit codes."""

import pytest
import typer

from mqproof.impl.terminal.errors import fail, one_line


def test_a_failure_is_one_line_on_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit) as ended:
        fail("send", "give either --body TEXT or --size BYTES")
    assert ended.value.exit_code == 2
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ("", "mqproof send: give either --body TEXT or --size BYTES\n")


def test_a_failure_may_have_another_exit_code() -> None:
    with pytest.raises(typer.Exit) as ended:
        fail("admin", "no answer", 4)
    assert ended.value.exit_code == 4


def test_an_error_about_a_file_names_the_file() -> None:
    assert one_line(FileNotFoundError(2, "No such file or directory", "x.conf")) == (
        "x.conf: No such file or directory"
    )
    assert one_line(OSError("in use")) == "in use"
    assert one_line(ValueError("7 expected")) == "7 expected"
