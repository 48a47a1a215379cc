"""Runs the programs of examples/ in separate processes, as a user does."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
EXAMPLES: Final = ROOT / "examples"


def run(*arguments: str, code: int = 0, folder: Path = EXAMPLES, namesrv: str = "") -> str:
    """Run Python with these arguments in the folder, and return the output after checking the exit code."""
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder, env=environment(namesrv), capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


def environment(namesrv: str) -> dict[str, str]:
    """Return the environment of an example: this checkout, and the address of the name server."""
    return os.environ | {"PYTHONPATH": str(ROOT), "NAMESRV_ADDR": namesrv}
