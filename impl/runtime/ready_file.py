"""The file that announces that the servers of a process are ready, for scripts that start one."""

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from mqproof.impl.runtime.disk import RealDisk, write_durably
from mqproof.impl.runtime.network import Address


class ReadyFile:
    """A JSON object with the addresses of the servers by name, and `pid`. It exists while they are ready."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def prepare(self) -> None:
        """Remove the file of an earlier process, so that no script reads it. Raises OSError."""
        self._path.unlink(missing_ok=True)

    def write(self, addresses: Mapping[str, Address]) -> None:
        """Write the file; a reader sees all of it or no file. Raises OSError."""
        content = {"pid": os.getpid(), **{name: str(address) for name, address in addresses.items()}}
        write_durably(RealDisk(), str(self._path), msgspec.json.encode(content) + b"\n")

    def remove(self) -> None:
        """Remove the file, as far as that is possible."""
        with suppress(OSError):
            self._path.unlink(missing_ok=True)
