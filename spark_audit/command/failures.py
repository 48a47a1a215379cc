"""How a command fails: one line on stderr and an exit code, whatever Spark threw."""

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
ELSEWHERE: Final = "TMPDIR=DIR or --conf spark.local.dir=DIR names another folder"

_OF_SPILLS: Final = ("DiskBlockObjectWriter", "SpillWriter", "TimeTrackingOutputStream", "storage.DiskStore")
"""Who writes what is sorted and spilled, in the stack of an error."""


def say(line: str) -> None:
    # Not through click, which does not know the stream that keeps lines apart from a moving one.
    print(f"audit: {one_line(line)}", file=sys.stderr)


def fail(message: str, code: int = Exit.USAGE) -> NoReturn:
    stop(one_line(message), code, command="audit")


@contextmanager
def blamed(scratch: Path) -> Iterator[None]:
    """What Spark throws ends the command with one line."""
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # the wheel ships no types
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError, ConnectionError) as error:
        fail(*blame(error, scratch))
    except OSError as error:
        if error.errno == errno.ENOSPC and str(error.filename).startswith(str(scratch)):
            fail(full_of_temporary(scratch), Exit.TOOL)
        raise


def blame(error: Exception, scratch: Path) -> tuple[str, int]:
    """One line and an exit code for what Spark threw.

    Raises:
        KeyboardInterrupt: a signal ended it, and Spark reported the job that it cancelled therefore.
    """
    from py4j.protocol import Py4JNetworkError

    behind: BaseException | None = error
    while behind := behind and behind.__context__:
        if isinstance(behind, KeyboardInterrupt):
            raise behind
    if isinstance(error, Py4JNetworkError | ConnectionError):
        return "Spark's JVM is gone: it was killed, or it had no memory left (--memory)", Exit.TOOL
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    for line in lines:
        if damaged := re.search(r"FAILED_READ_FILE.*?reading file (?:file:/*)?(/?\S+)\.\s", line):
            return f"/{damaged[1].lstrip('/')}: damaged, cannot be read to its end", Exit.USAGE
        if _DISK_FULL in line:
            return _full(str(error), scratch), Exit.TOOL
        if unreadable := re.search(r"SplitError: (\S.*)", line):
            return unreadable[1], Exit.USAGE
    # The innermost cause says most; above it there is only where Spark was at the time.
    causes = (
        [line for line in lines if line.startswith(("Caused by:", ": "))] or lines or [type(error).__name__]
    )
    return f"Spark failed: {causes[-1].removeprefix('Caused by:').removeprefix(':').strip()[:300]}", Exit.TOOL


def _full(told: str, scratch: Path) -> str:
    """Which disk is full: that of an output, or that of what is sorted and spilled meanwhile."""
    written = re.search(rf"\[Errno \d+\] {_DISK_FULL}: '([^']+)'", told)  # by Python
    if not any(name in told for name in _OF_SPILLS):
        by_spark = re.search(r"TASK_WRITE_FAILED\] Task failed while writing rows to file:/*(/\S+)\.\s", told)
        written = written or by_spark
    if not written or written[1].startswith(str(scratch)):
        return full_of_temporary(scratch)
    # Only files in the making have such a name (report/staging.py).
    place = re.sub(r"/[.]([^/]+)[.]tmp(/.*)?$", r"/\1", written[1])
    return f"{place}: {_DISK_FULL}"


def full_of_temporary(scratch: Path) -> str:
    return f"{scratch.parent}: {_DISK_FULL}, where temporary files are: free some; {ELSEWHERE}"
