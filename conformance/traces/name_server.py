"""Converts the event logs of name servers into traces of spec/tla/Routing.tla, for TLC.

A log may contain several name servers, in the order of events. Each trace is about one topic that was
requested. One second is a tick. A long log may be split anywhere: the next trace begins with the known
brokers, each registered at the time when it was last heard from.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from mqproof.conformance.traces.store import RECORDS_MAX, TraceEvent, Window
from mqproof.spec.events import Event, EventError, Kind

DEFAULT_TOPIC: Final = "TBW102"
TOPICS_MAX: Final = 8
"""Maximum number of topics of a log that are examined: those requested first."""
EXPIRY_S: Final = 120
SCAN_S: Final = 10
_EVENTS_IN_RECORD: Final = 5
_ABOUT_BROKERS: Final = frozenset({Kind.REGISTER, Kind.UNREGISTER, Kind.HEARTBEAT, Kind.EXPIRE})

Broker = tuple[str, int]
"""A broker's name and id, as named in the trace."""


def is_name_servers(event: Event) -> bool:
    """Return whether a name server wrote the event. Clients and group members use other attributes."""
    if event.kind is Kind.ROUTE:
        return "brokers" in event.attrs
    if event.kind is Kind.RECOVER:
        return "expiry_ms" in event.attrs
    return event.kind in _ABOUT_BROKERS and "address" in event.attrs


