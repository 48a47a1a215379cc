"""Inspections of our client: each one is a part of `client_calls`, on scripted servers of its own."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final

from mqproof.conformance.adapters.client_calls import (
    broadcasting,
    commits,
    failing_calls,
    holding,
    lasting_connections,
    producing,
    pulling,
    rounds,
    sessions,
    settings_files,
    whole_events,
    wrong_routes,
)
from mqproof.conformance.adapters.client_calls.expectations import Expectations
from mqproof.conformance.adapters.client_calls.scripted_servers import ScriptedServers
from mqproof.conformance.adapters.inspections.site import Inspection, Site
from mqproof.conformance.wire import chapters

_BLOCKING_SENDS: Final = 'docs/explanation/client-speed.md, "How a blocking send works"'
_SETTINGS: Final = 'docs/how-to/client.md, "Name, settings and hooks of a client"'
_PART_S: Final = 3000.0
"""The simulated time after which a part is ended."""


_Part = Callable[[Expectations, ScriptedServers], Coroutine[Any, Any, None]]


def _of(name: str, part: _Part, rule: str) -> Inspection:
    """Return the inspection of a part; its differences name the section of the documentation."""

    async def look(site: Site) -> None:
        site.rule = rule
        expect = Expectations()
        loop: Any = asyncio.get_running_loop()
        servers = ScriptedServers(loop, 0)
        await servers.start()
        try:
            async with asyncio.timeout(_PART_S):
                await part(expect, servers)
        except Exception as error:  # whatever a defect of the client raises is a difference
            expect.failed(name, error)
        await servers.stop()
        for each in expect.wrong:
            site.report(each.text)

    return Inspection(name, look)


COMMITS: Final = _of("commits of the client", commits.judge, chapters.OFFSET_REQUESTS)
BROADCASTING: Final = _of("members that broadcast", broadcasting.judge, chapters.BROADCAST_OFFSETS)
ROUNDS: Final = _of("rounds of the client", rounds.judge, chapters.PUSH_CONSUMERS)
SESSIONS: Final = _of("sessions of the client", sessions.judge, chapters.CLIENT_REGISTRATION)
PRODUCING: Final = _of("edges of the producer", producing.judge, chapters.QUEUE_CHOICE)
PULLING: Final = _of("pulls of the client", pulling.judge, chapters.PULL_REQUESTS)
HOLDING: Final = _of("messages that a consumer holds", holding.judge, chapters.PUSH_CONSUMERS)
SIZES: Final = _of("sizes that a consumer holds", holding.sizes, chapters.COMPRESSION)
LASTING: Final = _of("connections of threads", lasting_connections.judge, _BLOCKING_SENDS)
SETTINGS_FILES: Final = _of("settings of the client", settings_files.judge, _SETTINGS)
FAILING: Final = _of("failing requests of the client", failing_calls.judge, chapters.NAME_SERVERS_AND_ROUTES)
WRONG_ROUTES: Final = _of("routes at their limits", wrong_routes.judge, chapters.NAME_SERVERS_AND_ROUTES)
WHOLE_EVENTS: Final = _of("events of the client", whole_events.judge, chapters.EVENTS_OF_A_CLIENT)
CLIENT_PARTS: Final = (
    FAILING, WHOLE_EVENTS, WRONG_ROUTES, COMMITS, BROADCASTING, ROUNDS, SESSIONS, PRODUCING, PULLING,
    HOLDING, SIZES, LASTING, SETTINGS_FILES,
)  # fmt: skip
