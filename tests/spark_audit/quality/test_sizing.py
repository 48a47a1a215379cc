"""The size of a cluster is computed from a measured run."""

from mqproof.spark_audit.quality.sizing import Run, plan


def test_ten_times_the_events_cost_ten_times_as_much_and_need_no_larger_executors() -> None:
    run = Run(events=100_000_000, input_bytes=1_300_000_000, cpu_seconds=180)
    small, large = plan(run, 1_000_000_000), plan(run, 10_000_000_000)
    assert large.core_hours == 10 * small.core_hours == 5
    assert large.executor_memory_bytes == small.executor_memory_bytes
    assert large.partitions == 969
    assert large.seconds == 5 * 3600 / 32


def test_more_cores_than_partitions_do_not_help() -> None:
    run = Run(events=1_000_000, input_bytes=13_000_000, cpu_seconds=2)
    assert (
        plan(run, 1_000_000, executors=100).seconds
        == plan(run, 1_000_000, executors=1, executor_cores=1).seconds
    )
