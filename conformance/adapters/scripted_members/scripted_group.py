"""One of our DLedger members among scripted ones; records every message that it sends, field for field.

`lives.py` has the scripts. See docs/reference/protocol/dledger.md for the rules that they show.
"""

import asyncio
import base64
import json
import random
import zlib
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from dataclasses import replace
from functools import partial
from inspect import isawaitable
from typing import Any, Final

import msgspec

from mqproof.conformance.hosts.simulated import Fsync, Machine
from mqproof.impl.dledger.codes import ResponseCode
from mqproof.impl.dledger.config import GroupConfig
from mqproof.impl.dledger.ledger import LedgerConfig
from mqproof.impl.dledger.node import Node
from mqproof.impl.remoting.channel import Channel, RemotingError
from mqproof.impl.remoting.client import RemotingClient
from mqproof.impl.remoting.command import Command, new_request
from mqproof.impl.remoting.server import RemotingServer
from mqproof.impl.runtime.event_log import EventLog
from mqproof.impl.runtime.network import Address
from mqproof.impl.runtime.simulated_disk import SimulatedDisk
from mqproof.impl.runtime.simulated_internet import SimulatedInternet
from mqproof.impl.runtime.simulated_loop import SimulatedLoop
from mqproof.impl.store.errors import StoreError
from mqproof.spec.events import Event

METADATA, APPEND, GET, VOTE, BEAT, PUSH, TRANSFER = 50000, 50001, 50002, 51001, 51002, 51004, 51005
_NAMES: Final = {
    METADATA: "METADATA", APPEND: "APPEND", GET: "GET", VOTE: "VOTE", BEAT: "HEART_BEAT", PUSH: "PUSH",
    TRANSFER: "LEADERSHIP_TRANSFER",
}  # fmt: skip
_MEMBERS: Final = ("n0", "n1", "n2", "n3", "n4")
_PORT: Final = 40911
_HEADER_BYTES: Final = 48
_FRAME_CODE: Final = 200
"""The code of the frames of scripted members, as of released ones. Ours accepts 0 too."""

_SHOWN_MAX: Final = 8
"""A push with more entries is recorded in short."""
_BODY_SHOWN_MAX: Final = 100
ABSENT: Final = object()
"""The value of a field that a request does not have."""

Fields = dict[str, Any]
Script = Callable[[str, int, Fields], Fields | Awaitable[Fields | None] | None]
"""Returns the fields of a scripted member's answer to a request; None for silence."""


def silent(_member: str, _code: int, _request: Fields) -> None:
    """The script of members that do not answer."""
    return


class _Edge(random.Random):
    """Draws the least or the greatest value of each range."""

    def __init__(self, edge: int) -> None:
        super().__init__(0)
        self._edge = edge

    def uniform(self, a: float, b: float) -> float:
        return (a, b)[self._edge]


