"""The metrics of the process, under the names that client libraries of Prometheus use, and of its tasks."""

from collections.abc import Sequence
from typing import Final

from mqproof.impl.metrics.families import Family, Metric, MetricType
from mqproof.impl.runtime.process_usage import process_usage
from mqproof.impl.runtime.supervision import Supervisor

_CPU: Final = Metric("process_cpu_seconds_total", MetricType.COUNTER, "Processor time of the process.")
_MEMORY: Final = Metric("process_resident_memory_bytes", MetricType.GAUGE, "Resident memory of the process.")
_FILES: Final = Metric("process_open_fds", MetricType.GAUGE, "Open files of the process.")
_FILES_MAX: Final = Metric("process_max_fds", MetricType.GAUGE, "The most files that the process may open.")
_START: Final = Metric("process_start_time_seconds", MetricType.GAUGE, "Start time, since the epoch.")
_FAILURES: Final = Metric(
    "mqproof_task_failures_total",
    MetricType.COUNTER,
    "Failures of tasks that a server needs; the first one ends the process.",
)


class ProcessMetrics:
    """The process as a source of metrics. It is always ready."""

    def __init__(self, supervisor: Supervisor) -> None:
        self._supervisor = supervisor

    @property
    def metrics(self) -> Sequence[Metric]:
        return _CPU, _MEMORY, _FILES, _FILES_MAX, _START, _FAILURES

    async def collect(self) -> list[Family]:
        usage = process_usage()
        values: dict[Metric, float | None] = {
            _CPU: usage.cpu_s,
            _MEMORY: usage.memory_bytes,
            _FILES: usage.files,
            _FILES_MAX: usage.files_max,
            _START: usage.started_s,
            _FAILURES: self._supervisor.failures,
        }
        return [Family(metric, {}, {(): value}) for metric, value in values.items() if value is not None]

    def unready(self) -> str:
        return ""
