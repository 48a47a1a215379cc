"""`mqproof bench client`: compares our client with Apache's Java and C++ clients at one broker, row by row.

Each side is a program that takes the same arguments: `conformance/hosts/client_load.py` for our client,
`conformance/adapters/apache/ClientLoad.java` for the Java client, and `conformance/hosts/cpp_client_load.py`
for the C++ client. The broker is ours, with a new store for each row. The sides alternate, and the median
counts.
"""

import asyncio
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from mqproof.conformance.adapters.apache import java_clients
from mqproof.conformance.adapters.apache.artifacts import client_class_path, java
from mqproof.conformance.bench import broker as broker_bench
from mqproof.conformance.bench import load
from mqproof.conformance.bench.broker import ASYNC, BenchError
from mqproof.conformance.bench.load import Messages
from mqproof.report.measurements import described

_JAVA: Final = Path(java_clients.__file__).with_name("ClientLoad.java")
_SIZE: Final = 1024
_SECONDS_MAX: Final = 600.0
_OUTSTANDING: Final = (64, 512)

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Amount:
    """The number of messages of each row."""

    sends: int = 50_000
    blocking_sends: int = 10_000
    consumed: int = 1_000_000
    latency_seconds: float = 10.0


def ours() -> tuple[str, ...]:
    """Return the command of our side."""
    return (sys.executable, "-m", "mqproof.conformance.hosts.client_load")


def apache(release: str, folder: Path) -> tuple[str, ...]:
    """Return the command of Apache's side. Raises ApacheMissingError, DriverError."""
    classes = client_class_path(release)
    flags = (f"-Duser.home={folder}", "-Drocketmq.client.logLevel=ERROR", "-Xmx1g")
    return (
        java(),
        *flags,
        "-cp",
        f"{java_clients.compiled(release, _JAVA, classes)}:{classes}",
        "ClientLoad",
    )


def cpp(folder: Path) -> tuple[str, ...]:
    """Return the command of the C++ side, which writes its log below its home directory.

    Raises:
        BenchError: its Python package is not installed.
    """
    if find_spec("rocketmq") is None:
        raise BenchError("--cpp measures the package rocketmq: pip install 'rocketmq>=0.4.4,<0.5'")
    return ("env", f"HOME={folder}", sys.executable, "-m", "mqproof.conformance.hosts.cpp_client_load")


def measure(
    sides: Mapping[str, Sequence[str]], amount: Amount, rounds: int, directory: Path, progress: Progress
) -> dict[str, Any]:
    """Measure every round of every row.

    Raises:
        BenchError: the broker did not start, or a load failed or did not end.
    """
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for number in range(1, rounds + 1):
        for row, (kind, count, outstanding) in _rate_rows(amount).items():
            for name, command in sides.items():
                progress(f"{row}, {name}, round {number}/{rounds}")
                (rate,) = _figures(command, directory, kind, count, outstanding)
                found[row][name].append(rate)
        rates = found[f"{_OUTSTANDING[0]} outstanding: sends/s"].values()
        rate = max(1, int(min(statistics.median(each) for each in rates) / 2))
        count = max(100, int(rate * amount.latency_seconds))
        for name, command in sides.items():
            progress(f"latency, {name}, round {number}/{rounds}")
            times = _figures(command, directory, "latency", count, rate)
            for what, milliseconds in zip(("median", "p99"), times, strict=True):
                found[f"half load, sent to delivered, {what}: ms"][name].append(milliseconds)
    baseline = next((side for side in sides if side.startswith("Apache")), None)
    return {**described("bench client", found.items(), baseline), "rounds": rounds}


def _rate_rows(amount: Amount) -> dict[str, tuple[str, int, int]]:
    """Return the kind, the number of messages and the number of outstanding sends by row."""
    return {
        **{f"{each} outstanding: sends/s": ("send", amount.sends, each) for each in _OUTSTANDING},
        "one thread that waits for each send: sends/s": ("block", amount.blocking_sends, 1),
        "push consumption: messages/s": ("consume", amount.consumed, 1),
    }


def _figures(command: Sequence[str], directory: Path, kind: str, count: int, number: int) -> list[float]:
    with tempfile.TemporaryDirectory(dir=directory) as folder, broker_bench.ours(Path(folder), ASYNC) as one:
        messages = Messages((kind,), size=_SIZE)
        asyncio.run(load.create_topics(one.address, messages))
        if kind == "consume":
            asyncio.run(load.send_rate(one.address, messages, count, 64))
        return list(_ran([*command, one.name_server, kind, kind, str(count), str(_SIZE), str(number)]))


def _ran(command: list[str]) -> Iterator[float]:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS_MAX, check=False)
    except subprocess.TimeoutExpired:
        raise BenchError(f"{command[0]} did not end within {_SECONDS_MAX:.0f} s") from None
    if done.returncode != 0:
        reason = done.stderr.strip().splitlines()[-1:] or ["no reason given"]
        raise BenchError(f"the load {' '.join(command[-6:])} failed: {reason[0]}")
    return map(float, done.stdout.split())


def table(result: dict[str, Any]) -> str:
    """Return the result for people: medians by side."""
    sides = list(result["rows"][0]["sides"])
    width = max(len(row["row"]) for row in result["rows"])
    lines = [f"{'':{width}}" + "".join(f"{side:>15}" for side in sides)]
    for row in result["rows"]:
        medians = "".join(f"{row['sides'][side]['median']:>15,.1f}" for side in sides)
        lines.append(f"{row['row']:{width}}{medians}")
    return "\n".join([f"{result['machine']}; rounds: {result['rounds']}", "", *lines])
