"""Checks logs of any system against the trace module that a models.toml names for a model.

A log is NDJSON, one event per line: an object of integers, strings, booleans, lists and objects. Its events
are the records that the trace module reads; docs/how-to/tla-runner.md has an example.
"""

import json
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from mqproof.report.model import Result, Verdict, Witness
from mqproof.spec.model_file import ModelFileError, Models, TraceModule
from mqproof.spec.tlc.toolbox import Toolbox
from mqproof.spec.tlc.trace_check import Event, TraceVerdict, check_traces

_NEAR: Final = 3
"""The number of events before the unexplained one that a witness shows."""


class TraceLogError(ValueError):
    """A log does not have the expected form; the message names the file and the line."""


def trace_module(models: Models, name: str | None) -> TraceModule:
    """Return the trace module of the named model, or the only one of the file.

    Raises:
        ModelFileError: there is none, or there are several and no name was given.
    """
    known = f"models with a [MODEL.trace] table: {', '.join(models.traces) or 'none'}"
    if name is not None and name not in models.traces:
        raise ModelFileError(f"{models.file}: no traces of model {name!r}; {known}")
    if name is None and len(models.traces) != 1:
        raise ModelFileError(f"{models.file}: name one model; {known}")
    return models.traces[name or next(iter(models.traces))]


def check_logs(
    models: Models, traced: TraceModule, logs: Sequence[Path], toolbox: Toolbox | None = None
) -> tuple[Result, ...]:
    """Return one result per log: HELD when some behaviour of the model explains all of its events.

    Raises:
        TraceLogError: a log cannot be read or is empty. TraceCheckError: the model accepted the log that it
          must refuse. TlcError: TLC gave no verdict.
    """
    traces = [read(log) for log in logs]
    refused = read(traced.refused)
    outcome = check_traces(traced.module, traced.config, traces, refused, models.libraries, toolbox=toolbox)
    return tuple(
        _result(models, traced, log, trace, verdict)
        for log, trace, verdict in zip(logs, traces, outcome.verdicts, strict=True)
    )


def read(log: Path) -> list[Event]:
    """Return the events of a log.

    Raises:
        TraceLogError: it cannot be read, a line is not an event, or there is none.
    """
    events: list[Event] = []
    try:
        for number, line in enumerate(log.read_text(encoding="utf-8").splitlines(), start=1):
            if line.strip():
                events.append(_event(line, f"{log}:{number}"))
    except OSError as error:
        raise TraceLogError(f"{log}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise TraceLogError(f"{log}: {error}") from None
    if not events:
        raise TraceLogError(f"{log}: no events")
    return events


def _event(line: str, place: str) -> Event:
    try:
        event = json.loads(line)
    except json.JSONDecodeError as error:
        raise TraceLogError(f"{place}: {error}") from None
    if not isinstance(event, dict):
        raise TraceLogError(f"{place}: an object is expected, one event a line")
    for name, value in event.items():
        _expect_value(value, f"{place}: {name}")
    return event


def _expect_value(value: Any, place: str) -> None:
    if isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            _expect_value(inner, place)
    elif not isinstance(value, bool | int | str):
        shown = json.dumps(value)
        raise TraceLogError(f"{place} is {shown}; TLA+ has integers, strings, booleans, lists and objects")


def _result(
    models: Models, traced: TraceModule, log: Path, trace: Sequence[Event], verdict: TraceVerdict
) -> Result:
    detail = ""
    witnesses: tuple[Witness, ...] = ()
    if not verdict.accepted:
        at = verdict.explained
        detail = f"no action explains event {at + 1} of {len(trace)}: {json.dumps(trace[at])}"
        near = range(max(0, at - _NEAR), at + 1)
        witnesses = tuple(Witness(f"event {each + 1}: {json.dumps(trace[each])}") for each in near)
    command = ["mqproof", "trace-check", str(log), "--models", str(models.file), "--model", traced.model]
    return Result(
        id=f"{traced.model}.trace",
        name=log.name,
        layer="trace",
        verdict=Verdict.HELD if verdict.accepted else Verdict.VIOLATED,
        counts={"events": verdict.events, "explained": verdict.explained},
        witnesses=witnesses,
        detail=detail,
        replay=shlex.join(command),
    )
