"""Hypothesis profiles, chosen by HYPOTHESIS_PROFILE: dev (default), ci, deep."""

import ast
import gc
import logging
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Final

import pytest
from hypothesis import HealthCheck, settings
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

gc.disable()  # until all tests are collected: what is imported stays
settings.register_profile("dev", max_examples=50, deadline=None)
# CI must give the same answer twice.
settings.register_profile("ci", max_examples=50, deadline=None, derandomize=True, print_blob=True)
settings.register_profile(
    "deep", max_examples=5000, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "dev"))


@pytest.fixture(autouse=True)
def _same_log_levels() -> Iterator[None]:
    """Restore the levels of the loggers after a test: a command that runs in this process sets them."""
    loggers = [logging.getLogger(name) for name in (None, "mqproof", "asyncio")]
    levels = [logger.level for logger in loggers]
    yield
    for logger, level in zip(loggers, levels, strict=True):
        logger.setLevel(level)


# Assertions of their helpers are checks too, also under `python -O`, which removes those of ordinary modules.
pytest.register_assert_rewrite("tests.impl", "tests.conformance", "tests.fuzz")


_SPARK: Final = "spark"
"""The name of the group of all files that use a session of Spark."""
FIRST: Final = (
    _SPARK,
    "tests/spec/test_flush_model.py",
    "tests/impl/broker/test_group_processes.py",
    "tests/impl/replication/test_partitions.py",
    "tests/docs/test_tutorials.py",
    "tests/docs_site/test_site.py",
)
"""The groups that begin: those that take longest, and those that mostly wait, beside which others run."""
_SPARK_FIXTURES: Final = frozenset({"spark", "compiling_spark"})


@cache
def uses_spark(file: Path) -> bool:
    """Return whether a function of the file has a parameter with the name of a fixture of Spark."""
    nodes = ast.walk(ast.parse(file.read_text(encoding="utf-8")))
    return any(isinstance(node, ast.arg) and node.arg in _SPARK_FIXTURES for node in nodes)


def pytest_collection_modifyitems(items: Sequence[pytest.Item]) -> None:
    """Refuse deep tests without a reason, and tests that get a session of Spark without naming its fixture.

    For a fixture of Spark that is not named, another worker would start a JVM.

    Raises:
        pytest.UsageError: such a test.
    """
    deep = [(item, mark.args) for item in items for mark in item.iter_markers("deep")]
    if bare := {item.nodeid.partition("[")[0] for item, given in deep if not "".join(given).strip()}:
        raise pytest.UsageError(f'expected pytest.mark.deep("reason"), in {", ".join(sorted(bare))}')
    for item in items:
        if not _SPARK_FIXTURES.isdisjoint(getattr(item, "fixturenames", ())) and not uses_spark(item.path):
            expected = " or ".join(sorted(_SPARK_FIXTURES))
            raise pytest.UsageError(f"{item.nodeid} uses Spark, expected a parameter {expected} in its file")


class TestsByGroup(LoadScopeScheduling):  # type: ignore[misc]  # xdist has no types
    """A worker runs all tests of a file, because they use the same fixtures.

    One worker runs all files that use Spark, and begins with them.
    """

    __test__ = False

    def _split_scope(self, nodeid: str) -> str:
        path = nodeid.partition("::")[0]
        return _SPARK if uses_spark(self.config.rootpath / path) else path

    def _assign_work_unit(self, node: WorkerController) -> None:
        for group in reversed(FIRST):
            if group in self.workqueue:
                self.workqueue.move_to_end(group, last=False)
        super()._assign_work_unit(node)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> TestsByGroup:
    """Return TestsByGroup: with pytest 9.2 and xdist 3.8 the marks of `--dist loadgroup` have no effect."""
    return TestsByGroup(config, log)


def pytest_collection_finish() -> None:
    """Exclude the imported modules from the garbage collector, and let it look at old objects rarely.

    It would otherwise look at half a million objects again and again, a tenth of the tests' CPU time.
    """
    gc.freeze()
    gc.set_threshold(10_000, 50, 1000)
    gc.enable()


def pytest_sessionfinish() -> None:
    gc.unfreeze()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print one line for each reason why tests were skipped as not tested, with the number of tests."""
    skipped = terminalreporter.stats.get("skipped", [])
    reasons = Counter(report.longrepr[2].removeprefix("Skipped: ") for report in skipped)
    for reason, count in reasons.items():
        if reason.startswith("not tested: "):
            terminalreporter.write_line(f"{reason} ({count} tests)")
