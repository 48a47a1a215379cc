"""Computes the resources that an audit needs on a cluster, from the measured cost of one run.

Cost is proportional to the number of events, so a run of one size predicts others. The memory per task is
constant, since a task always reads a partition of the same size.
"""

from dataclasses import dataclass
from typing import Final

_PARTITION_BYTES: Final = 128 << 20
"""Parquet bytes per task: Spark's default of spark.sql.files.maxPartitionBytes."""
_HEAP_A_TASK_BYTES: Final = 2 << 30
"""Heap per task: half of the 4 GiB that two tasks had in measured runs, with room to spare."""
_OVERHEAD: Final = 0.1
"""Memory of a container outside the heap, as a fraction of it: Spark's default memoryOverheadFactor."""


@dataclass(frozen=True, slots=True)
class Run:
    """A measured run."""

    events: int
    input_bytes: int
    cpu_seconds: float


@dataclass(frozen=True, slots=True)
class Plan:
    events: int
    partitions: int
    executors: int
    executor_cores: int
    executor_memory_bytes: int
    """Memory of a container: heap and overhead."""
    core_hours: float
    seconds: float
    """Duration with all cores busy."""
    price: float
    """The price of the run, in the currency of `price_core_hour`."""


def plan(
    run: Run, events: int, executors: int = 8, executor_cores: int = 4, price_core_hour: float = 0.05
) -> Plan:
    """Return the resources for `events` on that many executors, from the cost per event of the run."""
    scale = events / run.events
    partitions = max(1, round(run.input_bytes * scale / _PARTITION_BYTES))
    core_hours = run.cpu_seconds * scale / 3600
    return Plan(
        events=events,
        partitions=partitions,
        executors=executors,
        executor_cores=executor_cores,
        executor_memory_bytes=round(executor_cores * _HEAP_A_TASK_BYTES * (1 + _OVERHEAD)),
        core_hours=core_hours,
        # Cores in excess of partitions are idle.
        seconds=core_hours * 3600 / min(executors * executor_cores, partitions),
        price=core_hours * price_core_hour,
    )
