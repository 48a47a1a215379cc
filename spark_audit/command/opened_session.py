"""Opens the Spark session and the scratch folder of a command, and ends them with its jobs after a signal."""

import logging
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from threading import Thread
from types import FrameType
from typing import TYPE_CHECKING, Final

from mqproof.report.console import terminable
from mqproof.report.model import Exit
from mqproof.spark_audit.command.failures import OTHER_FOLDER_HINT, fail, failures_reported
from mqproof.spark_audit.command.option_groups import check_memory

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from mqproof.spark_audit.runtime.session import SessionOptions


@contextmanager
def opened_session(options: "SessionOptions") -> "Iterator[tuple[SparkSession, Path]]":
    """Yield a Spark session and a folder for temporary files, and remove both at the end.

    A session that existed before (of a notebook or a test) stays open.
    """
    from pyspark.sql import SparkSession

    from mqproof.spark_audit.runtime.scratch import scratch
    from mqproof.spark_audit.runtime.session import open_session
    from mqproof.spec.spark import MasterError, SessionError

    check_memory(options.memory)
    borrowed = SparkSession.getActiveSession() is not None
    logging.getLogger().addFilter(_is_unexpected)
    with ExitStack() as opened:
        if not borrowed:
            opened.enter_context(terminable())
        try:
            folder = opened.enter_context(scratch(options.temporary))
        except OSError as error:
            fail(f"{options.temporary}: {error.strerror}, cannot hold temporary files; {OTHER_FOLDER_HINT}")
        try:
            spark = open_session(options if borrowed else options.spilling_in(folder))
        except MasterError as error:
            fail(f"--master: {error}")
        except SessionError as error:
            fail(str(error), Exit.TOOL)
        if not borrowed:
            opened.enter_context(_stopping(spark))
            opened.enter_context(ending_jobs(spark))
        with failures_reported(folder):
            yield spark, folder


@contextmanager
def _stopping(spark: "SparkSession") -> Iterator[None]:
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # the wheel ships no types

    try:
        yield
    finally:
        # The JVM may have ended: a signal to all processes of a service ends it, too.
        with suppress(Py4JError, ConnectionError):
            spark.stop()


@contextmanager
def ending_jobs(spark: "SparkSession") -> Iterator[None]:
    """Cancel Spark's jobs after a signal, also those that other threads start later.

    Otherwise the command would wait for them.
    """

    def cancel() -> None:
        with suppress(Exception):  # Spark is stopped
            while True:
                spark.sparkContext.cancelAllJobs()
                time.sleep(_CANCEL_EVERY_S)

    def on_signal(number: int, frame: FrameType | None) -> None:
        # In another thread: this one may be in a call to Spark.
        Thread(target=cancel, daemon=True).start()
        ends[number](number, frame)

    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    terminate = before[signal.SIGTERM]
    assert callable(terminate), "terminable's"
    ends = {int(signal.SIGINT): signal.default_int_handler, int(signal.SIGTERM): terminate}
    for number in ends:
        signal.signal(number, on_signal)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


_CANCEL_EVERY_S: Final = 0.2


def _is_unexpected(record: logging.LogRecord) -> bool:
    """Return False for the stack traces that Spark's bridge logs if a signal interrupts a call."""
    text = str(record.msg)
    return "KeyboardInterrupt" not in text and not text.startswith("Exception while sending command")
