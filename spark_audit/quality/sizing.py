"""What an audit needs on a cluster, calculated from what one run was measured to cost.

Cost grows with the events, so a run of one size tells of another; what does not is the memory that a task
needs, since a task reads a part of the same size however many there are.
"""

from dataclasses import dataclass
from typing import Final

_PARTITION_BYTES: Final = 128 << 20
"""Of Parquet a task: Spark's own spark.sql.files.maxPartitionBytes."""
_HEAP_A_TASK_BYTES: Final = 2 << 30
"""What two tasks were given in measured runs, with room to spare, for each: 4 GiB for both."""
_OVERHEAD: Final = 0.1
"""Of its heap a container's JVM takes as much beside it: Spark's own memoryOverheadFactor."""


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
    """Of a container, heap and overhead."""
    core_hours: float
    seconds: float
    """With all cores busy."""
    price: float
    """In the currency of the price of a core's hour."""


def plan(
    run: Run, events: int, executors: int = 8, executor_cores: int = 4, price_core_hour: float = 0.05
) -> Plan:
    """What `events` need on so many executors, by what the run cost an event."""
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
        # More cores than partitions have nothing to do.
        seconds=core_hours * 3600 / min(executors * executor_cores, partitions),
        price=core_hours * price_core_hour,
    )
