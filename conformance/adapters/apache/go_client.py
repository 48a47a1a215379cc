"""Apache's Go client, driven by `go/main.go`: built once with Go, and kept in the cache of the jars."""

import re
import subprocess
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Final

from mqproof.conformance.adapters.apache.artifacts import ApacheMissingError, cache_folder, program
from mqproof.conformance.adapters.clients.driver_client import DriverClient, driven

_SOURCES: Final = Path(__file__).with_name("go")
_SECONDS_MAX: Final = 900.0


def go_release() -> str:
    """Return the version of the Go client that `go.mod` requires."""
    text = (_SOURCES / "go.mod").read_text(encoding="utf-8")
    found = re.search(r"rocketmq-client-go/v2 v(\S+)", text)
    assert found is not None, "go.mod requires no client"
    return found[1]


@cache
def go_program() -> Path:
    """Return the program; the first call builds it, and Go fetches the client.

    Raises:
        ApacheMissingError: Go is missing, or cannot fetch or build it.
    """
    sources = sorted(_SOURCES.iterdir())
    crc = 0
    for source in sources:
        crc = zlib.crc32(source.read_bytes(), crc)
    built = cache_folder() / f"go-client-{crc:08x}"
    if not built.is_file():
        go = program("go", "install Go 1.21 or newer")
        built.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=built.parent, prefix=".go-") as scratch:
            target = Path(scratch) / "program"
            command = [go, "build", "-mod=readonly", "-o", str(target), "."]
            _build(command)
            target.rename(built)
    return built


def _build(command: list[str]) -> None:
    try:
        done = subprocess.run(
            command, cwd=_SOURCES, capture_output=True, text=True, timeout=_SECONDS_MAX, check=False
        )
    except subprocess.TimeoutExpired:
        raise ApacheMissingError(
            f"Go client {go_release()}: Go did not build it within {_SECONDS_MAX:.0f} s; try again"
        ) from None
    if done.returncode != 0:
        reason = (done.stderr.strip() or "no reason given").splitlines()[-1][:300]
        raise ApacheMissingError(f"Go client {go_release()}: Go cannot build it: {reason}")


@contextmanager
def go_client(
    folder: Path, name_server: str, *, traces: bool = False, name: str = "go-client"
) -> Iterator[DriverClient]:
    """Start a process with Apache's Go client; it is ended after the block.

    Raises:
        ApacheMissingError, DriverError.
    """
    command = [str(go_program()), name_server, *(["trace"] if traces else [])]
    with driven(command, folder, folder / f"{name}.log") as client:
        yield client
