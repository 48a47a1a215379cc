"""What the process uses of the machine."""

import os
import resource
import time
from pathlib import Path
from typing import Final, NamedTuple

_PROC: Final = Path("/proc/self")
_STARTED_S: Final = time.time()


class ProcessUsage(NamedTuple):
    cpu_s: float
    started_s: float
    """When this module was loaded, in seconds since the epoch."""
    files_max: int
    memory_bytes: int | None
    """The resident memory; None where the system has no /proc."""
    files: int | None
    """The number of open files; None likewise."""


def process_usage() -> ProcessUsage:
    """Return the usage of this process now."""
    memory_bytes = files = None
    try:
        pages = int((_PROC / "statm").read_text(encoding="ascii").split()[1])
        memory_bytes = pages * os.sysconf("SC_PAGE_SIZE")
        files = sum(1 for _ in (_PROC / "fd").iterdir())
    except OSError:
        pass
    files_max = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return ProcessUsage(time.process_time(), _STARTED_S, files_max, memory_bytes, files)
