"""Asks TLC whether event logs are behaviours of the models, and reports what it says: brokers' of
spec/tla/Flush.tla, DLedger groups' of spec/tla/Election.tla.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from conformance import raft_trace
from conformance.trace import RECORDS_MAX, SETTLED, TraceEvent, Window, windows
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
# A leader that tells a client of success before anybody else has the entry.
_PLANTED_GROUP: Final = (
    {"event": "stand", "node": "n0", "term": 1},
    {"event": "vote", "node": "n1", "term": 1, "candidate": "n0", "result": "ACCEPT"},
    {"event": "become_leader", "node": "n0", "term": 1, "index": 1},
    {"event": "append", "node": "n0", "term": 1, "index": 2, "message": "m1"},
    {"event": "ack", "node": "n0", "term": 1, "message": "m1"},
)
_NEAR: Final = 3
"""How many events before the one that is not explained a witness shows."""


@dataclass(frozen=True, slots=True)
class LogVerdict:
    """What TLC says of one broker's part of an event log, or of a group's log."""

    path: Path
    node: str
    """Empty for a group."""
    windows: tuple[Window, ...]
    verdicts: tuple[TraceVerdict, ...]
    model: str = "Flush"

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
    """All windows of all brokers' logs in one run of TLC, all groups' logs of one size in another.

    Raises:
        EventError: a log is not one of a broker or a group, or events are missing. OSError. TlcError.
    """
    logs = [(path, list(read_log(path))) for path in paths]
    groups = [log for log in logs if _is_group(log[1])]
    others = [log for log in logs if not _is_group(log[1])]
    checked = list(_check_groups(groups, seconds_max, on_stage))
    if others or not groups:
        checked += _check_brokers(others, records_max, seconds_max, on_stage)
    return tuple(checked)


def _is_group(events: Sequence[Event]) -> bool:
    return any(event.kind in raft_trace.RAFT_KINDS for event in events)


def _check_groups(
    logs: Sequence[tuple[Path, list[Event]]], seconds_max: float, on_stage: Callable[[str], None]
) -> Iterator[LogVerdict]:
    """A trace a group. Groups of other members need another run: the model's nodes are a constant."""
    sizes = sorted({raft_trace.members(events) for _, events in logs})
    for names in sizes:
        same = [(path, events) for path, events in logs if raft_trace.members(events) == names]
        traces = [raft_trace.trace(events, str(path)) for path, events in same]
        on_stage(f"TLC checks {sum(len(w.events) for w in traces)} events of {len(traces)} groups")
        nodes = names or ("n0",)
        planted: tuple[TraceEvent, ...] = _PLANTED_GROUP
        for old, new in zip(("n0", "n1"), nodes, strict=False):
            planted = tuple({k: new if v == old else v for k, v in e.items()} for e in planted)
        outcome = check_traces(
            "TraceElection",
            _group_config(nodes, traces),
            [window.events for window in traces],
            planted,
            (TLA,),
            seconds_max=seconds_max,
        )
        for (path, _), window, verdict in zip(same, traces, outcome.verdicts, strict=True):
            yield LogVerdict(path, "", (window,), (verdict,), "Election")


def _group_config(nodes: Sequence[str], traces: Sequence[Window]) -> str:
    messages = [f"m{n}" for n in range(1, max(window.messages for window in traces) + 2)]
    return "\n".join(
        [
            "CONSTANTS",
            f"  Nodes = {{{', '.join(map(_quote, nodes))}}}",
            f"  Messages = {{{', '.join(map(_quote, messages))}}}",
            "",
        ]
    )


def _check_brokers(
    logs: Sequence[tuple[Path, list[Event]]],
    records_max: int,
    seconds_max: float,
    on_stage: Callable[[str], None],
) -> tuple[LogVerdict, ...]:
    brokers = [(path, node, events) for path, log in logs for node, events in _brokers(log)]
    cut = [tuple(windows(events, f"{path} {node}", records_max)) for path, node, events in brokers]
    flat = [window for log in cut for window in log]
    if not flat:
        return tuple(LogVerdict(path, "", (), ()) for path, _ in logs)
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


def _brokers(log: Sequence[Event]) -> list[tuple[str, list[Event]]]:
    """The events of each node of the log that recovered a store."""
    nodes: dict[str, list[Event]] = {}
    for event in log:
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
            f"{len(refused)} of {len(log.windows)} traces are no behaviour of {log.model}",
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
        witnesses=tuple(_witness(log.model, window, verdict) for window, verdict in refused[:8]),
        detail=detail,
        replay=f"mqproof trace-check {log.path}",
        seconds=seconds,
    )


def _witness(model: str, window: Window, verdict: TraceVerdict) -> Witness:
    at = verdict.explained
    before = "; ".join(_show(event) for event in window.events[max(0, at - _NEAR) : at])
    return Witness(
        f"no action of {model} explains {_show(window.events[at])} (seq {window.seqs[at]}), after {before}",
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
