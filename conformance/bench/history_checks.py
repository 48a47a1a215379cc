"""`mqproof bench history`: measures all rules on a history of a given number of operations.

The history comes from `exact_delivery.clean`, in a file as a workload writes it: groups of all kinds,
batches, retries, rebalances, faults. Reading the file is included. The rate of one core counts processor
time, which differs from elapsed time on a busy machine. The rate of all cores counts elapsed time. The third
rate is that of decoding the lines, which no check can exceed. With `--columns`, the history is that of
`history_columns.py`.
"""

import os
import platform
import resource
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace

from mqproof.conformance.history.exact_delivery import SETUP, clean
from mqproof.conformance.history.judge import check_files
from mqproof.conformance.history.lines import decode_lines, encode
from mqproof.conformance.history.parallel import cores
from mqproof.report.measurements import described
from mqproof.report.model import Report, Verdict

_QUEUES: Final = 64
"""The queues of a history in columns."""
_OPERATIONS_PER_MESSAGE: Final = 19.5
"""Operations per message of each of the two producers of `clean`."""


def measure(operations: int, directory: Path) -> dict[str, Any]:
    """Create a history of about this many operations in the directory, and check it."""
    with tempfile.NamedTemporaryFile(dir=directory, suffix=".jsonl") as file:
        path = Path(file.name)
        _write(path, operations)
        decode_seconds, _, _ = _timed(path, 0)
        cpu_seconds, seconds, report = _timed(path, 1)
        _, shared_seconds, _ = _timed(path, cores())
    assert report is not None, "the rules were applied"
    checked = int(report.facts["operations"])
    rates = {
        "operations of one core/s": checked / cpu_seconds,
        "operations of all cores/s": checked / shared_seconds,
        "operations decoded by one core/s": checked / decode_seconds,
    }
    return {
        **_described(rates, report),
        "seconds": round(seconds, 2),
        "cpu_seconds": round(cpu_seconds, 2),
    }


def measure_columns(operations: int, directory: Path) -> dict[str, Any]:
    """Create columns of about this many operations in the directory, and check them in all processes.

    The processor time is that of all processes.
    """
    from mqproof.conformance.bench.history_columns import write  # needs numpy

    with tempfile.TemporaryDirectory(dir=directory) as name:
        folder = Path(name) / "h.columns"
        write(folder, operations, _QUEUES, cores())
        began, began_cpu = time.perf_counter(), _cpu_seconds()
        report = check_files([folder], processes=cores())
        seconds, cpu_seconds = time.perf_counter() - began, _cpu_seconds() - began_cpu
    checked = int(report.facts["operations"])
    rates = {
        "operations of one core/s": checked / cpu_seconds,
        "operations of all cores/s": checked / seconds,
    }
    usages = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return {
        **_described(rates, report),
        "seconds": round(seconds, 2),
        "cpu_seconds": round(cpu_seconds, 2),
        "largest_process_mib": max(usage.ru_maxrss for usage in usages) >> 10,
    }


def _cpu_seconds() -> float:
    """Return the processor time of this process and of those that have ended."""
    return sum(os.times()[:4])


def _described(rates: dict[str, float], report: Report) -> dict[str, Any]:
    return {
        **described("bench history", [(name, {"mqproof": [rate]}) for name, rate in rates.items()]),
        "python": f"{platform.python_version()} on {platform.machine()}",
        "cores": cores(),
        "operations": int(report.facts["operations"]),
        "rules_held": sum(result.verdict is Verdict.HELD for result in report.results),
        "rules_violated": [result.id for result in report.results if result.verdict is Verdict.VIOLATED],
        **{name.removesuffix("/s").replace(" ", "_"): round(rate) for name, rate in rates.items()},
    }


def _write(path: Path, operations: int) -> None:
    # Time advances with operations, so a lag that is constant in operations becomes hours in a long history.
    setup = replace(SETUP, lag_max_ms=None, deliver_within_ms=None)
    with path.open("wb") as file:
        for line in clean(0, max(1, round(operations / _OPERATIONS_PER_MESSAGE)), setup).lines:
            file.write(encode(line))


def _timed(path: Path, processes: int) -> tuple[float, float, Report | None]:
    """Check the history, or only decode its lines with 0 processes.

    Returns the processor time of this process, the elapsed time, and the report.
    """
    began, began_cpu, report = time.perf_counter(), time.process_time(), None
    if processes:
        report = check_files([path], processes=processes)
    else:
        with path.open("rb") as file:
            for _ in decode_lines(file, str(path)):
                pass
    return time.process_time() - began_cpu, time.perf_counter() - began, report


def table(result: dict[str, Any]) -> str:
    """Return the result for people."""
    rows = {
        "seconds, reading included": "seconds",
        "seconds of one core": "cpu_seconds",
        "operations a second": "operations_of_one_core",
        "on all cores": "operations_of_all_cores",
        "decoded without a rule": "operations_decoded_by_one_core",
        "MiB of the largest process": "largest_process_mib",
        "rules that held": "rules_held",
    }
    found = [f"{text:28}{result[name]:>9}" for text, name in rows.items() if name in result]
    return "\n".join([f"{result['operations']} operations, Python {result['python']}", *found])
