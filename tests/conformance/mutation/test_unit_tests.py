"""Unit tests judge a mutant: which files run, and what counts as a detection."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mqproof.conformance.mutation import unit_tests
from mqproof.conformance.mutation.examiner import Judge, Outcome, Task
from mqproof.conformance.mutation.fork_server import ForkServer
from mqproof.conformance.mutation.loading import source_of
from mqproof.conformance.mutation.operators import mutants

_FILES = ("tests/impl/store/test_a.py",)


def _write(root: Path, file: str, text: str = "") -> None:
    (root / file).parent.mkdir(parents=True, exist_ok=True)
    (root / file).write_text(text, encoding="utf-8")


def test_the_file_of_the_module_runs_first_then_those_that_import_it_then_its_folder(tmp_path: Path) -> None:
    for name in ("impl/store/test_log", "impl/store/test_a", "impl/broker/test_b", "reference/test_c"):
        _write(tmp_path, f"tests/{name}.py")
    _write(tmp_path, "tests/fuzz/test_d.py", "from mqproof.impl.store.log import Log")
    assert unit_tests.files_of("mqproof.impl.store.log", tmp_path) == (
        "tests/impl/store/test_log.py",
        "tests/fuzz/test_d.py",
        "tests/impl/store/test_a.py",
    )
    _write(tmp_path, "tests/impl/store/files/test_z.py")
    assert unit_tests.files_of("mqproof.impl.store.files.queue", tmp_path) == (
        "tests/impl/store/files/test_z.py",
        "tests/impl/store/test_a.py",
        "tests/impl/store/test_log.py",
    )
    _write(tmp_path, "tests/impl/test_whole.py")
    assert unit_tests.files_of("mqproof.impl.version", tmp_path) == ("tests/impl/test_whole.py",)


@pytest.mark.parametrize(
    ("reports", "status", "expected"),
    [
        ((), pytest.ExitCode.OK, []),
        ((), pytest.ExitCode.NO_TESTS_COLLECTED, []),
        ((("a", True), ("b", True)), pytest.ExitCode.TESTS_FAILED, [("a", "why")]),
        ((), pytest.ExitCode.INTERNAL_ERROR, [(_FILES[0], "pytest ended with status 3")]),
    ],
)
def test_the_first_failure_or_an_error_of_pytest_is_a_detection(
    monkeypatch: pytest.MonkeyPatch,
    reports: tuple[tuple[str, bool], ...],
    status: pytest.ExitCode,
    expected: list[tuple[str, str]],
) -> None:
    def run(_: list[str], plugins: list[Any]) -> pytest.ExitCode:
        plugins[0].pytest_collectreport(SimpleNamespace(failed=False))
        for name, failed in reports:
            report = SimpleNamespace(failed=failed, nodeid=name, longreprtext="why")
            plugins[0].pytest_runtest_logreport(report)
        return status

    monkeypatch.setattr(pytest, "main", run)
    assert list(unit_tests.failures(_FILES)) == expected


@pytest.mark.deep("8 CPU seconds")
def test_a_mutant_fails_its_unit_test_and_the_original_code_passes_it() -> None:
    module = "mqproof.impl.store.delay"
    source = source_of(module).read_text(encoding="utf-8")
    number = next(each.number for each in mutants(module, source) if each.operator == "negate-condition")
    judges = (Judge(unit_tests.NAME, cases=("tests/impl/store/test_delay.py",), is_whole=True),)
    with ForkServer() as server:
        broken = [
            server.judge(Task(module, number, judges, 1, 0, unit_tests.CPU_S, is_imported))
            for is_imported in (False, True)
        ]
        original = server.judge(Task("", 0, judges, 1, 0, unit_tests.CPU_S))
    assert [verdict.outcome for verdict in broken] == [Outcome.VIOLATION] * 2
    assert broken[0].by.startswith("tests/impl/store/test_delay.py")
    assert original.outcome is Outcome.SURVIVED
