"""A signal ends a command and the jobs of its Spark session."""

import os
import signal
from threading import Event
from types import SimpleNamespace
from typing import Any

import pytest

from mqproof.report.console import terminable
from mqproof.spark_audit.command.opened_session import ending_jobs


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_cancels_running_jobs_and_later_jobs(number: signal.Signals) -> None:
    cancelled, stopped = [], Event()

    def cancel() -> None:
        cancelled.append(number)
        if len(cancelled) == 3:
            stopped.set()
            raise AttributeError("Spark is stopped")

    spark: Any = SimpleNamespace(sparkContext=SimpleNamespace(cancelAllJobs=cancel))
    with terminable():
        before = [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)]
        with pytest.raises(KeyboardInterrupt), ending_jobs(spark):
            os.kill(os.getpid(), number)
        assert [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)] == before
    assert stopped.wait(10)
