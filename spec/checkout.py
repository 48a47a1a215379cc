"""Finds the checkout of the repository, for commands that write its pages and results, or change its code.

An installed package lacks what only these need, and its folder may belong to another user. Such a command
refuses to run there.
"""

import os
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[1]
"""The root of a checkout (`mqproof/spec` is a link there), or the installed folder `mqproof`."""


def checkout() -> Path | None:
    """Return the root of the checkout that this package is imported from, or None if it is installed."""
    return _ROOT if (_ROOT / "pyproject.toml").is_file() else None


def expect_checkout(option: str) -> Path:
    """Return the root of the checkout. Without one, end the command with exit code 2 and one line."""
    root = checkout()
    if root is None:
        # Imported late: Spark's executors have this module, but not rich.
        from mqproof.report.console import stop
        from mqproof.report.model import Exit

        stop(f"{option}: needs a checkout of mqproof's repository; this package is {_ROOT}", Exit.USAGE)
    return root


def cache_folder(name: str) -> Path:
    """Return the folder for results that can be recomputed: `build/` of the checkout, or the user's cache."""
    if (root := checkout()) is not None:
        return root / "build" / name
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mqproof" / name
