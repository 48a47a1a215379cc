"""What ends a command is told in one line, with an exit code that says whose fault it is."""

from pathlib import Path

import pytest
from py4j.protocol import Py4JNetworkError  # type: ignore[import-untyped]  # the wheel ships no types

from mqproof.report.model import Exit
from mqproof.spark_audit.command.failures import blame, blamed

SCRATCH = Path("/tmp/mqproof-audit-1")


def test_a_failure_of_spark_is_told_by_its_innermost_cause() -> None:
    thrown = RuntimeError(
        "An error occurred while calling o1.parquet.\n: a.B: job aborted\nCaused by: c.D: no space left"
    )
    assert blame(thrown, SCRATCH) == ("Spark failed: c.D: no space left", Exit.TOOL)


def test_a_jvm_that_is_gone_is_no_fault_of_the_input() -> None:
    for thrown in (
        Py4JNetworkError("Answer from Java side is empty"),
        ConnectionRefusedError(111, "refused"),
    ):
        with pytest.raises(SystemExit) as ended, blamed(SCRATCH):
            raise thrown
        assert ended.value.code == Exit.TOOL


@pytest.mark.parametrize(
    "after",
    [
        RuntimeError("Job 16 cancelled as part of cancellation of all jobs"),
        ConnectionRefusedError(111, "Connection refused"),
    ],
)
def test_an_interrupt_that_its_consequences_hide_is_still_one(after: Exception) -> None:
    try:
        try:
            raise KeyboardInterrupt
        finally:
            raise after
    except (RuntimeError, ConnectionError) as thrown:
        with pytest.raises(KeyboardInterrupt):
            blame(thrown, SCRATCH)


def test_a_full_disk_is_told_in_words_with_a_way_out() -> None:
    thrown = RuntimeError(
        "An error occurred while calling o1.parquet.\n: a.B: job aborted\n"
        "Caused by: java.io.IOException: No space left on device\n\tat c.D"
    )
    message, code = blame(thrown, SCRATCH)
    assert message.startswith(
        "/tmp: No space left on device, where temporary files are: free some; TMPDIR=DIR"
    )
    assert "--conf spark.local.dir=DIR" in message
    assert code == Exit.TOOL


def test_a_full_disk_of_the_output_is_told_by_its_path() -> None:
    told = (
        "[TASK_WRITE_FAILED] Task failed while writing rows to file:/big/state/.night-000002.tmp/rows. "
        "SQLSTATE: 58030\nCaused by: java.io.IOException: No space left on device\n"
    )
    told += "\tat org.apache.spark.storage.BlockManager.getOrElseUpdate(BlockManager.scala)\n"
    assert blame(RuntimeError(told), SCRATCH) == (
        "/big/state/night-000002: No space left on device",
        Exit.TOOL,
    )
    by_python = "OSError: [Errno 28] No space left on device: '/big/.log.tmp/_part-00001.parquet.3'\n"
    assert blame(RuntimeError(by_python), SCRATCH) == ("/big/log: No space left on device", Exit.TOOL)
    of_ours = told.replace("/big/state", str(SCRATCH))
    assert "spark.local.dir" in blame(RuntimeError(of_ours), SCRATCH)[0]
    spilled = told + "\tat org.apache.spark.storage.DiskBlockObjectWriter.write(DiskBlockObjectWriter.scala)"
    assert "spark.local.dir" in blame(RuntimeError(spilled), SCRATCH)[0]
