"""Tests the command itself: help, unknown commands, the mutants of all layers."""

import importlib
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import typer

from mqproof import cli
from mqproof.report.json_file import from_json
from mqproof.report.model import Exit


def _run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["mqproof", *arguments])
    try:
        cli.main()
    except SystemExit as exit_:
        return int(exit_.code or 0)
    return 0


def test_help_lists_every_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run(monkeypatch, "--help") == 0
    shown = capsys.readouterr().out
    assert all(f"\n  {command} " in shown for command in cli.COMMANDS)


def test_an_unknown_command_is_wrong_use(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run(monkeypatch, "boom") == 2
    assert capsys.readouterr().err == "mqproof: no command 'boom'; see mqproof --help\n"


def test_an_internal_error_is_not_a_violation(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    app = typer.Typer()

    @app.callback()
    def _root() -> None: ...

    @app.command()
    def check(context: typer.Context) -> None:
        raise RuntimeError(f"{context.command_path.partition(' ')[0]} failed for no known reason")

    monkeypatch.setitem(sys.modules, "failing", SimpleNamespace(app=app))
    monkeypatch.setitem(cli.COMMANDS, "check", ("failing", ""))
    assert _run(monkeypatch, "check") == Exit.TOOL
    reported = capsys.readouterr().err
    assert reported.startswith("Traceback")
    assert reported.endswith("RuntimeError: mqproof failed for no known reason\n")


def test_a_mutant_is_run_by_its_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    answer = tmp_path / "mutants.json"
    arguments = ("mutants", "--layer", "reference", "--only", "LateCommit", "--json", str(answer))
    assert _run(monkeypatch, *arguments) == 0
    (result,) = from_json(answer.read_text(encoding="utf-8")).results
    assert (result.id, result.name, result.verdict) == ("DELIV-5", "LateCommit", "held")


def test_each_named_mutant_is_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    answer = tmp_path / "mutants.json"
    arguments = ("mutants", "--layer", "impl", "--json", str(answer))
    assert _run(monkeypatch, *arguments, "--only", "pull-skips", "--only", "refused-but-stored") == 0
    results = from_json(answer.read_text(encoding="utf-8")).results
    assert {result.name for result in results} == {"pull-skips", "refused-but-stored"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--layer", "nope"), "expected one of tla, reference"),
        (("--layer", "reference", "--only", "X"), "no such mutant"),
        (("--layer", "reference", "--only", "LateCommit", "--only", "X"), "--only X: no such mutant"),
    ],
)
def test_an_unknown_mutant_is_wrong_use(
    arguments: tuple[str, ...],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert _run(monkeypatch, "mutants", *arguments) == 2
    assert message in capsys.readouterr().err


def test_every_layer_names_its_mutants() -> None:
    for module in cli.MUTANTS.values():
        names = importlib.import_module(module).names()
        assert len(names) >= 6
        assert len(set(names)) == len(names)
