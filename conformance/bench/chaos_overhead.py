"""`mqproof bench chaos`: what the chaos proxy costs while it injects nothing.

The same load goes to our broker directly, through the proxy, and through a proxy that records what its
clients see. The proxy has a plan of all lawful faults and is calm, so it decides about every request. At the
fixed rate, one producer sends single messages and one consumer reads them with held pulls. Then a constant
number of unanswered sends shows the maximum. Broker, proxy and generator are processes that share the
machine's cores. Rounds alternate between the sides, and the median counts.
"""

import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from mqproof.conformance.bench import load
from mqproof.conformance.bench.broker import ASYNC, BenchError, ours
from mqproof.conformance.bench.load import Address, Messages
from mqproof.conformance.hosts.processes import free_port
from mqproof.report.measurements import described

SIDES: Final = ("direct", "proxy", "proxy that records")
_WARM_SENDS: Final = 3000
_QUEUES: Final = 8
_OUTSTANDING: Final = 64
_STOP_SECONDS_MAX: Final = 60.0
_ROWS: Final = {
    "messages_per_second": "at the fixed rate: messages/s",
    "answered_ms_median": "answered, median: ms",
    "answered_ms_p99": "answered, p99: ms",
    "delivered_ms_median": "delivered, median: ms",
    "delivered_ms_p99": "delivered, p99: ms",
    "proxy_cores": "used by the proxy: cores",
    "most_sends_per_second": f"{_OUTSTANDING} outstanding: sends/s",
}
"""Maps the keys of a round to rows of the result."""


def measure(
    rate: int, seconds: float, size: int, rounds: int, directory: Path, on_stage: Callable[[str], None]
) -> dict[str, Any]:
    """Return the figures of every side, as medians and by round.

    Raises:
        BenchError: a process did not start. LoadError: a request was refused.
    """
    load_before = os.getloadavg()[0]
    figures: dict[str, list[dict[str, float]]] = {side: [] for side in SIDES}
    for number in range(rounds):
        for side in SIDES:
            on_stage(f"round {number + 1} of {rounds}, {side}")
            with tempfile.TemporaryDirectory(dir=directory) as folder, _served(side, Path(folder)) as served:
                figures[side].append(_round(*served, rate, seconds, size))
    medians = {
        side: {name: statistics.median(each[name] for each in found) for name in found[0]}
        for side, found in figures.items()
    }
    rows = [
        (name, {side: [each[key] for each in of_side] for side, of_side in figures.items()})
        for key, name in _ROWS.items()
    ]
    return {
        **described("bench chaos", rows, baseline=SIDES[0]),
        "load_average_before": load_before,
        "load": {"rate": rate, "seconds": seconds, "size": size, "rounds": rounds},
        "median": medians,
        "rounds": figures,
    }


@contextmanager
def _served(side: str, folder: Path) -> Iterator[tuple[Address, int | None]]:
    """Yield the address of the broker as clients reach it, and the proxy's process id."""
    with ours(folder, ASYNC) as broker:
        if side == SIDES[0]:
            yield broker.address, None
            return
        port = free_port()
        command = [sys.executable, "-m", "mqproof", "chaos", "--upstream", broker.name_server, "--port", "0"]
        command += ["--broker-port", str(port), "--calm-after", "0"]
        if side == SIDES[2]:
            command += ["--capture", str(folder / "chaos.capture")]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            try:
                assert process.stdout is not None
                if not process.stdout.readline().startswith("ready "):
                    raise BenchError("mqproof chaos did not start")
                yield Address("127.0.0.1", port), process.pid
            finally:
                process.terminate()
                process.wait(_STOP_SECONDS_MAX)


def _round(address: Address, pid: int | None, rate: int, seconds: float, size: int) -> dict[str, float]:
    warm, paced, most = (Messages((name,), _QUEUES, size) for name in ("warm", "paced", "most"))

    async def run() -> dict[str, float]:
        for messages in (warm, paced, most):
            await load.create_topics(address, messages)
        await load.send_rate(address, warm, _WARM_SENDS, _OUTSTANDING)
        used_s, began = _processor_s(pid), time.perf_counter()
        found = await load.latencies(address, paced, rate, seconds)
        elapsed_s = time.perf_counter() - began
        busy = (_processor_s(pid) - used_s) / elapsed_s
        answered, delivered = found.answered, found.delivered
        return {
            "messages_per_second": len(answered) / elapsed_s,
            "answered_ms_median": 1000 * load.percentile(answered, 0.5),
            "answered_ms_p99": 1000 * load.percentile(answered, 0.99),
            "delivered_ms_median": 1000 * load.percentile(delivered, 0.5),
            "delivered_ms_p99": 1000 * load.percentile(delivered, 0.99),
            "proxy_cores": busy,
            "most_sends_per_second": await load.send_rate(address, most, int(2 * rate), _OUTSTANDING),
        }

    return asyncio.run(run())


def _processor_s(pid: int | None) -> float:
    """Return the processor time that the process has used so far; 0 without a process."""
    if pid is None:
        return 0.0
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def table(result: dict[str, Any]) -> str:
    """Return the result for people."""
    given, medians = result["load"], result["median"]
    first = medians[SIDES[0]]
    lines = [
        f"{result['machine']}, load average before: {result['load_average_before']:.1f}",
        f"{given['rate']} messages of {given['size']} bytes a second for {given['seconds']:g} s, median of "
        f"{given['rounds']} rounds",
        "",
        f"{'':20}{'per s':>8}{'of direct':>11}{'answer ms':>11}{'p99':>8}{'deliver ms':>12}{'p99':>8}"
        f"{'cores':>7}{'most/s':>8}",
    ]
    for side, found in medians.items():
        share = found["messages_per_second"] / first["messages_per_second"]
        lines.append(
            f"{side:20}{found['messages_per_second']:>8.0f}{share:>11.3f}{found['answered_ms_median']:>11.2f}"
            f"{found['answered_ms_p99']:>8.1f}{found['delivered_ms_median']:>12.2f}"
            f"{found['delivered_ms_p99']:>8.1f}{found['proxy_cores']:>7.2f}{found['most_sends_per_second']:>8.0f}"
        )
    lines += [
        "",
        f"most/s: sends a second with {_OUTSTANDING} unanswered ones, when the cores are the limit.",
    ]
    return "\n".join(lines)