class ScriptedGroup:
    """The member n0, and the scripted members, from which all requests to it come."""

    def __init__(
        self,
        loop: SimulatedLoop,
        segment_bytes: int = 8192,
        *,
        has_log: bool = False,
        edge: int | None = None,
        members: int = 3,
        **config: Any,
    ) -> None:
        """`has_log`: whether n0 has an event log. `config` has fields that differ from the defaults.

        With `edge` 0 or 1, n0 waits as short or as long as it may, its disk needs no time, and each line has
        the time in milliseconds since the start of n0.
        """
        self.lines: list[str] = []
        """What n0 sends, with headings."""
        self.script: Script = silent
        self._loop = loop
        self._edge = edge
        self._began_s = loop.time()
        internet = SimulatedInternet(random.Random("internet"))
        internet.delay_s = (0.0, 0.0)
        self._names = _MEMBERS[:members]
        self._machines = {
            name: Machine(f"10.0.0.{number}", internet, loop, name)
            for number, name in enumerate(_MEMBERS[: max(members, 3)])
        }
        self._addresses = {name: Address(self._machines[name].host, _PORT) for name in self._names}
        if edge is not None:
            self.fsync.slowness = 0.0
        self._client = RemotingClient(self._machines["n1"].runtime().remoting)
        self._servers: list[RemotingServer] = []
        self._node: Node | None = None
        self._config = GroupConfig("g", "n0", self._names, **config)
        self._segment_bytes = segment_bytes
        self._has_log = has_log
        self._sent = asyncio.Event()

    @property
    def disk(self) -> SimulatedDisk:
        """The disk of n0."""
        return self._machines["n0"].disk

    @property
    def fsync(self) -> Fsync:
        """The syncs of n0, which can be held."""
        return self._machines["n0"].fsync

    async def start(self) -> None:
        for name in self._names[1:]:
            server = RemotingServer(self._machines[name].runtime().remoting, partial(self._asked, name))
            await server.start(self._addresses[name].host, _PORT)
            self._servers.append(server)
        await self.start_member()

    async def start_member(self) -> None:
        machine = self._machines["n0"]
        ledger = LedgerConfig(self._segment_bytes, 32768)
        log = EventLog(self._logged, "n0", machine.clock) if self._has_log else None
        runtime = machine.runtime()
        if self._edge is not None:
            runtime = replace(runtime, random=_Edge(self._edge))
        self._began_s = self._loop.time()
        node = Node(self._config, self._addresses, "/store", runtime, log, ledger)
        try:
            await self._loop.create_task(node.start(), context=self._loop.context_of(machine.host))
        except (StoreError, OSError) as error:
            self.lines.append(f"n0 does not start: {error}")
        else:
            self._node = node

    def _logged(self, event: Event) -> None:
        fields = msgspec.to_builtins(event)
        shown = {name: value for name, value in fields.items() if name not in ("ts", "seq", "node", "kind")}
        self.lines.append(f"the log of n0: {event.kind} {_sorted(shown)}")

    def kill_member(self, *, power: bool = False) -> None:
        """End the process of n0; with `power`, its machine loses what was not synced."""
        assert self._node is not None, "it does not run"
        if power:
            self.disk.lose_power()
        self.disk.crash_process()
        self._node.kill()
        self._node = None

    async def lose_files(self) -> None:
        """Stop n0 without a record of its files, and remove them."""
        if self._node is not None:
            self.kill_member()
        for path in self.disk.files("/store"):
            self.disk.lose(path)

    @property
    def is_running(self) -> bool:
        return self._node is not None

    def pause(self) -> None:
        """Stop the process of n0, as SIGSTOP does."""
        self._loop.stop_process(self._machines["n0"].host)

    def go_on(self) -> None:
        """Continue the process of n0."""
        self._loop.continue_process(self._machines["n0"].host)

    async def stop(self) -> None:
        await self._client.close()
        if self._node is not None:
            self._node.kill()
        for server in self._servers:
            await server.stop(0.0)

    async def stop_member(self) -> None:
        """Stop n0, and record what its files have."""
        if self._node is not None:
            context = self._loop.context_of(self._machines["n0"].host)
            await self._loop.create_task(self._node.stop(), context=context)
            self._node = None
        for path in self.disk.files("/store"):
            content = self.disk.written(path).rstrip(b"\0")
            shown = content.decode() if path.endswith("currterm") else f"crc {zlib.crc32(content)}"
            self.lines.append(f"{path}: {len(content)} bytes, {shown!r}")

    def take(self, count: int) -> None:
        """Pass empty entries to n0 together, as its broker does, and record the result."""
        node = self._node
        assert node is not None, "it does not run"

        def take() -> None:
            code, entries = node.take([b""] * count, settled)
            places = f"{entries[0].index} to {entries[-1].index}" if entries else "none"
            self.note(f"{count} entries together: {code.value}, {places}")

        def settled(code: ResponseCode) -> None:
            self.note(f"{count} entries together: in the end {code.value}")

        self._loop.context_of(self._machines["n0"].host).copy().run(take)

    async def until_sent(
        self, kind: int, term: int | None = None, to: str = "n1", most_s: float = 9.0
    ) -> float:
        """Wait until n0 sends a message of a kind, of a term if given; return after how long."""
        began = self._loop.time()
        text = f"n0 -> {to} {_NAMES[kind]} "
        seen = len(self.lines)
        while self._loop.time() < began + most_s:
            for line in self.lines[seen:]:
                if line.startswith(text) and (term is None or f'"term":{term},' in line):
                    return self._loop.time() - began
            seen = len(self.lines)
            self._sent.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(began + most_s - self._loop.time()):
                    await self._sent.wait()
        return -1.0

    def timed(self, what: str, least_s: float, observed_s: float, most_s: float | None = None) -> None:
        """Record whether a time is in its range; without `most_s` it is exact."""
        is_right = least_s - 0.002 <= observed_s <= (most_s or least_s) + 0.002
        self.lines.append(f"{what}: {'in time' if is_right else f'after {observed_s:.3f} s'}")

    def heading(self, text: str) -> None:
        self.lines.append(f"# {text}")

    def note(self, text: str) -> None:
        """Record what n0 sends or shows, with its time if times are compared."""
        at_ms = "" if self._edge is None else f" at {1000 * (self._loop.time() - self._began_s):.1f}"
        self.lines.append(f"{text}{at_ms}")

    async def ask(
        self, kind: int, term: int, sender: str = "n1", /, *, timeout_s: float = 0.3, **more: Any
    ) -> None:
        """Send a request to n0 and record its answer. More fields replace those that every request has."""
        request = {
            "group": "g",
            "remoteId": "n0",
            "localId": sender,
            "leaderId": sender,
            "term": term,
            "code": 200,
        }
        fields = {name: value for name, value in {**request, **more}.items() if value is not ABSENT}
        command = new_request(kind, body=json.dumps(fields).encode())
        try:
            answer = await self._client.invoke(self._addresses["n0"], command, timeout_s)
        except RemotingError as error:
            self.note(f"{_NAMES[kind]}: {type(error).__name__}")
            return
        content = (
            _sorted(_bodies_in_short(json.loads(answer.body)))
            if answer.body
            else (answer.remark or "").partition(" - at ")[2]
        )
        self.note(f"{_NAMES[kind]}: {answer.code} {content}")

    def begin(self, kind: int, term: int, **more: Any) -> "asyncio.Task[None]":
        """Send a request whose answer comes later."""
        return self._loop.create_task(self.ask(kind, term, timeout_s=4.0, **more))

    def begin_slow(self, kind: int, term: int, **more: Any) -> "asyncio.Task[None]":
        """Send a request whose answer may come after the time of a request between members."""
        return self._loop.create_task(self.ask(kind, term, **{"timeout_s": 9.0, **more}))

    async def _asked(self, name: str, command: Command, _channel: Channel) -> Command | None:
        request = json.loads(command.body)
        self.note(f"n0 -> {name} {_NAMES[command.code]} {_sorted(_in_short(request))}")
        self._sent.set()
        found = self.script(name, command.code, request)
        fields = await found if isawaitable(found) else found
        if fields is None:
            return None
        answer = {
            "group": "g",
            "remoteId": "n0",
            "localId": name,
            "term": request["term"],
            "code": 200,
            **fields,
        }
        return command.answer(_FRAME_CODE, body=json.dumps(answer).encode())


