"""Checks with TLC whether event logs are behaviours of the models, and reports the results.

Brokers' logs are checked against Flush. Those of a master and its slave are also checked against Replication.
Logs of DLedger groups are checked against Election and, for each leadership, Replication. One run of TLC
checks all traces of a model.
"""

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from mqproof.conformance.traces.models import MODELS, Part, Size, TraceModel
from mqproof.conformance.traces.store import RECORDS_MAX, Window
from mqproof.report.model import Result, Verdict, Witness
from mqproof.spec.events import read_log
from mqproof.spec.nearest_actions import Obstacles, nearest
from mqproof.spec.tlc.trace_check import TraceVerdict, check_traces

TLA: Final = Path(__file__).parents[2] / "spec" / "tla"

_NEAR: Final = 3
"""Number of events before the unexplained one that a witness shows."""
_WITNESSES_MAX: Final = 8
"""Maximum number of witnesses of one log.

It is also the maximum number of refused traces of one run for which the closest actions are computed.
"""


@dataclass(frozen=True, slots=True)
class LogVerdict:
    """TLC's verdict about one broker's part of an event log, or about a log as a whole."""

    path: Path
    node: str
    """The broker; empty if the verdict is about all nodes."""
    windows: tuple[Window, ...]
    verdicts: tuple[TraceVerdict, ...]
    model: str = "Flush"
    closest: Mapping[int, tuple[Obstacles, ...]] = field(default_factory=dict)
    """Maps the number of a refused window to the obstacles to its unexplained event."""

    @property
    def events(self) -> int:
        return sum(verdict.events for verdict in self.verdicts)

    @property
    def accepted(self) -> int:
        return sum(verdict.accepted for verdict in self.verdicts)


def check_logs(
    paths: Sequence[Path],
    *,
    records_max: int = RECORDS_MAX,
    models: Collection[str] = (),
    seconds_max: float = 600,
    on_stage: Callable[[str], None] = lambda _: None,
) -> tuple[LogVerdict, ...]:
    """Check all traces of one model in one run of TLC; groups with different members need separate runs.

    `models` names the models to check; all, if it is empty.

    Raises:
        EventError: a log is not one of a broker or a group, or events are missing.
        OSError: a log cannot be read.
        TlcError: TLC gave no verdict.
    """
    logs = [(path, list(read_log(path))) for path in paths]
    found: list[LogVerdict] = []
    for model in (model for model in MODELS if not models or model.name in models):
        parts = [(path, part) for path, log in logs for part in model.parts(log, str(path), records_max)]
        for size in sorted({part.size for _, part in parts}):
            same = [(path, part) for path, part in parts if part.size == size]
            found += _check(model, size, same, seconds_max, on_stage)
    looked_at = {verdict.path for verdict in found}
    return (*found, *(LogVerdict(path, "", (), ()) for path in paths if path not in looked_at))


def _check(
    model: TraceModel,
    size: Size,
    parts: Sequence[tuple[Path, Part]],
    seconds_max: float,
    on_stage: Callable[[str], None],
) -> Iterator[LogVerdict]:
    flat = [window for _, part in parts for window in part.windows]
    closest: dict[int, tuple[Obstacles, ...]] = {}
    if flat:
        events = sum(len(window.events) for window in flat)
        on_stage(f"TLC checks {events} events in {len(flat)} traces against {model.name}")
        outcome = check_traces(
            model.module,
            model.config_text(size, flat),
            [window.events for window in flat],
            model.injected(size),
            (TLA,),
            seconds_max=seconds_max,
        )
        refused = _chosen([len(part.windows) for _, part in parts], outcome.verdicts)
        closest = _closest(model, size, flat, outcome.verdicts, refused, on_stage)
    at = 0
    for path, part in parts:
        verdicts = outcome.verdicts[at : at + len(part.windows)] if part.windows else ()
        near = {number: closest[at + number] for number in range(len(verdicts)) if at + number in closest}
        yield LogVerdict(path, part.node, part.windows, verdicts, model.name, near)
        at += len(verdicts)


