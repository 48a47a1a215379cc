"""What linters cannot check: the folders are one project, tests mirror them, and no module lost its test."""

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

from mqproof import cli

ROOT = Path(__file__).parents[1]
PACKAGES = ("spec", "reference", "impl", "conformance", "fuzz", "spark_audit", "report")


@pytest.mark.parametrize("name", PACKAGES)
def test_every_part_is_linked_into_the_package(name: str) -> None:
    link = ROOT / "mqproof" / name
    assert link.is_symlink()
    assert link.readlink() == Path("..") / name
    assert Path(str(importlib.import_module(f"mqproof.{name}").__file__)).resolve().parent == ROOT / name


@pytest.mark.parametrize("name", PACKAGES)
def test_every_package_says_what_lives_there(name: str) -> None:
    for init in (ROOT / name).rglob("__init__.py"):
        module = importlib.import_module(".".join(("mqproof", *init.parent.relative_to(ROOT).parts)))
        assert (module.__doc__ or "").strip(), init


@pytest.mark.parametrize("name", PACKAGES)
def test_tests_mirror_the_folders(name: str) -> None:
    assert (ROOT / "tests" / name / "__init__.py").exists()


@pytest.mark.parametrize("command", cli.COMMANDS)
def test_every_command_is_mounted(command: str) -> None:
    module = cli.COMMANDS[command][0]
    assert cli._own_app() if module == "mqproof.cli" else importlib.import_module(module).app


def test_no_command_loads_what_it_does_not_need() -> None:
    """A broker never loads Spark or TLC: the packages' modules are imported late."""
    code = "import sys, mqproof.impl.command.cli, mqproof.cli; "
    code += "print(*{'pyspark', 'mqproof.spark_audit', 'hypothesis'} & {*sys.modules})"
    command = [sys.executable, "-c", code]
    answer = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert answer.stdout.strip() == ""
