"""Hypothesis profiles, chosen by HYPOTHESIS_PROFILE: dev (default), ci, deep."""

import gc
import os
from collections import Counter

import pytest
from hypothesis import HealthCheck, settings
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

settings.register_profile("dev", max_examples=50, deadline=None)
# CI must give the same answer twice.
settings.register_profile("ci", max_examples=100, deadline=None, derandomize=True, print_blob=True)
settings.register_profile(
    "deep", max_examples=5000, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "dev"))

# Their assertions are checks too, also under `python -O`, which removes those of ordinary modules.
pytest.register_assert_rewrite("tests.impl.store.site", "tests.impl.world")


class TestsByGroup(LoadScopeScheduling):  # type: ignore[misc]  # xdist has no types
    """A worker runs all tests of a file, because they use the same fixtures.

    One worker runs all tests with Spark.
    """

    __test__ = False

    def _split_scope(self, nodeid: str) -> str:
        path = nodeid.partition("::")[0]
        with_spark = path.startswith("tests/spark_audit/") or path.endswith("/test_on_spark.py")
        return "spark" if with_spark else path


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> TestsByGroup:
    """Return TestsByGroup: with pytest 9.2 and xdist 3.8 the marks of `--dist loadgroup` have no effect."""
    return TestsByGroup(config, log)


def pytest_collection_finish() -> None:
    """Exclude the imported modules from the garbage collector.

    It would otherwise look at half a million objects again and again, a tenth of the tests' CPU time.
    """
    gc.freeze()


def pytest_sessionfinish() -> None:
    gc.unfreeze()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print one line for each reason why tests were skipped as not tested, with the number of tests."""
    skipped = terminalreporter.stats.get("skipped", [])
    reasons = Counter(report.longrepr[2].removeprefix("Skipped: ") for report in skipped)
    for reason, count in reasons.items():
        if reason.startswith("not tested: "):
            terminalreporter.write_line(f"{reason} ({count} tests)")
