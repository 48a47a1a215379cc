"""Goal: docs/reference/exit-codes.md has exactly the exit codes of the source code, and every command."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from mqproof import cli, command_group, standard_streams
from mqproof.impl.admin import run as admin
from mqproof.report import console
from mqproof.report.model import Exit
from tests.import_graph import modules

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "exit-codes.md").read_text(encoding="utf-8")
CODES = {int(code) for code in re.findall(r"(?m)^\| (\d+) \|", PAGE)}


def test_every_exit_code_in_the_source_code_is_on_the_page() -> None:
    named = {value for name, value in vars(Exit).items() if name.isupper()}
    named |= {standard_streams.CLOSED_PIPE, standard_streams.NOT_WRITTEN, console._TERMINATED}
    named |= {admin.REFUSED, admin.WRONG_USE, admin.NO_ANSWER}
    assert named <= CODES
    assert {code for path in _sources() for code in _literal_codes(path)} <= CODES


def test_every_exit_code_on_the_page_is_used() -> None:
    interrupted = 130
    assert f"return {interrupted}" in Path(command_group.__file__).read_text(encoding="utf-8")
    used = {value for name, value in vars(Exit).items() if name.isupper()}
    assert used | {interrupted, standard_streams.CLOSED_PIPE, console._TERMINATED} == CODES


def test_the_page_lists_every_command() -> None:
    named = set(re.findall(r"`([a-z-]+)(?: [a-z-]+)?`", PAGE.partition("## By command")[2]))
    assert set(cli.COMMANDS) <= named


def _sources() -> Iterator[Path]:
    yield from (path for name, path in modules().items() if name.startswith("mqproof."))


def _literal_codes(path: Path) -> Iterator[int]:
    """Yield the numbers in `typer.Exit(N)` and `SystemExit(N)`."""
    source = path.read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(source)) if "Exit(" in source else ():
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("typer.Exit", "SystemExit"):
            for inner in (each for argument in node.args for each in ast.walk(argument)):
                if isinstance(inner, ast.Constant) and type(inner.value) is int:
                    yield inner.value
