"""Tests the metrics of the process, and the count of failed tasks."""

import asyncio

import pytest

from mqproof.impl.metrics.process_metrics import ProcessMetrics
from mqproof.impl.runtime.supervision import Supervisor


def test_a_failed_task_is_counted(caplog: pytest.LogCaptureFixture) -> None:
    supervisor = Supervisor()
    source = ProcessMetrics(supervisor)

    def failures() -> object:
        families = asyncio.run(source.collect())
        return {one.metric.name: one.values[()] for one in families}["mqproof_task_failures_total"]

    assert failures() == 0
    supervisor.fail("flush", RuntimeError("broken"))
    assert failures() == 1
    assert "the task 'flush' failed" in caplog.text
