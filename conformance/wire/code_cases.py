"""Cases for request codes without further description: known to some servers, or to none."""

from collections.abc import Iterator
from typing import Final

from mqproof.conformance.wire import chapters
from mqproof.conformance.wire.model import ANY, Call, Case, Expect, Manner, Request, Server, Since, Strength
from mqproof.conformance.wire.operations.undescribed import EXISTING, OF_CLIENTS, UNKNOWN, WITHOUT_HANDLER

_SOURCE: Final = chapters.REQUEST_CODES
_UNSUPPORTED: Final = Expect(codes=(3,))
_SLUGS: Final = {Server.BROKER: "code", Server.NAME_SERVER: "code-of-name-server"}
_SINCE: Final = {Server.BROKER: Since.V4_9, Server.NAME_SERVER: Since.V5}
"""The release since which a server answers unknown codes: the name server of 4.9 does not answer them."""


def code_cases() -> Iterator[Case]:
    for server in _SLUGS:
        yield from _unsupported(server)
    for code, name in EXISTING.items():
        title = f"{name} is answered"
        step = Call(Request(code), ANY)
        yield Case(
            f"remoting/code/{code}", title, Server.BROKER, _SOURCE, (step,), Since.V5, Strength.MAY
        )  # fmt: skip


def _unsupported(server: Server) -> Iterator[Case]:
    named = {**WITHOUT_HANDLER, **OF_CLIENTS, **{code: f"code {code}" for code in UNKNOWN}}
    for code, name in named.items():
        title = f"{name} is answered as not supported"
        yield _case(server, str(code), title, Call(Request(code), _UNSUPPORTED))
    behind = Call(Request(UNKNOWN[0]), _UNSUPPORTED)
    batch = Call(Request(UNKNOWN[0]), _UNSUPPORTED, Manner.BATCH)
    oneway = Call(Request(UNKNOWN[0]), _UNSUPPORTED, Manner.ONEWAY)
    yield _case(server, "batch", "each of five unknown requests in one write is answered", batch)
    yield _case(server, "goes-on", "a connection continues after an unknown request", behind, behind)
    # 4.9 answers, and its clients drop the answer.
    yield _case(server, "one-way", "an unknown one-way request is not answered", oneway, since=Since.V5)


def _case(server: Server, name: str, title: str, *steps: Call, since: Since | None = None) -> Case:
    return Case(
        f"remoting/{_SLUGS[server]}/{name}", title, server, _SOURCE, steps, since or _SINCE[server]
    )  # fmt: skip