def _chosen(counts: Sequence[int], verdicts: Sequence[TraceVerdict]) -> list[int]:
    """Return the refused traces to examine, the first of each log first.

    `counts` has the number of traces of each log.
    """
    ranked: list[tuple[int, int]] = []
    at = 0
    for count in counts:
        refused = [n for n in range(at, at + count) if not verdicts[n].accepted]
        ranked += enumerate(refused)
        at += count
    return [number for _, number in sorted(ranked)[:_WITNESSES_MAX]]


def _closest(
    model: TraceModel,
    size: Size,
    flat: Sequence[Window],
    verdicts: Sequence[TraceVerdict],
    refused: Sequence[int],
    on_stage: Callable[[str], None],
) -> dict[int, tuple[Obstacles, ...]]:
    """Return the closest actions by the number of a refused trace."""
    if not refused:
        return {}
    on_stage(f"TLC searches for the closest actions of {model.name}")
    prefixes = [flat[n].events[: verdicts[n].explained + 1] for n in refused]
    found = nearest(model.module, model.config_text(size, flat), prefixes, (TLA,))
    return dict(zip(refused, found, strict=True))


def results(logs: Sequence[LogVerdict], seconds: float = 0.0) -> tuple[Result, ...]:
    """Return one result per log, under SPEC-1; a log without events is unknown."""
    return tuple(_result(log, seconds / max(len(logs), 1)) for log in logs)


def check(paths: Sequence[Path], *, records_max: int = RECORDS_MAX) -> tuple[Result, ...]:
    """Run `check_logs` and return `results`."""
    started = time.perf_counter()
    return results(check_logs(paths, records_max=records_max), time.perf_counter() - started)


def _result(log: LogVerdict, seconds: float) -> Result:
    counts = {"traces": len(log.windows), "accepted": log.accepted, "events": log.events}
    refused = [number for number, verdict in enumerate(log.verdicts) if not verdict.accepted]
    if refused:
        verdict, detail = (
            Verdict.VIOLATED,
            f"{len(refused)} of {len(log.windows)} traces are not behaviours of {log.model}",
        )
    elif log.events:
        verdict, detail = Verdict.HELD, ""
    else:
        verdict, detail = Verdict.UNKNOWN, f"the log has no events of {log.model}"
    about = " ".join(filter(None, (log.path.name, log.node, "" if log.model == "Flush" else log.model)))
    return Result(
        id="SPEC-1",
        name=f"ObservationExplained {about}",
        layer="trace",
        verdict=verdict,
        counts=counts,
        witnesses=tuple(_witness(log, number) for number in refused[:_WITNESSES_MAX]),
        detail=detail,
        replay=f"mqproof trace-check {log.path}",
        seconds=seconds,
    )


def _witness(log: LogVerdict, number: int) -> Witness:
    window, verdict = log.windows[number], log.verdicts[number]
    at = verdict.explained
    before = "; ".join(_show(event) for event in window.events[max(0, at - _NEAR) : at])
    event = f"{_show(window.events[at])} (seq {window.seqs[at]}, event {at + 1} of {verdict.events})"
    text = f"no action of {log.model} explains {event}, after {before or 'nothing'}"
    values = {"seq": str(window.seqs[at]), "explained": str(at), "events": str(verdict.events)}
    if closest := log.closest.get(number):
        values["closest"] = "; ".join(" and ".join(map(str, each)) for each in closest)
        text += f"; closest: {values['closest']}"
    return Witness(text, values)


def _show(event: dict[str, object]) -> str:
    fields = ", ".join(f"{name}={_value(value)}" for name, value in event.items() if name != "event")
    return f"{event['event']}({fields})"


def _value(value: object) -> str:
    """Format a value deterministically: sets have no order of their own."""
    if isinstance(value, frozenset | set):
        return f"{{{', '.join(sorted(map(_value, value)))}}}"
    if isinstance(value, tuple | list):
        return f"<{', '.join(map(_value, value))}>"
    return str(value)
