"""A failure of a command is reported in one line, with an exit code for its kind."""

from pathlib import Path

import pytest
from py4j.protocol import Py4JNetworkError  # type: ignore[import-untyped]  # the wheel ships no types

from mqproof.report.model import Exit
from mqproof.spark_audit.command.failures import describe_failure, failures_reported

SCRATCH = Path("/tmp/mqproof-audit-1")


def test_a_spark_failure_is_reported_by_its_innermost_cause() -> None:
    thrown = RuntimeError(
        "An error occurred while calling o1.parquet.\n: a.B: job aborted\nCaused by: c.D: no space left"
    )
    assert describe_failure(thrown, SCRATCH) == ("Spark failed: c.D: no space left", Exit.TOOL)


def test_a_jvm_that_ended_is_not_reported_as_bad_input() -> None:
    for thrown in (
        Py4JNetworkError("Answer from Java side is empty"),
        ConnectionRefusedError(111, "refused"),
    ):
        with pytest.raises(SystemExit) as ended, failures_reported(SCRATCH):
            raise thrown
        assert ended.value.code == Exit.TOOL


@pytest.mark.parametrize(
    "after",
    [
        RuntimeError("Job 16 cancelled as part of cancellation of all jobs"),
        ConnectionRefusedError(111, "Connection refused"),
    ],
)
def test_an_interrupt_is_recognised_behind_the_errors_that_it_causes(after: Exception) -> None:
    try:
        try:
            raise KeyboardInterrupt
        finally:
            raise after
    except (RuntimeError, ConnectionError) as thrown:
        with pytest.raises(KeyboardInterrupt):
            describe_failure(thrown, SCRATCH)


def test_a_full_disk_is_reported_with_a_remedy() -> None:
    thrown = RuntimeError(
        "An error occurred while calling o1.parquet.\n: a.B: job aborted\n"
        "Caused by: java.io.IOException: No space left on device\n\tat c.D"
    )
    message, code = describe_failure(thrown, SCRATCH)
    assert message.startswith(
        "/tmp: No space left on device, for temporary files: free some space; TMPDIR=DIR"
    )
    assert "--conf spark.local.dir=DIR" in message
    assert code == Exit.TOOL


def test_a_full_disk_of_the_output_is_reported_with_its_path() -> None:
    text = (
        "[TASK_WRITE_FAILED] Task failed while writing rows to file:/big/state/.night-000002.tmp/rows. "
        "SQLSTATE: 58030\nCaused by: java.io.IOException: No space left on device\n"
    )
    text += "\tat org.apache.spark.storage.BlockManager.getOrElseUpdate(BlockManager.scala)\n"
    assert describe_failure(RuntimeError(text), SCRATCH) == (
        "/big/state/night-000002: No space left on device",
        Exit.TOOL,
    )
    by_python = "OSError: [Errno 28] No space left on device: '/big/.log.tmp/_part-00001.parquet.3'\n"
    assert describe_failure(RuntimeError(by_python), SCRATCH) == (
        "/big/log: No space left on device",
        Exit.TOOL,
    )
    in_scratch = text.replace("/big/state", str(SCRATCH))
    assert "spark.local.dir" in describe_failure(RuntimeError(in_scratch), SCRATCH)[0]
    spilled = text + "\tat org.apache.spark.storage.DiskBlockObjectWriter.write(DiskBlockObjectWriter.scala)"
    assert "spark.local.dir" in describe_failure(RuntimeError(spilled), SCRATCH)[0]