def periods_s(events: Iterable[Event]) -> tuple[int, int]:
    """Return the expiry and the scan interval in seconds, as name servers report them at a start."""
    for event in events:
        if event.kind is Kind.RECOVER and is_name_servers(event):
            attrs = event.attrs
            return -(-int(attrs["expiry_ms"]) // 1000), -(-int(attrs["scan_interval_ms"]) // 1000)
    return EXPIRY_S, SCAN_S


@dataclass(slots=True)
class _Servers:
    where: str
    topic: str
    servers: dict[str, str] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    """Names of brokers in the trace, by their own names."""
    addresses: dict[tuple[str, str], Broker] = field(default_factory=dict)
    """Maps name server and address to the broker that registered there last."""
    versions: dict[tuple[str, Broker], str] = field(default_factory=dict)
    """Maps name server and broker to the version of its last topic list."""
    last_heard: dict[tuple[str, Broker], int] = field(default_factory=dict)
    """Maps name server and known broker to the second in which it was last heard from."""
    started: set[str] = field(default_factory=set)
    now_s: int = 0
    out: list[TraceEvent] = field(default_factory=list)
    seqs: list[int] = field(default_factory=list)

    def emit(self, seq: int, event: str, server: str, **fields: object) -> None:
        self.out.append({"event": event, "server": server, **fields})
        self.seqs.append(seq)

    def window(self) -> Window:
        return Window(tuple(self.out), tuple(self.seqs), len(self.names), len(self.servers))


def traces(events: Iterable[Event], where: str, records_max: int = RECORDS_MAX) -> Iterator[Window]:
    """Yield the traces of a log of name servers.

    A window's `messages` is the number of name servers, its `queues` that of broker names.

    Raises:
        EventError: events are missing (a name server's `seq` is not dense), or an event lacks a field that
            the trace needs.
    """
    log = list(events)
    nodes = {event.node for event in log if is_name_servers(event)}
    mine = [event for event in log if event.node in nodes]
    _check_dense(mine, where)
    requested = dict.fromkeys(e.topic for e in mine if e.kind is Kind.ROUTE and e.topic)
    topics = [topic for topic in requested if topic != DEFAULT_TOPIC][:TOPICS_MAX] or [DEFAULT_TOPIC]
    for topic in topics:
        yield from _about(topic, mine, where, records_max * _EVENTS_IN_RECORD)


def _check_dense(log: list[Event], where: str) -> None:
    last: dict[str, int] = {}
    for event in log:
        if event.node in last and event.seq != last[event.node] + 1:
            raise EventError(
                f"{where}: {event.node}: seq {event.seq} follows {last[event.node]}: events are missing"
            )
        last[event.node] = event.seq


def _about(topic: str, log: list[Event], where: str, events_max: int) -> Iterator[Window]:
    known = _Servers(where, topic)
    began_us = log[0].ts if log else 0
    for event in log:
        if len(known.out) >= events_max:
            yield known.window()
            _begin_again(known, event.seq)
        second = (event.ts - began_us) // 1_000_000
        if second > known.now_s:  # time does not advance when a clock is set back
            known.emit(event.seq, "tick", "", by=second - known.now_s)
            known.now_s = second
        _take(known, event)
    if known.out:
        yield known.window()


def _take(known: _Servers, event: Event) -> None:
    server = known.servers.setdefault(event.node, f"n{len(known.servers)}")
    match event.kind:
        case Kind.RECOVER if is_name_servers(event):
            _start(known, event, server)
        case Kind.ROUTE if event.topic in (known.topic, DEFAULT_TOPIC) and "brokers" in event.attrs:
            _route(known, event, server)
        case Kind.REGISTER:
            broker = (_name(known, _text(known, event, "broker")), _id(known, event))
            known.addresses[server, _text(known, event, "address")] = broker
            known.last_heard[server, broker] = known.now_s
            _register(known, event, server, broker)
        case Kind.HEARTBEAT:
            broker = _broker(known, event, server)
            known.last_heard[server, broker] = known.now_s
            known.emit(event.seq, "refresh", server, broker=broker)
        case Kind.UNREGISTER | Kind.EXPIRE:
            broker = _broker(known, event, server)
            known.last_heard.pop((server, broker), None)
            silent = event.kind is Kind.EXPIRE and event.attrs.get("reason") == "silent"
            known.emit(event.seq, "expire" if silent else "leave", server, broker=broker)
        case _:
            pass


def _start(known: _Servers, event: Event, server: str) -> None:
    if server in known.started:
        for _ in ("it dies", "it starts"):
            known.emit(event.seq, "restart", server)
        known.last_heard = {place: second for place, second in known.last_heard.items() if place[0] != server}
    known.started.add(server)


def _register(known: _Servers, event: Event, server: str, broker: Broker) -> None:
    if "topics" not in event.attrs:
        known.emit(event.seq, "register", server, broker=broker)
        return
    lists = known.topic in event.attrs["topics"].split(",")
    version = event.attrs.get("version", "")
    if lists and version != known.versions.get((server, broker), version):
        # For the model, a list is new only if it starts or stops to contain the topic.
        known.emit(event.seq, "register", server, broker=broker, lists=False)
    known.versions[server, broker] = version
    known.emit(event.seq, "register", server, broker=broker, lists=lists)


def _route(known: _Servers, event: Event, server: str) -> None:
    members = [text.rpartition(":") for text in event.attrs["brokers"].split(",") if text]
    brokers = frozenset((_name(known, name), min(int(number), 1)) for name, _, number in members)
    writable = frozenset(_name(known, name) for name in event.attrs.get("writable", "").split(",") if name)
    topic = "TBW102" if event.topic == DEFAULT_TOPIC else "topic"
    known.emit(event.seq, "route", server, topic=topic, brokers=brokers, writable=writable)


def _begin_again(known: _Servers, seq: int) -> None:
    known.out, known.seqs = [], []
    last_heard = sorted(known.last_heard.items(), key=lambda item: item[1])
    seconds = [*(second for _, second in last_heard), known.now_s]
    for ((server, broker), _), (before, after) in zip(last_heard, pairwise(seconds), strict=True):
        known.emit(seq, "register", server, broker=broker)
        if after > before:
            known.emit(seq, "tick", "", by=after - before)


def _name(known: _Servers, name: str) -> str:
    return known.names.setdefault(name, f"b{len(known.names)}")


def _id(known: _Servers, event: Event) -> int:
    """Return the broker id in the model, which has one slave per name; 0 is the master."""
    text = _text(known, event, "id")
    if not text.isdecimal():
        raise EventError(
            f"{known.where}: register at seq {event.seq}: attrs.id is {text[:20]!r}, a number expected"
        )
    return min(int(text), 1)


def _broker(known: _Servers, event: Event, server: str) -> Broker:
    """Return the broker that the name server means by an address; the master if the address is unknown."""
    place = (server, _text(known, event, "address"))
    return known.addresses.get(place, (_name(known, _text(known, event, "broker")), 0))


def _text(known: _Servers, event: Event, name: str) -> str:
    if name not in event.attrs:
        raise EventError(f"{known.where}: {event.node}: {event.kind} at seq {event.seq} has no attrs.{name}")
    return event.attrs[name]
