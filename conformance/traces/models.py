"""The models against which event logs are checked.

A model defines its logs, their conversion into traces, and TLC's constants.
`mqproof.conformance.traces.check` knows the models only through `MODELS`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from mqproof.conformance.traces import group, leadership, name_server, pair
from mqproof.conformance.traces.store import SETTLED, TraceEvent, Window, windows
from mqproof.spec.events import Event, Kind

Log = Sequence[Event]
Size = tuple[str, ...]
"""Values that must be equal in all traces of one run of TLC, because the model has them as constants."""


@dataclass(frozen=True, slots=True)
class Part:
    """The traces of one log for one model: about one node, or about all (then `node` is empty)."""

    node: str
    windows: tuple[Window, ...]
    size: Size = ()


@dataclass(frozen=True, slots=True)
class TraceModel:
    name: str
    module: str
    """The trace module."""
    parts: Callable[[Log, str, int], Iterator[Part]]
    """Maps (events, their source, records per trace) to the parts to check; nothing for a foreign log."""
    constants: Callable[[Size, Sequence[Window]], Mapping[str, str]]
    injected: Callable[[Size], Sequence[TraceEvent]]
    """Returns a trace that the model must refuse."""

    def config_text(self, size: Size, traces: Sequence[Window]) -> str:
        lines = [f"  {name} = {value}" for name, value in self.constants(size, traces).items()]
        return "\n".join(["CONSTANTS", *lines, ""])


def _set(names: Sequence[str]) -> str:
    return "{" + ", ".join(f'"{name}"' for name in names) + "}"


def _messages(traces: Sequence[Window]) -> list[str]:
    return [f"m{n}" for n in range(1, max(window.messages for window in traces) + 2)]


# One broker's store.


def _flush_parts(log: Log, where: str, records_max: int) -> Iterator[Part]:
    if _is_group(log):
        return
    nodes: dict[str, list[Event]] = {}
    for event in log:
        nodes.setdefault(event.node, []).append(event)
    for node, events in nodes.items():
        if any(event.kind is Kind.RECOVER and event.commit_offset is not None for event in events):
            yield Part(node, tuple(windows(events, f"{where} {node}", records_max)))


def _flush_constants(size: Size, traces: Sequence[Window]) -> Mapping[str, str]:  # noqa: ARG001
    return {
        "Messages": _set([SETTLED, *_messages(traces)]),
        "Queues": _set([f"q{n}" for n in range(max(1, max(w.queues for w in traces)))]),
        "FlushModes": '{"SYNC_FLUSH", "ASYNC_FLUSH"}',
    }


def _flush_injected(size: Size) -> Sequence[TraceEvent]:  # noqa: ARG001
    """Return a trace in which a message is acknowledged under SYNC_FLUSH before any fsync."""
    return (
        {"event": "open", "mode": "SYNC_FLUSH"},
        {"event": "append", "message": "m1", "queue": "q0", "offset": 0},
        {"event": "answer", "message": "m1", "status": "SEND_OK"},
    )


# A master and its slave.


def _pair_parts(log: Log, where: str, records_max: int) -> Iterator[Part]:
    if pair.is_pair(log):
        yield Part("", tuple(pair.traces(log, where, records_max)))


def _pair_constants(size: Size, traces: Sequence[Window]) -> Mapping[str, str]:  # noqa: ARG001
    return {
        "Messages": _set([pair.UNKNOWN, *_messages(traces)]),
        "FlushModes": '{"SYNC_FLUSH", "ASYNC_FLUSH"}',
        "Roles": '{"SYNC_MASTER", "ASYNC_MASTER"}',
        "FallBehindMax": "1000000",  # brokers count it in bytes, and never reach it
    }


def _pair_injected(size: Size) -> Sequence[TraceEvent]:  # noqa: ARG001
    """Return a trace in which a synchronous master reports success before its slave has the record."""
    return (
        {"event": "open", "mode": "ASYNC_FLUSH", "role": "SYNC_MASTER", "slave": True},
        {"event": "append", "node": "master", "message": "m1", "usable": "yes"},
        {"event": "transfer", "index": 1},
        {"event": "answer", "message": "m1", "status": "SEND_OK"},
    )


# A DLedger group.


def _is_group(log: Log) -> bool:
    return any(event.kind in group.RAFT_KINDS for event in log)


def _group_parts(log: Log, where: str, records_max: int) -> Iterator[Part]:  # noqa: ARG001
    if _is_group(log):
        yield Part("", (group.trace(log, where),), group.members(log) or ("n0",))


def _group_constants(size: Size, traces: Sequence[Window]) -> Mapping[str, str]:
    return {"Nodes": _set(size), "Messages": _set(_messages(traces))}


def _group_injected(size: Size) -> Sequence[TraceEvent]:
    """Return a trace in which a leader reports success before any other member has the entry."""
    leader, voter = size[0], size[-1]
    return (
        {"event": "open", "unrecorded": frozenset()},
        {"event": "stand", "node": leader, "term": 1},
        {"event": "vote", "node": voter, "term": 1, "candidate": leader, "result": "ACCEPT"},
        {"event": "become_leader", "node": leader, "term": 1, "index": 1},
        {"event": "append", "node": leader, "term": 1, "index": 2, "message": "m1"},
        {"event": "ack", "node": leader, "term": 1, "index": 2, "message": "m1"},
    )


def _leadership_parts(log: Log, where: str, records_max: int) -> Iterator[Part]:  # noqa: ARG001
    if _is_group(log):
        yield Part("", tuple(leadership.traces(log, where)), group.members(log) or ("n0",))


def _leadership_constants(size: Size, traces: Sequence[Window]) -> Mapping[str, str]:
    return {"Members": _set(size), **_pair_constants(size, traces)}


def _leadership_injected(size: Size) -> Sequence[TraceEvent]:
    """Return a trace in which a leader counts acknowledgements that the others did not send."""
    leader = size[0]
    return (
        {
            "event": "lead",
            "node": leader,
            "log": (),
            "durable": 0,
            "committed": (),
            "unrecorded": frozenset(),
        },
        {"event": "append", "node": leader, "index": 1, "message": "m1"},
        {"event": "answer", "node": leader, "message": "m1"},
    )


# Name servers.


def _route_parts(log: Log, where: str, records_max: int) -> Iterator[Part]:
    own_events = [event for event in log if name_server.is_name_servers(event)]
    if any(event.kind is not Kind.RECOVER for event in own_events):
        size = tuple(map(str, name_server.periods_s(own_events)))
        yield Part("", tuple(name_server.traces(log, where, records_max)), size)


def _route_constants(size: Size, traces: Sequence[Window]) -> Mapping[str, str]:
    names = _set([f"b{n}" for n in range(max(1, max(w.queues for w in traces)))])
    return {
        "NameServers": _set([f"n{n}" for n in range(max(1, max(w.messages for w in traces)))]),
        "Clients": '{"c0"}',
        "Masters": names,
        "Slaves": names,
        "Holders": "{}",
        "HeartbeatEvery": "1",
        "ScanEvery": size[1],
        "Expiry": size[0],
        "PollEvery": "1",
    }


def _route_injected(size: Size) -> Sequence[TraceEvent]:  # noqa: ARG001
    """Return a trace in which a broker expires as silent in the second in which it registered."""
    broker = {"server": "n0", "broker": ("b0", 0)}
    return ({"event": "register", **broker}, {"event": "expire", **broker})


MODELS: Final = (
    TraceModel("Flush", "TraceFlush", _flush_parts, _flush_constants, _flush_injected),
    TraceModel("Replication", "TraceReplication", _pair_parts, _pair_constants, _pair_injected),
    TraceModel("Routing", "TraceRouting", _route_parts, _route_constants, _route_injected),
    TraceModel("Election", "TraceElection", _group_parts, _group_constants, _group_injected),
    TraceModel(
        "Replication", "TraceLeadership", _leadership_parts, _leadership_constants, _leadership_injected
    ),
)
