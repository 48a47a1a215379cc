"""Judges a mutant by the unit tests of its module: what `make test` adds to what the suites detect.

The tests run in the process where the change is. A test that starts another process tests the original there.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import pytest

ROOT: Final = Path(__file__).resolve().parents[2]
NAME: Final = "unit tests"
"""Stands in the place of the name of a suite."""
CPU_S: Final = 60
"""The processor time for the tests of one mutant."""
_FOLDERS: Final = ("impl", "fuzz")
"""The folders of `tests/` whose tests are about the code of `impl/`; those of the suites judge already."""
_OPTIONS: Final = (
    *("-x", "-q", "-m", "not deep and not apache"),
    "--assert=plain",  # otherwise pytest imports the changed module itself, without the change
)


def files_of(module: str, root: Path = ROOT) -> tuple[str, ...]:
    """Return the test files for a module: that of its name, those that import it, and those of its folders.

    The tests of a server reach the modules of its inner folders through its port, without an import.
    """
    inside = Path(*module.split(".")[1:])
    mirror = root / "tests" / inside.with_name(f"test_{inside.name}.py")
    every = [file for folder in _FOLDERS for file in sorted((root / "tests" / folder).rglob("test_*.py"))]
    importing = [file for file in every if module in file.read_text(encoding="utf-8")]
    inner_first = list(mirror.parents)[: max(1, len(inside.parts) - 2)]
    beside = [file for folder in inner_first for file in sorted(folder.glob("test_*.py"))]
    chosen = dict.fromkeys([*([mirror] if mirror.exists() else []), *importing, *beside])
    return tuple(str(file.relative_to(root)) for file in chosen)


class _FirstFailure:
    """A plugin of pytest that keeps the first test, or file, that fails."""

    def __init__(self) -> None:
        self.name = self.why = ""

    def pytest_runtest_logreport(self, report: "pytest.TestReport") -> None:
        self._see(report)

    def pytest_collectreport(self, report: "pytest.CollectReport") -> None:
        self._see(report)

    def _see(self, report: "pytest.TestReport | pytest.CollectReport") -> None:
        if report.failed and not self.name:
            self.name, self.why = report.nodeid, report.longreprtext[-200:]


def failures(tests: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Run these tests in this process; yield the first one that fails, and why."""
    import pytest

    os.chdir(ROOT)
    seen = _FirstFailure()
    status = pytest.main([*_OPTIONS, *tests], plugins=[seen])
    if seen.name:
        yield seen.name, seen.why
    elif status not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        yield tests[0], f"pytest ended with status {status}"
