"""The TLA+ tools runner: finds Java and the jar, runs TLC, and turns what it prints into values.

Begin at `run.py` (one question to TLC, one `Outcome`); `graph.py` dumps state graphs with ground actions,
`trace_check.py` checks recorded traces, `values.py` says how TLA+ values look in Python.

The names in `__all__` are public and stable:

    run_tlc(Job(module="Clock", config="SPECIFICATION Spec", libraries=(Path("models"),)))
"""

from mqproof.spec.tlc.errors import Reason, TlcError
from mqproof.spec.tlc.output import Coverage
from mqproof.spec.tlc.run import Job, Outcome, Verdict
from mqproof.spec.tlc.run import run as run_tlc
from mqproof.spec.tlc.toolbox import Toolbox, find_toolbox
from mqproof.spec.tlc.trace import Step, Trace
from mqproof.spec.tlc.trace import render as render_trace

__all__ = [
    "Job",
    "run_tlc",
    "Outcome",
    "Verdict",
    "Coverage",
    "Trace",
    "Step",
    "render_trace",
    "TlcError",
    "Reason",
    "Toolbox",
    "find_toolbox",
]