def write_file(group: ScriptedGroup, path: str, content: bytes) -> None:
    """Write a durable file of n0, in place of an earlier one."""
    disk = group.disk.process()
    if disk.exists(path):
        disk.remove(path)
    file = disk.create(path, len(content))
    file.write(0, content)
    file.sync()
    disk.sync_directory(path.rpartition("/")[0])


Life = Callable[[ScriptedGroup], Coroutine[Any, Any, None]]
"""A script for a group."""
Lives = tuple[tuple[Life, dict[str, Any]], ...]
"""Scripts, each with the configuration of its member."""


def push(kind: str, before: int, before_term: int, entries: list[Fields] = [], **more: Any) -> Fields:  # noqa: B006
    """Return the fields of a push."""
    return {
        "type": kind, "preLogIndex": before, "preLogTerm": before_term, "batchEntry": entries,
        "count": len(entries), "totalSize": sum(each["size"] for each in entries), **more,
    }  # fmt: skip


class Followers:
    """Followers that accept everything, and keep what they received.

    One that is away answers only a transfer of the leadership, and only in a prescribed way.
    """

    def __init__(self) -> None:
        self.ends = {"n1": -1, "n2": -1}
        self.instead: dict[int, list[Fields]] = {}
        """Answers by request code that replace the correct one, the next one first."""
        self.away: set[str] = set()

    def answer(self, name: str, code: int, request: Fields) -> Fields | None:
        if name in self.away and not (code == TRANSFER and self.instead.get(TRANSFER)):
            return None
        if answers := self.instead.get(code):
            return answers.pop(0)
        if code == VOTE:
            return {"voteResult": "ACCEPT"}
        if code != PUSH:
            return {"leaderId": "n0"}
        if request["preLogIndex"] > self.ends[name]:
            return {"code": 406, "endIndex": self.ends[name], "leaderId": "n0"}
        if request["batchEntry"]:
            self.ends[name] = max(self.ends[name], request["batchEntry"][-1]["index"])
        last = request["batchEntry"][-1]["index"] if request["batchEntry"] else request["preLogIndex"]
        return {"index": last, "endIndex": self.ends[name], "leaderId": "n0"}


def entry(index: int, term: int, pos: int, body: bytes = b"", **more: Any) -> Fields:
    """Return an entry as it is in a push."""
    return {
        "magic": 1, "size": _HEADER_BYTES + len(body), "index": index, "term": term, "pos": pos, "channel": 0,
        "chainCrc": 0, "bodyCrc": 0, "body": base64.b64encode(body).decode(), **more,
    }  # fmt: skip


def _in_short(request: Fields) -> Fields:
    """Return a request with a summary of its entries if they are many."""
    entries = request.get("batchEntry") or []
    if len(entries) <= _SHOWN_MAX:
        return request
    text = f"{len(entries)} from {entries[0]['index']}, crc {zlib.crc32(_sorted({'': entries}).encode())}"
    return {**request, "batchEntry": text}


def _bodies_in_short(answer: Fields) -> Fields:
    """Return an answer with the checksums of the long bodies of its entries."""
    for each in answer.get("entries") or ():
        if len(each["body"]) > _BODY_SHOWN_MAX:
            each["body"] = f"crc {zlib.crc32(each['body'].encode())}"
    return answer


def _sorted(fields: Fields) -> str:
    return json.dumps(fields, sort_keys=True, separators=(",", ":"))
