"""The TLA+ tools runner: finds Java and the jar, runs TLC, and turns what it prints into values.

`run` asks TLC one question and returns one `Outcome`; `run_each` runs several side by side; `check_traces`
decides whether recorded traces are behaviours of a specification. docs/tla-runner.md has an example. Inside
the package, begin at `run.py`; `graph.py` dumps state graphs, `values.py` defines TLA+ values in Python.
"""

from mqproof.spec.tlc.errors import Reason, TlcError
from mqproof.spec.tlc.parallel import run_each
from mqproof.spec.tlc.run import Job, Outcome, Verdict, run
from mqproof.spec.tlc.toolbox import Toolbox, find_toolbox
from mqproof.spec.tlc.trace import Step, Trace, render
from mqproof.spec.tlc.trace_check import TraceCheckError, TraceOutcome, TraceVerdict, check_traces

__all__ = [
    "Job",
    "Outcome",
    "Reason",
    "Step",
    "TlcError",
    "Toolbox",
    "Trace",
    "TraceCheckError",
    "TraceOutcome",
    "TraceVerdict",
    "Verdict",
    "check_traces",
    "find_toolbox",
    "render",
    "run",
    "run_each",
]
