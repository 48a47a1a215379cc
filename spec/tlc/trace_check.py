r"""Checks with TLC whether recorded traces are behaviours of a specification: many traces, one run.

The trace module is written by hand beside the specification. It must have

    EXTENDS TraceData             \* written by this module: Traces == << <<record, record, ...>>, ... >>
    VARIABLES t, l                \* which trace; the next event in it, from 1
    TraceInit == Init /\ t \in DOMAIN Traces /\ l = 1
    TraceNext == ...              \* each step explains Traces[t][l], l' = l + 1, UNCHANGED t
    TraceView == <<vars, t, l>>

Traces is a definition and not a constant, because TLC 2.15 evaluates the replacement of a constant again at
each lookup. A step that explains no event (hidden in the trace) leaves l unchanged. A trace is accepted when
some behaviour explains all of its events.
"""

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from mqproof.spec.tlc import config, values
from mqproof.spec.tlc.run import Job, run
from mqproof.spec.tlc.toolbox import Toolbox

Event = Mapping[str, object]
"""Maps field names to simple values; a field that is absent is unknown to the trace."""

_PROGRESS: Final = "TraceProgress"
_BRIEF_EVENTS_MAX: Final = 20_000
"""The maximum number of events of a short run; a longer one benefits from Java's slower compiler."""


class TraceCheckError(RuntimeError):
    """The answer would be meaningless: a trace that must be refused was accepted, or none was examined."""


@dataclass(frozen=True, slots=True)
class TraceVerdict:
    """TLC's verdict on one trace."""

    events: int
    explained: int
    """Length of the longest prefix that some behaviour explains."""

    @property
    def accepted(self) -> bool:
        return self.explained == self.events


@dataclass(frozen=True, slots=True)
class TraceOutcome:
    verdicts: tuple[TraceVerdict, ...]
    """One verdict per trace, in the order of the traces."""
    distinct: int
    seconds: float


def check_traces(
    module: str,
    config_text: str,
    traces: Sequence[Sequence[Event]],
    must_refuse: Sequence[Event],
    libraries: tuple[Path, ...],
    *,
    seconds_max: float = 600,
    heap_mib: int = 2048,
    toolbox: Toolbox | None = None,
) -> TraceOutcome:
    """Check `traces` against the trace module; constants and constraints come from `config_text`.

    `must_refuse` is a trace that the specification must refuse. It is added to every batch, so that a trace
    module that accepts anything, or a run that examined nothing, cannot pass.

    Raises:
        ValueError: no trace, or a trace without events.
        TraceCheckError: the trace `must_refuse` was accepted.
        TlcError: TLC gave no verdict.
    """
    if not traces:
        raise ValueError("no trace to check")
    batch = [*traces, must_refuse]
    if empty := [number for number, trace in enumerate(batch, start=1) if not trace]:
        raise ValueError(f"trace {empty[0]} of {len(batch)} has no events")
    wrapper = f"{module}Batch"
    with tempfile.TemporaryDirectory(prefix="mqproof-traces-") as name:
        user_file = Path(name) / "progress"
        job = Job(
            wrapper,
            _config(config_text),
            libraries,
            {wrapper: _source(module, wrapper), "TraceData": traces_source(batch)},
            user_file=user_file,
            seconds_max=seconds_max,
            heap_mib=heap_mib,
            stack_mib=64,
            brief=sum(map(len, batch)) <= _BRIEF_EVENTS_MAX,
        )
        outcome = run(job, toolbox)
        explained = _explained(user_file, len(batch))
    verdicts = tuple(TraceVerdict(len(trace), n) for trace, n in zip(batch, explained, strict=True))
    if verdicts[-1].accepted:
        raise TraceCheckError(f"{module} accepted the trace that it must refuse: it checks nothing")
    return TraceOutcome(verdicts[:-1], outcome.distinct, outcome.seconds)


def traces_source(batch: Sequence[Sequence[Event]]) -> str:
    """Return the text of the module TraceData that holds these traces."""
    rows = ",\n".join("<<" + ",\n  ".join(map(values.show, trace)) + ">>" for trace in batch)
    return f"---- MODULE TraceData ----\nEXTENDS Integers\nTraces == <<\n{rows}\n>>\n====\n"


def _source(module: str, wrapper: str) -> str:
    # Each trace has a register with the furthest l seen, so that only progress is printed. The run uses one
    # worker.
    lines = [
        f"---- MODULE {wrapper} ----",
        f"EXTENDS {module}, TLC",
        "ASSUME \\A i \\in DOMAIN Traces : TLCSet(i, 0)",
        f"{_PROGRESS} == l > TLCGet(t) => TLCSet(t, l) /\\ PrintT(<<t, l>>)",
        "====",
    ]
    return "\n".join(lines) + "\n"


def _config(config_text: str) -> str:
    asked = config.parse(config_text).behaviour("TraceInit", "TraceNext")
    return asked.with_section("VIEW", "TraceView").asking(_PROGRESS, "INVARIANT").text()


def _explained(user_file: Path, traces: int) -> list[int]:
    furthest = [1] * traces
    seen: set[int] = set()
    for line in user_file.read_text(encoding="utf-8").splitlines():
        match values.parse(line):
            case (int(number), int(position)):
                furthest[number - 1] = max(furthest[number - 1], position)
                seen.add(number)
    if missing := sorted(set(range(1, traces + 1)) - seen):
        raise TraceCheckError(f"TLC never began trace {missing[0]} of {traces}: TraceInit leaves it out")
    return [position - 1 for position in furthest]
