"""A finding as a small JSON file that reproduces it: target, input, violated invariant, and origin."""

import hashlib
import importlib.metadata
from pathlib import Path
from typing import Final

import msgspec

from mqproof.fuzz.engine.execution import Failure
from mqproof.report.printable import one_line
from mqproof.report.write import write_bytes

SCHEMA_VERSION: Final = 1


class FindingFileError(ValueError):
    """The file is not a finding; the message names the file and the field."""


class SavedFinding(msgspec.Struct, frozen=True):
    """The file's content. Bytes are stored as base64."""

    target: str
    invariant: str
    signature: str
    message: str
    input: bytes
    """The minimised input. It alone determines a replay; the other fields record the origin."""
    seed: str
    engine: str
    executions: int
    """The number of inputs that the worker had tried when it found this one."""
    version: str
    """The version of mqproof that found it."""
    schema: int = SCHEMA_VERSION

    @property
    def failure(self) -> Failure:
        return Failure(self.invariant, self.signature, self.message)


def save(finding: SavedFinding, folder: Path) -> Path:
    """Write the finding and return the file's path.

    There is one file per defect, and the smaller input is kept.

    Raises:
        OSError: the file cannot be written.
    """
    digest = hashlib.sha256(finding.signature.encode()).hexdigest()[:12]
    path = folder / f"{finding.target}-{digest}.json"
    try:
        smaller = len(load(path).input) < len(finding.input)
    except (OSError, FindingFileError):
        smaller = False
    if not smaller:
        write_bytes(path, msgspec.json.format(msgspec.json.encode(finding), indent=1) + b"\n")
    return path


def load(path: Path) -> SavedFinding:
    """Read a finding.

    Raises:
        FindingFileError: the file is not a finding, or has a newer schema. OSError: it cannot be read.
    """
    try:
        finding = msgspec.json.decode(path.read_bytes(), type=SavedFinding)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise FindingFileError(f"{path}: not a finding: {error}") from None
    if finding.schema > SCHEMA_VERSION:
        message = f"{path}: schema is {finding.schema}, at most {SCHEMA_VERSION} expected"
        raise FindingFileError(message)
    return finding


def line(finding: SavedFinding, path: Path) -> str:
    """Return one line for people, ending with the command that reproduces the finding."""
    what = f"{finding.target} {finding.invariant}: {finding.message}"
    return f"{one_line(what)}; {len(finding.input)} bytes; replay: {replay_command(path)}"


def replay_command(path: Path) -> str:
    return f"mqproof fuzz replay {path}"


def project_version() -> str:
    """Return the version of the installed mqproof, or "unknown" if it is not installed."""
    try:
        return importlib.metadata.version("mqproof")
    except importlib.metadata.PackageNotFoundError:
        return "unknown"
