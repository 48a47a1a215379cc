"""Goal: docs/how-to/tla-runner.md and examples/tla are correct.

Method: run every command and program of the page.
"""

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mqproof.spec import tlc
from tests.commands import mqproof

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "how-to" / "tla-runner.md").read_text(encoding="utf-8")


def block(language: str) -> str:
    found = re.search(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    assert found is not None
    return found[1]


@pytest.fixture
def example(tmp_path: Path) -> Path:
    return Path(shutil.copytree(ROOT / "examples" / "tla", tmp_path / "tla-example"))


COMMANDS = [line.partition("#") for line in block("sh").splitlines()]


@pytest.mark.parametrize(("command", "code"), [(c.strip(), int(code or 0)) for c, _, code in COMMANDS])
def test_each_command_on_the_page_exits_with_the_stated_code(
    command: str, code: int, example: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, *arguments = shlex.split(command)
    assert program == "mqproof"
    monkeypatch.chdir(example)
    done = mqproof(*arguments)
    assert done.returncode == code, done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_the_first_models_toml_on_the_page_prints_the_documented_output(example: Path) -> None:
    (example / "models.toml").write_text(block("toml"), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "mqproof", "check", "--models", "models.toml"],
        cwd=example, capture_output=True, text=True, timeout=300, check=True,
    )  # fmt: skip
    assert re.search(r"```\n(not tested .*)\n```", PAGE)[1] in done.stdout  # type: ignore[index]


def test_the_python_program_on_the_page_runs(example: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", block("python")],
        cwd=example, capture_output=True, text=True, timeout=300, check=True,
    )  # fmt: skip
    assert done.stdout.startswith("8 states, depth 4\n")
    assert "holder" in done.stdout


@pytest.mark.deep("11 CPU seconds of TLC; `mutate --kind guard` of the page runs in every run")
def test_each_surviving_mutant_of_the_example_is_explained(example: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "mqproof", "mutate", "--models", "models.toml"],
        cwd=example, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    assert "no reference model: state graphs are not compared" in done.stderr


def test_each_public_name_of_the_python_interface_exists() -> None:
    assert [name for name in tlc.__all__ if not hasattr(tlc, name)] == []


def test_the_page_mentions_each_field_of_models_toml() -> None:
    from mqproof.spec import model_file

    structs = (model_file._Model, model_file._Run, model_file._Trace)
    fields = {field for struct in structs for field in struct.__struct_fields__} - {"runs"}
    assert [field for field in sorted(fields) if f"`{field}`" not in PAGE and f".{field}]" not in PAGE] == []
