"""Checks of the layout that linters lack: the folders form one project, and tests mirror them."""

import ast
import importlib
import re
import subprocess
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from mqproof import cli
from mqproof.conformance.registry import suite_registry
from tests.import_graph import PARTS as PACKAGES
from tests.import_graph import ROOT, modules, reached
from tests.tested_together import UNTESTED, WHY_TOGETHER

ROLES = {
    "spec": {"cli": "a command line"},
    "reference": {
        "mutant": "what a mutant is",
        **dict.fromkeys(
            [
                "broadcast",
                "contracts",
                "damage",
                "delivery",
                "election",
                "flush",
                "group",
                "guarantee",
                "leader_lease",
                "order_lock",
                "queue_choice",
                "rebalance",
                "replication",
                "request_reply",
                "retry",
                "routing",
                "selection",
                "timers",
                "tracing",
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
            [
                *("accounts", "brokers", "groups", "members", "messages", "name_servers", "topics"),
                *("exports", "monitoring", "round_trips"),
            ],
            "one subject: its state, its administration, its commands",
        ),
    },
    "conformance": {
        **dict.fromkeys(
            ["checkers", "dimensions", "machine", "oracle", "session", "steps", "suite", "target"],
            "a module of every suite",
        ),
        **dict.fromkeys(
            [
                "admin",
                "delivery",
                "offsets",
                "ordering",
                "request_reply",
                "retry",
                "timers",
                "transactions",
                "workload",
            ],
            "one suite: its adapter, its mutants",
        ),
        **dict.fromkeys(
            ["administration", "clients", "filter_servers", "messages", "name_server", "offsets"],
            "requests of one subject: operations, semantics, mutants, logs",
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
        "witness": "the observations of one simulation",
    },
}
"""Names that several modules of one part have, and the one thing that each name means."""

SUITE_MODULES = {"checkers", "dimensions", "machine", "oracle", "session", "steps", "suite", "target"}
"""The modules of a suite of conformance."""

ABSENT = {
    "consumers": {
        "checkers": "those of the delivery suite judge the group",
        "machine": "the consumers run on their own; the seed draws which of them join and leave",
        "oracle": "that of the delivery suite explains the group",
        "steps": "those of the delivery suite",
    },
    "convergence": {
        "session": "a run is a ScriptedRun of engine/seeded_runs.py",
        "machine": "conformance/subjects/convergence_run.py draws the run, because it needs our brokers",
        "oracle": "the checkers need no model; behaviours replay the steps of the model",
    },
    "dledger": {
        "session": "a run is a ScriptedRun of engine/seeded_runs.py",
        "machine": "conformance/subjects/group_run.py draws the run, because it needs our members",
        "oracle": "the checkers need no model; behaviours replay the steps of the model",
    },
    "replication": {
        "machine": "conformance/subjects/pair_run.py draws the run, because it needs our brokers",
        "oracle": "the checkers need no model; behaviours replay the steps of the model",
        "steps": "conformance/subjects/pair_run.py has them, because they call our brokers",
    },
    "workload": {
        "machine": "the clients run at the same time; the seed draws their messages and the faults",
        "oracle": "concurrent clients have no single sequence of steps that an oracle could follow",
        "steps": "the lines of a history (conformance/history) are the observations",
    },
}
"""The modules that a suite lacks, with the reason."""

MORE = {"flush": {"step_history": "the steps of a run as the lines of a history, for the rules of histories"}}
"""The modules that only one suite has, with their contents."""

NOT_OURS = {"coverage.py": "the package coverage", "my_broker.py": "a file of the user"}
"""The names of Python files in docstrings that are not files of the project, with what they are."""

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


def test_every_file_that_a_docstring_names_exists() -> None:
    missing = [
        f"{path.relative_to(ROOT).as_posix()}: {name}"
        for path in modules().values()
        if path.relative_to(ROOT).parts[0] in PACKAGES
        for name in _missing_files(path)
    ]
    assert missing == []


def test_a_file_that_does_not_exist_is_found(tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text('"""Begin at `module.py`, then `*dule.py`, then `a/gone.py`."""\n', encoding="utf-8")
    assert list(_missing_files(module)) == ["a/gone.py"]


def _missing_files(module: Path) -> Iterator[str]:
    """Yield the Python files that a module's docstring names and that no folder above the module has."""
    docstring = re.match(r'"""(.*?)"""', module.read_text(encoding="utf-8"), re.DOTALL)
    for name in re.findall(r"[\w*][\w./*-]*\.py\b", docstring[1] if docstring else ""):
        if name not in NOT_OURS and not any(any(folder.glob(name)) for folder in module.parents):
            yield name


@pytest.mark.parametrize("part", ["impl", "fuzz", "conformance", "spark_audit"])
def test_the_map_of_a_part_has_every_folder_in_the_order_of_the_layers(part: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (contract,) = (
        each
        for each in project["tool"]["importlinter"]["contracts"]
        if each["type"] == "layers" and each["containers"] == [f"mqproof.{part}"]
    )
    layers = [set(re.findall(r"\w+", layer)) for layer in reversed(contract["layers"])]
    docstring = importlib.import_module(f"mqproof.{part}").__doc__ or ""
    rows = re.findall(r"^- (.*?): ", docstring, re.MULTILINE)
    named = [name for row in rows for name in re.findall(r"`(\w+)`", row)]
    assert sorted(named) == sorted(name for layer in layers for name in layer)
    heights = [next(height for height, layer in enumerate(layers) if name in layer) for name in named]
    assert heights == sorted(heights)


@pytest.mark.parametrize("name", PACKAGES)
def test_tests_mirror_the_folders(name: str) -> None:
    assert (ROOT / "tests" / name / "__init__.py").exists()


@pytest.mark.parametrize("command", cli.COMMANDS)
def test_every_command_is_mounted(command: str) -> None:
    module = cli.COMMANDS[command][0]
    assert cli._own_app() if module == "mqproof.cli" else importlib.import_module(module).app


def test_no_command_loads_modules_that_it_does_not_need() -> None:
    """A broker never loads Spark or TLC: the packages' modules are imported late.

    The last four names are slow to import, and most commands do not use them.
    """
    code = "import sys, mqproof.cli, mqproof.impl.command.cli, mqproof.impl.broker.broker; "
    code += "import mqproof.impl.namesrv.server, mqproof.impl.command.sending; "
    late = ("pyspark", "mqproof.spark_audit", "hypothesis", "yaml", "importlib.metadata", "email", "zipfile")
    code += f"print(*{{*{late}}} & {{*sys.modules}})"
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
    entries = {folder: tests for folders in WHY_TOGETHER.values() for folder, tests in folders.items()}
    assert set(together) == set(entries), "folders with such modules; the entries for them"
    for folder, names in together.items():
        tests = [f"tests.{test.replace('/', '.')}" for test in entries[folder]]
        assert set(tests) <= set(known), folder
        missing = names.difference(*(reached(test, known, named) for test in tests))
        assert not missing, f"{folder}: no test of its entry reaches {missing}"


def test_every_folder_without_test_modules_of_its_own_has_one_reason() -> None:
    folders = [folder for folders in WHY_TOGETHER.values() for folder in folders]
    assert len(folders) == len(set(folders))
    assert all(folders for folders in WHY_TOGETHER.values())
    for reason in (*WHY_TOGETHER, *UNTESTED.values()):
        assert len(reason.split()) >= 5, reason


def test_no_module_name_has_two_meanings_inside_one_part() -> None:
    folders: dict[tuple[str, str], list[str]] = defaultdict(list)
    for path in (path.relative_to(ROOT) for path in modules().values()):
        if path.parts[0] in PACKAGES and path.name != "__init__.py":
            folders[path.parts[0], path.stem].append(path.parent.as_posix())
    twice = {f"{part}/{name}": places for (part, name), places in folders.items() if len(places) > 1}
    known = {f"{part}/{name}" for part, names in ROLES.items() for name in names}
    assert set(twice) == known


def test_every_suite_has_the_same_modules() -> None:
    suites = [path for path in (ROOT / "conformance" / "suites").iterdir() if (path / "__init__.py").exists()]
    assert {path.name for path in suites} == set(suite_registry.SUITES) - {
        "wire",
        "inspections",
        "hostile",
        "damage",
    }
    for path in suites:
        found = {each.stem for each in path.glob("*.py")} - {"__init__"}
        absent, more = ABSENT.get(path.name, {}), MORE.get(path.name, {})
        assert found == (SUITE_MODULES - set(absent)) | set(more), path.name
        assert all(absent.values()), path.name
        assert all(more.values()), path.name


def test_no_public_protocol_of_conformance_has_an_unchecked_type() -> None:
    """`Any` in a protocol would let a type checker accept a wrong adapter."""
    unchecked = [
        f"{path.relative_to(ROOT).as_posix()} {name}"
        for path in modules().values()
        if path.relative_to(ROOT).parts[0] == "conformance"
        for name in _protocols_with_any(path.read_text(encoding="utf-8"))
    ]
    assert unchecked == []
    engine = [*(ROOT / "conformance" / "engine").glob("*.py"), *(ROOT / "conformance").rglob("target.py")]
    assert len(engine) > len(suite_registry.SUITES)
    assert [path for path in engine if re.search(r"\bAny\b", path.read_text(encoding="utf-8"))] == []


def test_an_unchecked_type_in_a_protocol_is_found() -> None:
    source = "class A(Protocol[T]):\n    def f(self, x: dict[str, Any]) -> None: ...\nclass B:\n    x: Any\n"
    assert list(_protocols_with_any(source)) == ["A"]
    assert list(_protocols_with_any("class C(typing.Protocol):\n    x: typing.Any\n")) == ["C"]
    assert list(_protocols_with_any("class D(Protocol):\n    x: int\n")) == []


def _protocols_with_any(source: str) -> Iterator[str]:
    if "Protocol" not in source:
        return
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ClassDef):
            bases = {_last_name(base) for base in node.bases}
            if "Protocol" in bases and any(_last_name(each) == "Any" for each in ast.walk(node)):
                yield node.name


def _last_name(node: ast.AST) -> str:
    """Return the name without its module and its parameters; empty for other expressions."""
    if isinstance(node, ast.Subscript):
        return _last_name(node.value)
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


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
    if source.count("\n") < limit:
        return
    for node in _functions(ast.parse(source)):
        lines = (node.end_lineno or node.lineno) - node.lineno + 1
        if lines > limit:
            yield node.name


def _functions(outer: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Yield the functions within a statement; those within expressions have one line."""
    for block in ("body", "handlers", "orelse", "finalbody", "cases"):
        for node in getattr(outer, block, ()):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield node
            yield from _functions(node)
