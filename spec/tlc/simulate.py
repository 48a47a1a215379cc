"""Random behaviours of a model.

Of many at a time TLC writes one file each; the files hold states, not actions. Of a single one it tells the
actions too, when it is made to look like a counterexample: the claim that no behaviour is so long is false.
"""

import re
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Final

from spec.tlc import config
from spec.tlc.errors import Reason, TlcError
from spec.tlc.run import Job, Simulate, run
from spec.tlc.toolbox import Toolbox
from spec.tlc.trace import Step, Trace
from spec.tlc.values import parse_state

_STATE: Final = re.compile(r"^STATE_(\d+) == *\n(.*?)\n\s*\n", re.MULTILINE | re.DOTALL)

_TRIES: Final = 1_000_000
"""Behaviours tried: those that end before the depth is reached are no answer."""


def behaviour(job: Job, depth: int, seed: int, toolbox: Toolbox | None = None) -> Trace:
    """A random behaviour of `depth` states with the names of its actions; the same seed gives the same one.

    Nothing is judged: the properties that the job's configuration asks are left out.

    Raises:
        TlcError: TLC gave no verdict, or found no behaviour of that length (Reason.TIMEOUT, Reason.CRASH).
    """
    module = f"{job.module}Behaviour"
    # While TLC simulates, the level is that of the state before.
    shorter = f'Shorter == TLCGet("level") < {depth - 1}'
    source = "\n".join([f"---- MODULE {module} ----", f"EXTENDS {job.module}, TLC", shorter, "===="]) + "\n"
    asked = config.parse(job.config).asking("Shorter", "INVARIANT").text()
    random = Simulate(_TRIES, depth, seed)
    made = replace(job, module=module, config=asked, sources={module: source}, simulate=random, workers=1)
    trace = run(made, toolbox).trace
    if trace is None:
        raise TlcError(Reason.CRASH, f"TLC: no behaviour of {depth} states found")
    return trace


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
