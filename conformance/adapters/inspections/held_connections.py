"""Connections that do not end by themselves, and replies that are set later: calls in their order and times.

See docs/reference/protocol/framing.md, "Remoting frame".
"""

import asyncio
from typing import Final

from mqproof.conformance.adapters.inspections.site import HOST, Inspection, Site
from mqproof.conformance.wire import chapters
from mqproof.conformance.wire.frames import Frame, encode
from mqproof.impl.remoting.budget import server_budgets
from mqproof.impl.remoting.channel import Channel, Limits
from mqproof.impl.remoting.command import Command
from mqproof.impl.remoting.later import Later
from mqproof.impl.runtime.network import Address

_SHORTLY_S: Final = 0.01
_CLOSE_S: Final = 10.0
_CODE: Final = 4711


async def held_connections(site: Site) -> None:
    site.rule = chapters.REMOTING_FRAME
    await _channels(site)
    await _later(site)


class _Held:
    """A connection that does not end before it is aborted."""

    local, remote = Address(HOST, 1), Address("10.0.9.21", 1)
    unsent_bytes = 0

    def __init__(self) -> None:
        self.calls: list[tuple[str, float]] = []

    def _note(self, name: str) -> None:
        self.calls.append((name, round(asyncio.get_running_loop().time(), 3)))

    def write(self, _data: bytes) -> None:
        self._note("write")

    def close(self) -> None:
        self._note("close")

    def abort(self) -> None:
        self._note("abort")

    def pause_reading(self) -> None:
        self._note("pause")

    def resume_reading(self) -> None:
        self._note("resume")


async def _channels(site: Site) -> None:
    """A connection that is closed, and whose peer does not read, is cut after 10 s."""
    loop = asyncio.get_running_loop()
    for ends_after_s in (None, 5.0):
        held = _Held()
        channel = Channel(held, lambda _request, _channel: None, Limits())
        began_s = loop.time()
        channel.close()
        await asyncio.sleep(1)
        channel.close()
        if ends_after_s is not None:
            await asyncio.sleep(ends_after_s - 1)
            channel.closed()
        await asyncio.sleep(2 * _CLOSE_S)
        expected = [("close", 0.0), ("close", 1.0), *([("abort", _CLOSE_S)] if ends_after_s is None else [])]
        found = [(name, round(at_s - began_s, 2)) for name, at_s in held.calls]
        site.compare("the calls of a connection that is closed", expected, found)
    held = _Held()
    channel = Channel(held, lambda _request, _channel: None, Limits())
    channel.closed()
    channel.close()
    await asyncio.sleep(2 * _CLOSE_S)
    site.compare("the calls after the end", ["close"], [name for name, _ in held.calls])
    await _paused(site)


async def _paused(site: Site) -> None:
    """A connection is not read while too many requests are in progress, or while its peer does not read."""
    held, later = _Held(), Later()
    held.unsent_bytes = 5
    budgets = server_budgets(10, 1 << 24)
    channel = Channel(held, lambda _request, _channel: later, Limits(unanswered_max=1), budgets=budgets)
    data = encode(Frame(_CODE, 7))
    for part in (data[:9], data[9:]):
        channel.received(part)
    site.compare("the unanswered requests", 1, channel.unanswered)
    channel.write_paused()
    site.compare("the unread bytes of a peer that does not read", 5, budgets.unread.used)
    held.unsent_bytes = 9
    later.set(Command(0, 7, 1))
    site.compare("the unread bytes after an answer", 9, budgets.unread.used)
    await asyncio.sleep(_SHORTLY_S)
    site.compare(
        "the calls while the peer does not read", ["pause", "write"], [name for name, _ in held.calls]
    )
    channel.write_resumed()
    site.compare("the unread bytes of a peer that reads", 0, budgets.unread.used)
    await asyncio.sleep(_SHORTLY_S)
    site.compare("the calls at the end", ["pause", "write", "resume"], [name for name, _ in held.calls])
    channel.write_paused()
    site.compare("the unread bytes before the end", 9, budgets.unread.used)
    channel.closed()
    site.compare("what the budgets have after the end", [0] * 4, [each.used for each in budgets])
    gone, late = _Held(), Later()
    channel = Channel(gone, lambda _request, _channel: late, Limits(unanswered_max=1))
    channel.received(data)
    channel.closed()
    late.set(Command(0, 7, 1))
    await asyncio.sleep(_SHORTLY_S)
    site.compare("the calls of a connection that ended before its answer", ["pause"], [
        name for name, _ in gone.calls])  # fmt: skip
    site.compare("whether it is open, and its requests", (False, 0), (channel.is_open, channel.unanswered))


async def _later(site: Site) -> None:
    """A reply that is set later is that of the first call, and none if it is cancelled."""
    one, two = (Command(code, 7, 1) for code in (1, 2))
    for is_cancelled in (False, True):
        later, ended = Later(), Later()
        called: list[Later] = []
        waiting = asyncio.ensure_future(_awaited(later))
        await asyncio.sleep(_SHORTLY_S)
        site.compare("whether a reply that is not set is awaited", False, waiting.done())
        if is_cancelled:
            later.cancel()
        later.set(one)
        later.set(two)
        site.compare("the awaited reply", None if is_cancelled else one, await waiting)
        ended.when_ended(called.append)
        ended.set(one)
        ended.cancel()
        site.compare("the calls at the end", [ended], called)
        site.compare("the reply of an ended one", one, await _awaited(ended))


async def _awaited(later: Later) -> Command | None:
    return await later


HELD_CONNECTIONS: Final = Inspection("held connections", held_connections)
