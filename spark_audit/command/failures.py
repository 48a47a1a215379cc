"""Ends a failed command with one line on stderr and an exit code, for any exception of Spark."""

import errno
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NoReturn

from mqproof.report.console import stop
from mqproof.report.model import Exit
from mqproof.report.printable import one_line

_DISK_FULL: Final = "No space left on device"
OTHER_FOLDER_HINT: Final = "TMPDIR=DIR or --conf spark.local.dir=DIR names another folder"

_OF_SPILLS: Final = ("DiskBlockObjectWriter", "SpillWriter", "TimeTrackingOutputStream", "storage.DiskStore")
"""Classes that write spilled data, as named in the stack trace of an error."""


def say(line: str) -> None:
    # Not through click, which ignores the stream that separates lines from the progress line.
    print(f"audit: {one_line(line)}", file=sys.stderr)


def fail(message: str, code: int = Exit.USAGE) -> NoReturn:
    stop(one_line(message), code)


@contextmanager
def failures_reported(scratch: Path) -> Iterator[None]:
    """End the command with one line if Spark throws an exception."""
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # the wheel ships no types
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError, ConnectionError) as error:
        fail(*describe_failure(error, scratch))
    except OSError as error:
        fail_if_full(scratch, error)
        raise


def fail_if_full(scratch: Path, error: OSError) -> None:
    """End the command with one line if the error means that the scratch folder's disk is full."""
    if error.errno == errno.ENOSPC and str(error.filename).startswith(str(scratch)):
        fail(temporary_folder_full(scratch), Exit.TOOL)


def describe_failure(error: Exception, scratch: Path) -> tuple[str, int]:
    """Return one line and an exit code for an exception of Spark.

    Raises:
        KeyboardInterrupt: a signal ended the command, and Spark reported the cancelled job.
    """
    from py4j.protocol import Py4JNetworkError

    behind: BaseException | None = error
    while behind := behind and behind.__context__:
        if isinstance(behind, KeyboardInterrupt):
            raise behind
    if isinstance(error, Py4JNetworkError | ConnectionError):
        return "Spark's JVM ended: it was killed, or it ran out of memory (--memory)", Exit.TOOL
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    for line in lines:
        if damaged := re.search(r"FAILED_READ_FILE.*?reading file (?:file:/*)?(/?\S+)\.\s", line):
            return f"/{damaged[1].lstrip('/')}: damaged, cannot be read to the end", Exit.USAGE
        if _DISK_FULL in line:
            return _full(str(error), scratch), Exit.TOOL
        if unreadable := re.search(r"SplitError: (\S.*)", line):
            return unreadable[1], Exit.USAGE
    # The innermost cause is the most specific; the outer ones show only the position in Spark.
    causes = (
        [line for line in lines if line.startswith(("Caused by:", ": "))] or lines or [type(error).__name__]
    )
    return f"Spark failed: {causes[-1].removeprefix('Caused by:').removeprefix(':').strip()[:300]}", Exit.TOOL


def _full(text: str, scratch: Path) -> str:
    """Return which disk is full: that of an output, or that of the spilled data."""
    written = re.search(rf"\[Errno \d+\] {_DISK_FULL}: '([^']+)'", text)  # by Python
    if not any(name in text for name in _OF_SPILLS):
        by_spark = re.search(r"TASK_WRITE_FAILED\] Task failed while writing rows to file:/*(/\S+)\.\s", text)
        written = written or by_spark
    if not written or written[1].startswith(str(scratch)):
        return temporary_folder_full(scratch)
    # Only unfinished files have such a name (report/staging.py).
    place = re.sub(r"/[.]([^/]+)[.]tmp(/.*)?$", r"/\1", written[1])
    return f"{place}: {_DISK_FULL}"


def temporary_folder_full(scratch: Path) -> str:
    return f"{scratch.parent}: {_DISK_FULL}, for temporary files: free some space; {OTHER_FOLDER_HINT}"
