"""Our client in another process."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from mqproof.conformance.adapters.clients.driver_client import DriverClient, driven

_PROGRAM: Final = "mqproof.conformance.adapters.clients.client_program"


@contextmanager
def our_client(
    folder: Path, name_server: str, *, traces: bool = False, name: str = "our-client"
) -> Iterator[DriverClient]:
    """Start a process with our client; it is ended after the block. Raises DriverError."""
    command = [sys.executable, "-m", _PROGRAM, name_server, *(["trace"] if traces else [])]
    with driven(command, folder, folder / f"{name}.log") as client:
        yield client
