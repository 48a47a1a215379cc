"""One of our DLedger members among two scripted ones; records every message that it sends, field for field.

`lives.py` has the scripts. See docs/reference/protocol/dledger.md for the rules that they show.
"""

import asyncio
import base64
import json
import random
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from mqproof.conformance.hosts.simulated import Machine
from mqproof.impl.dledger.config import GroupConfig
from mqproof.impl.dledger.ledger import LedgerConfig
from mqproof.impl.dledger.node import Node
from mqproof.impl.remoting.channel import Channel, RemotingError
from mqproof.impl.remoting.client import RemotingClient
from mqproof.impl.remoting.command import Command, new_request
from mqproof.impl.remoting.server import RemotingServer
from mqproof.impl.runtime.network import Address
from mqproof.impl.runtime.simulated_internet import SimulatedInternet
from mqproof.impl.runtime.simulated_loop import SimulatedLoop

METADATA, APPEND, GET, VOTE, BEAT, PUSH, TRANSFER = 50000, 50001, 50002, 51001, 51002, 51004, 51005
_NAMES: Final = {
    METADATA: "METADATA", APPEND: "APPEND", GET: "GET", VOTE: "VOTE", BEAT: "HEART_BEAT", PUSH: "PUSH",
    TRANSFER: "LEADERSHIP_TRANSFER",
}  # fmt: skip
_MEMBERS: Final = ("n0", "n1", "n2")
_PORT: Final = 40911
_HEADER_BYTES: Final = 48
_FRAME_CODE: Final = 200
"""The code of the frames of scripted members, as of released ones. Ours accepts 0 too."""

Fields = dict[str, Any]
Script = Callable[[str, int, Fields], Fields | None]
"""Returns the fields of a scripted member's answer to a request; None for silence."""


def silent(_member: str, _code: int, _request: Fields) -> None:
    """The script of members that do not answer."""
    return


class ScriptedGroup:
    """The member n0, and the scripted members n1 and n2, from which all requests to it come."""

    def __init__(self, loop: SimulatedLoop) -> None:
        self.lines: list[str] = []
        """What n0 sends, with headings."""
        self.script: Script = silent
        self._loop = loop
        internet = SimulatedInternet(random.Random("internet"))
        internet.delay_s = (0.0, 0.0)
        self._machines = {
            name: Machine(f"10.0.0.{number}", internet, loop, name) for number, name in enumerate(_MEMBERS)
        }
        self._addresses = {name: Address(each.host, _PORT) for name, each in self._machines.items()}
        self._client = RemotingClient(self._machines["n1"].runtime().remoting)
        self._servers: list[RemotingServer] = []
        self._node: Node | None = None

    async def start(self) -> None:
        for name in _MEMBERS[1:]:
            server = RemotingServer(self._machines[name].runtime().remoting, partial(self._asked, name))
            await server.start(self._addresses[name].host, _PORT)
            self._servers.append(server)
        await self.start_member()

    async def start_member(self) -> None:
        machine = self._machines["n0"]
        config, ledger = GroupConfig("g", "n0", _MEMBERS), LedgerConfig(8192, 32768)
        self._node = Node(config, self._addresses, "/store", machine.runtime(), ledger_config=ledger)
        await self._loop.create_task(self._node.start(), context=self._loop.context_of(machine.host))

    def kill_member(self) -> None:
        assert self._node is not None, "it does not run"
        self._machines["n0"].disk.crash_process()
        self._node.kill()
        self._node = None

    async def stop(self) -> None:
        await self._client.close()
        if self._node is not None:
            self._node.kill()
        for server in self._servers:
            await server.stop(0.0)

    def heading(self, text: str) -> None:
        self.lines.append(f"# {text}")

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
        command = new_request(kind, body=json.dumps({**request, **more}).encode())
        try:
            answer = await self._client.invoke(self._addresses["n0"], command, timeout_s)
        except RemotingError as error:
            self.lines.append(f"{_NAMES[kind]}: {type(error).__name__}")
            return
        content = (
            _sorted(json.loads(answer.body)) if answer.body else (answer.remark or "").partition(" - at ")[2]
        )
        self.lines.append(f"{_NAMES[kind]}: {answer.code} {content}")

    def begin(self, kind: int, term: int, **more: Any) -> "asyncio.Task[None]":
        """Send a request whose answer comes later."""
        return self._loop.create_task(self.ask(kind, term, timeout_s=4.0, **more))

    async def _asked(self, name: str, command: Command, _channel: Channel) -> Command | None:
        request = json.loads(command.body)
        self.lines.append(f"n0 -> {name} {_NAMES[command.code]} {_sorted(request)}")
        fields = self.script(name, command.code, request)
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


def entry(index: int, term: int, pos: int, body: bytes = b"", **more: Any) -> Fields:
    """Return an entry as it is in a push."""
    return {
        "magic": 1, "size": _HEADER_BYTES + len(body), "index": index, "term": term, "pos": pos, "channel": 0,
        "chainCrc": 0, "bodyCrc": 0, "body": base64.b64encode(body).decode(), **more,
    }  # fmt: skip


def _sorted(fields: Fields) -> str:
    return json.dumps(fields, sort_keys=True, separators=(",", ":"))
