"""Measures how much memory this process has, and reads sizes such as `4GiB`."""

import re
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


BOUND_MIN: Final = 64 * 2**20
"""The smallest bound of the explorer with a bounded memory. The libraries alone take more than this."""

_SIZE: Final = re.compile(r"(\d+)(MiB|GiB)")
_UNITS: Final = {"MiB": 2**20, "GiB": 2**30}


def size_in_bytes(text: str) -> int:
    """Return the bytes of a size such as `512MiB` or `4GiB`. Raises ValueError for any other text."""
    match = _SIZE.fullmatch(text)
    if match is None:
        raise ValueError(f"{text}: expected a size such as 512MiB or 4GiB")
    return int(match[1]) * _UNITS[match[2]]
