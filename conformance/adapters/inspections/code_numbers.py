"""Request codes sent as their numbers, response codes, and members of headers at their limits.

See docs/reference/protocol/framing.md, "Request codes", "Response codes" and "Operation headers".
"""

import json
from typing import Any, Final

from mqproof.conformance.adapters.inspections.raw_client import RawClient
from mqproof.conformance.adapters.inspections.site import CODES, HOST, Inspection, Site
from mqproof.conformance.wire import chapters
from mqproof.conformance.wire.frames import framed
from mqproof.conformance.wire.model import NOT_SUPPORTED, Server
from mqproof.conformance.wire.operations import ALL, pop, undescribed
from mqproof.impl.remoting import codes

_NOT_OURS: Final = frozenset({60, 61, 353, 400, 906, 908, *(each.code for each in pop.OPERATIONS)})
"""Described requests of 5.x that our servers do not know."""


async def code_numbers(site: Site) -> None:
    site.rule = chapters.REQUEST_CODES
    await _requests(site)
    site.rule = chapters.OPERATION_HEADERS
    await _quoted(site)


async def _requests(site: Site) -> None:
    """A server knows each of its codes, and none of the numbers beside them."""
    for server, to in ((Server.BROKER, site.broker), (Server.NAME_SERVER, site.name_server)):
        line = await RawClient(to).open(site.cluster.internet.machine(HOST))
        known = {each.code for each in ALL if each.server is server} - _NOT_OURS
        numbers = sorted({*known, *(code + step for code in known for step in (-1, 1)), *_NOT_OURS})
        waiting = {code: line.put(code, {}) for code in numbers}
        for code, answer in waiting.items():
            found = await answer
            what = f"whether the {server.value} knows request {code}"
            site.compare(what, code in known, found.code != NOT_SUPPORTED, found.remark)
            if code not in known:
                site.compare(f"the remark for {code}", f" request type {code} not supported", found.remark)
    names = {code: name for name, code in CODES.items() if code not in _NOT_OURS} | undescribed.OF_CLIENTS
    for code in range(-1, max(names) + 2):
        site.compare(f"the name of request {code}", names.get(code, f"CODE_{code}"), codes.request_name(code))


async def _quoted(site: Site) -> None:
    """The numbers of a JSON header may be texts; other texts end the connection."""
    line = await site.client("quoted")
    asked: dict[str, Any] = {"code": CODES["GET_BROKER_HA_STATUS"], "opaque": 7, "flag": 0, "version": 409}
    for name, value in asked.items():
        waiting = line.expect(7)
        line.write(framed(json.dumps({**asked, name: str(value)}).encode()))
        site.compare(f"the code of a request with {name} as a text", 0, (await waiting).code)


CODE_NUMBERS: Final = Inspection("code numbers", code_numbers)
