"""`mqproof bench history`: measures all rules on a history of a given number of operations, on one core.

The history comes from `exact_delivery.clean`, in a file as a workload writes it: groups of all kinds,
batches, retries, rebalances, faults. Reading the file is included. CPU time is reported in addition to
elapsed time, because they differ on a busy machine.
"""

import platform
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace

from mqproof.conformance.history.exact_delivery import SETUP, clean
from mqproof.conformance.history.judge import check_files
from mqproof.conformance.history.lines import encode
from mqproof.report.measurements import described
from mqproof.report.model import Verdict

_OPERATIONS_PER_MESSAGE: Final = 19.5
"""Operations per message of each of the two producers of `clean`."""


def measure(operations: int, directory: Path) -> dict[str, Any]:
    """Create a history of about this many operations in the directory, and check it."""
    with tempfile.NamedTemporaryFile(dir=directory, suffix=".jsonl") as file:
        # Time advances with operations, so a lag that is constant in operations becomes hours in a long
        # history.
        setup = replace(SETUP, lag_max_ms=None, deliver_within_ms=None)
        for line in clean(0, max(1, round(operations / _OPERATIONS_PER_MESSAGE)), setup).lines:
            file.write(encode(line))
        file.flush()
        began, began_cpu = time.perf_counter(), time.process_time()
        report = check_files([Path(file.name)])
        seconds, cpu_seconds = time.perf_counter() - began, time.process_time() - began_cpu
    checked = int(report.facts["operations"])
    rate = checked / cpu_seconds
    return {
        **described("bench history", [("operations of one core/s", {"mqproof": [rate]})]),
        "python": f"{platform.python_version()} on {platform.machine()}",
        "operations": checked,
        "rules_held": sum(result.verdict is Verdict.HELD for result in report.results),
        "rules_violated": [result.id for result in report.results if result.verdict is Verdict.VIOLATED],
        "seconds": round(seconds, 2),
        "cpu_seconds": round(cpu_seconds, 2),
        "operations_per_cpu_second": round(rate),
    }


def table(result: dict[str, Any]) -> str:
    """Return the result for people."""
    return "\n".join(
        [
            f"{result['operations']} operations, Python {result['python']}",
            f"{'seconds, reading included':28}{result['seconds']:>9.2f}",
            f"{'seconds of one core':28}{result['cpu_seconds']:>9.2f}",
            f"{'operations a second':28}{result['operations_per_cpu_second']:>9}",
            f"{'rules that held':28}{result['rules_held']:>9}",
        ]
    )
