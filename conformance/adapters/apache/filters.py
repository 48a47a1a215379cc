"""Apache's own SQL92 filter, called by `FilterOracle.java`: the results that our filter must have."""

import base64
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from mqproof.conformance.adapters.apache.artifacts import class_path, java
from mqproof.conformance.adapters.apache.java_clients import compiled
from mqproof.conformance.adapters.apache.servers import MODULE_FLAGS, SMALL_JVM
from mqproof.conformance.adapters.clients.driver_client import DriverError

_SOURCE: Final = Path(__file__).with_name("FilterOracle.java")
_SECONDS_MAX: Final = 300.0
_RESULTS: Final = {"TRUE": "True", "FALSE": "False", "NULL": "None", "ERROR": "ERROR", "INVALID": "INVALID"}


def results(release: str, cases: Iterable[tuple[str, Mapping[str, str]]]) -> list[str]:
    """Return the result of each expression for its message: True, False, None, ERROR or INVALID.

    Raises:
        ApacheMissingError: the release is not available. DriverError: the program failed.
    """
    lines = [" ".join([_encoded(expression), *_pairs(message)]) for expression, message in cases]
    classes = f"{compiled(release, _SOURCE)}:{class_path(release)}"
    command = [java(), *MODULE_FLAGS, *SMALL_JVM, "-cp", classes, "FilterOracle"]
    done = subprocess.run(
        command,
        input="".join(f"{line}\n" for line in lines),
        capture_output=True,
        text=True,
        timeout=_SECONDS_MAX,
        check=False,
    )
    words = (line.split(" ")[0] for line in done.stdout.splitlines())
    found = [_RESULTS[word] for word in words if word in _RESULTS]
    if len(found) != len(lines):
        raise DriverError(f"{len(found)} results of {len(lines)} expressions: {done.stderr[-500:]}")
    return found


def _pairs(message: Mapping[str, str]) -> list[str]:
    return [f"{name}={_encoded(value)}" for name, value in message.items()]


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
