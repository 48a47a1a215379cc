"""Measures how much memory this process has."""

import resource
import sys
from pathlib import Path
from typing import Final

_STATM: Final = Path("/proc/self/statm")


def resident_bytes() -> int:
    """Return the resident memory now; on systems that do not report it, the peak."""
    if _STATM.exists():
        return int(_STATM.read_text(encoding="ascii").split()[1]) * resource.getpagesize()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
