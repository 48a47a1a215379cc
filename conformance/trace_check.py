"""Asks TLC whether brokers' event logs are behaviours of spec/tla/Flush.tla, and reports what it says."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from conformance.trace import RECORDS_MAX, SETTLED, Window, windows
from report.model import Result, Verdict, Witness
from spec.events import Event, Kind, read_log
from spec.tlc.trace_check import TraceVerdict, check_traces

TLA: Final = Path(__file__).parents[1] / "spec" / "tla"

# A message that is answered under SYNC_FLUSH before any fsync.
_PLANTED: Final = (
    {"event": "open", "mode": "SYNC_FLUSH"},
    {"event": "append", "message": "m1", "queue": "q0", "offset": 0},
    {"event": "answer", "message": "m1", "status": "SEND_OK"},
)
_NEAR: Final = 3
"""How many events before the one that is not explained a witness shows."""


@dataclass(frozen=True, slots=True)
class LogVerdict:
    """What TLC says of one broker's part of an event log."""

    path: Path
    node: str
    windows: tuple[Window, ...]
    verdicts: tuple[TraceVerdict, ...]

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
    seconds_max: float = 600,
    on_stage: Callable[[str], None] = lambda _: None,
) -> tuple[LogVerdict, ...]:
    """All windows of all logs, in one run of TLC.

    Raises:
        EventError: a log is not one of a broker, or events are missing. OSError. TlcError.
    """
    brokers = [(path, node, events) for path in paths for node, events in _brokers(path)]
    cut = [tuple(windows(events, f"{path} {node}", records_max)) for path, node, events in brokers]
    flat = [window for log in cut for window in log]
    if not flat:
        return tuple(LogVerdict(path, "", (), ()) for path in paths)
    on_stage(f"TLC checks {sum(len(w.events) for w in flat)} events in {len(flat)} traces")
    outcome = check_traces(
        "TraceFlush",
        _config(flat),
        [window.events for window in flat],
        _PLANTED,
        (TLA,),
        seconds_max=seconds_max,
    )
    verdicts = iter(outcome.verdicts)
    return tuple(
        LogVerdict(path, node, log, tuple(next(verdicts) for _ in log))
        for (path, node, _), log in zip(brokers, cut, strict=True)
    )


def _brokers(path: Path) -> list[tuple[str, list[Event]]]:
    """The events of each node of the log that recovered a store."""
    nodes: dict[str, list[Event]] = {}
    for event in read_log(path):
        nodes.setdefault(event.node, []).append(event)
    return [(node, events) for node, events in nodes.items() if any(e.kind is Kind.RECOVER for e in events)]


def results(logs: Sequence[LogVerdict], seconds: float = 0.0) -> tuple[Result, ...]:
    """One result a log, under SPEC-1: nothing to look at is unknown."""
    return tuple(_result(log, seconds / max(len(logs), 1)) for log in logs)


def check(paths: Sequence[Path], *, records_max: int = RECORDS_MAX) -> tuple[Result, ...]:
    """`check_logs` and `results` in one."""
    started = time.perf_counter()
    return results(check_logs(paths, records_max=records_max), time.perf_counter() - started)


def _result(log: LogVerdict, seconds: float) -> Result:
    counts = {"traces": len(log.windows), "accepted": log.accepted, "events": log.events}
    refused = [pair for pair in zip(log.windows, log.verdicts, strict=True) if not pair[1].accepted]
    if refused:
        verdict, detail = (
            Verdict.VIOLATED,
            f"{len(refused)} of {len(log.windows)} traces are no behaviour of Flush",
        )
    elif log.events:
        verdict, detail = Verdict.HELD, ""
    else:
        verdict, detail = Verdict.UNKNOWN, "the log holds no event of a store"
    return Result(
        id="SPEC-1",
        name=f"ObservationExplained {log.path.name} {log.node}".rstrip(),
        layer="trace",
        verdict=verdict,
        counts=counts,
        witnesses=tuple(_witness(window, verdict) for window, verdict in refused[:8]),
        detail=detail,
        replay=f"mqproof trace-check {log.path}",
        seconds=seconds,
    )


def _witness(window: Window, verdict: TraceVerdict) -> Witness:
    at = verdict.explained
    before = "; ".join(_show(event) for event in window.events[max(0, at - _NEAR) : at])
    return Witness(
        f"no action of Flush explains {_show(window.events[at])} (seq {window.seqs[at]}), after {before}",
        {"seq": str(window.seqs[at]), "explained": str(at), "events": str(verdict.events)},
    )


def _show(event: dict[str, object]) -> str:
    fields = ", ".join(f"{name}={value}" for name, value in event.items() if name != "event")
    return f"{event['event']}({fields})"


def _config(flat: Sequence[Window]) -> str:
    messages = [SETTLED, *(f"m{n}" for n in range(1, max(w.messages for w in flat) + 2))]
    queues = [f"q{n}" for n in range(max(1, max(w.queues for w in flat)))]
    return "\n".join(
        [
            "CONSTANTS",
            f"  Messages = {{{', '.join(map(_quote, messages))}}}",
            f"  Queues = {{{', '.join(map(_quote, queues))}}}",
            '  FlushModes = {"SYNC_FLUSH", "ASYNC_FLUSH"}',
            "",
        ]
    )


def _quote(text: str) -> str:
    return f'"{text}"'
