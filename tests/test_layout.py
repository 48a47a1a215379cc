"""Checks of the layout that linters lack: the folders form one project, and tests mirror them."""

import ast
import importlib
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from mqproof import cli
from tests.import_graph import PARTS as PACKAGES
from tests.import_graph import ROOT, modules, reached
from tests.tested_together import TESTED_TOGETHER, UNTESTED

ROLES = {
    "spec": {"cli": "a command line"},
    "reference": {
        "mutant": "what a mutant is",
        **dict.fromkeys(
            [
                "contracts",
                "delivery",
                "election",
                "flush",
                "group",
                "guarantee",
                "order_lock",
                "queue_choice",
                "replication",
                "routing",
                "transactions",
            ],
            "one model: itself, its mutants, its proofs, the mutants of its proofs",
        ),
    },
    "impl": {
        "cli": "a command line",
        "client": "the side that connects",
        "codes": "numbers of requests and responses",
        "config": "what can be set on the package",
        "errors": "the errors of the package",
        "options": "options of a command line",
        "rules": "pure rules, each broken by a mutant",
        "server": "the side that accepts connections",
        "services": "the objects that the parts of a server use",
        "tables": "results as tables for a terminal",
        "queries": "request processors that only read",
        **dict.fromkeys(
            ["brokers", "groups", "members", "messages", "name_servers", "topics"],
            "one subject: its state, its administration, its commands",
        ),
    },
    "conformance": {
        **dict.fromkeys(
            ["checkers", "machine", "oracle", "session", "steps", "suite", "target"],
            "a module of every suite",
        ),
        **dict.fromkeys(
            ["admin", "delivery", "offsets", "ordering", "retry", "transactions", "workload"],
            "one suite: its adapter, its mutants",
        ),
        **dict.fromkeys(
            ["administration", "clients", "messages", "name_server", "offsets"],
            "requests of one subject: operations, semantics, logs",
        ),
        **dict.fromkeys(
            ["groups", "loss", "order", "places", "redelivery", "service"],
            "one kind of anomaly: its rules, its injection",
        ),
        "factories": "targets by name",
        "pair": "a master and its slave",
    },
    "fuzz": {
        "cluster": "whole clusters",
        "judge": "the invariants of one simulation",
        "program": "the inputs of one simulation",
    },
}
"""Names that several modules of one part have, and the one thing that each name means."""

LONGEST_FUNCTION = 60
"""The largest number of lines of a function, from its `def` to its last line, without decorators."""


@pytest.mark.parametrize("name", PACKAGES)
def test_every_part_is_linked_into_the_package(name: str) -> None:
    link = ROOT / "mqproof" / name
    assert link.is_symlink()
    assert link.readlink() == Path("..") / name
    assert Path(str(importlib.import_module(f"mqproof.{name}").__file__)).resolve().parent == ROOT / name


@pytest.mark.parametrize("name", PACKAGES)
def test_every_package_describes_its_contents(name: str) -> None:
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


def test_no_command_loads_modules_that_it_does_not_need() -> None:
    """A broker never loads Spark or TLC: the packages' modules are imported late."""
    code = "import sys, mqproof.impl.command.cli, mqproof.cli; "
    code += "print(*{'pyspark', 'mqproof.spark_audit', 'hypothesis'} & {*sys.modules})"
    command = [sys.executable, "-c", code]
    answer = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert answer.stdout.strip() == ""


def test_every_module_has_a_test_module_of_its_name_or_is_tested_together_with_others() -> None:
    known = modules()
    named: dict[str, frozenset[str]] = {}
    together: dict[str, set[str]] = defaultdict(set)
    for name, path in known.items():
        place = path.relative_to(ROOT)
        if place.parts[0] not in PACKAGES or path.name == "__init__.py" or place.as_posix() in UNTESTED:
            continue
        if not (ROOT / "tests" / place.parent / f"test_{place.name}").exists():
            together[place.parent.as_posix()].add(name)
    assert set(together) == set(TESTED_TOGETHER), "folders with such modules; the entries for them"
    for folder, names in together.items():
        tests = [test.removesuffix(".py").replace("/", ".") for test in TESTED_TOGETHER[folder]]
        missing = names.difference(*(reached(test, known, named) for test in tests))
        assert not missing, f"{folder}: no test of its entry reaches {missing}"


def test_no_module_name_has_two_meanings_inside_one_part() -> None:
    folders: dict[tuple[str, str], list[str]] = defaultdict(list)
    for path in (path.relative_to(ROOT) for path in modules().values()):
        if path.parts[0] in PACKAGES and path.name != "__init__.py":
            folders[path.parts[0], path.stem].append(path.parent.as_posix())
    twice = {f"{part}/{name}": places for (part, name), places in folders.items() if len(places) > 1}
    known = {f"{part}/{name}" for part, names in ROLES.items() for name in names}
    assert set(twice) == known


def test_no_function_is_longer_than_the_limit() -> None:
    files = [path for path in modules().values() if path.relative_to(ROOT).parts[0] != "tests"]
    assert len(files) > len(PACKAGES)
    functions = [
        f"{path.relative_to(ROOT).as_posix()} {name}"
        for path in files
        for name in _longer_functions(path.read_text(encoding="utf-8"), LONGEST_FUNCTION)
    ]
    assert functions == []


def test_the_length_of_a_function_includes_its_signature_and_its_inner_functions() -> None:
    source = "@decorated\ndef outer(\n    a,\n):\n    async def inner():\n        pass\n"
    assert list(_longer_functions(source, 1)) == ["outer", "inner"]
    assert list(_longer_functions(source, 4)) == ["outer"]
    assert list(_longer_functions(source, 5)) == []


def _longer_functions(source: str, limit: int) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if lines > limit:
                yield node.name
