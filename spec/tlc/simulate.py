"""Random behaviours of a model. TLC writes one file a behaviour; the files hold states, not actions."""

import re
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Final

from spec.tlc.errors import Reason, TlcError
from spec.tlc.run import Job, Simulate, run
from spec.tlc.toolbox import Toolbox
from spec.tlc.trace import Step, Trace
from spec.tlc.values import parse_state

_STATE: Final = re.compile(r"^STATE_(\d+) == *\n(.*?)\n\s*\n", re.MULTILINE | re.DOTALL)


def simulate(
    job: Job, traces: int, depth: int, seed: int, toolbox: Toolbox | None = None
) -> tuple[Trace, ...]:
    """`traces` random behaviours of at most `depth` states; the same seed gives the same ones.

    The steps have no action names, because TLC does not write them.

    Raises:
        TlcError: TLC gave no verdict, or wrote another number of behaviours (Reason.CRASH).
    """
    with tempfile.TemporaryDirectory(prefix="mqproof-simulate-") as name:
        files = Path(name) / "trace"
        asked = Simulate(traces, depth, seed, files)
        run(replace(job, simulate=asked, workers=1), toolbox)
        found = sorted(files.parent.glob("trace_*"), key=lambda file: int(file.name.rpartition("_")[2]))
        behaviours = tuple(read_behaviour(file.read_text(encoding="utf-8")) for file in found)
    if len(behaviours) != traces:
        raise TlcError(Reason.CRASH, f"TLC: {len(behaviours)} behaviours written, {traces} expected")
    return behaviours


def read_behaviour(text: str) -> Trace:
    """The behaviour in one file of TLC's simulation mode."""
    return Trace(tuple(Step(int(number), "", parse_state(body)) for number, body in _STATE.findall(text)))
