"""Hypothesis profiles, chosen by HYPOTHESIS_PROFILE: dev (default), ci, deep."""

import os
from collections import Counter

import pytest
from hypothesis import HealthCheck, settings

SPARK = "spark"
"""The group of the tests with Spark."""

settings.register_profile("dev", max_examples=50, deadline=None)
# CI must give the same answer twice.
settings.register_profile("ci", max_examples=100, deadline=None, derandomize=True, print_blob=True)
settings.register_profile(
    "deep", max_examples=5000, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "dev"))


@pytest.hookimpl(tryfirst=True)  # xdist reads the marks in the same hook
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """One worker has the Spark session, and the tests of one file share their fixtures.

    The tests with Spark come first: they are the longest group, and the other worker runs the rest meanwhile.
    """
    for item in items:
        item.add_marker(pytest.mark.xdist_group(SPARK if _needs_spark(item) else str(item.path)))
    items.sort(key=lambda item: not _needs_spark(item))


def _needs_spark(item: pytest.Item) -> bool:
    return "spark_audit" in item.path.parts or item.path.stem == "test_on_spark"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """A line for each thing that was missing, however many tests needed it."""
    skipped = terminalreporter.stats.get("skipped", [])
    reasons = Counter(report.longrepr[2].removeprefix("Skipped: ") for report in skipped)
    for reason, count in reasons.items():
        if reason.startswith("not tested: "):
            terminalreporter.write_line(f"{reason} ({count} tests)")
