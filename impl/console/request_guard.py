"""What every request passes first: the checks of its host and origin, and the headers of every response.

A page of another site can make a browser send requests to the console. So the console answers only under its
own names (DNS rebinding), and a form must come from its own pages (cross-site requests).
"""

import re
from collections.abc import Collection, Iterable
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

TARGET_BYTES_MAX: Final = 4096
"""The longest path with its query."""

SECURITY_HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}

_HOST: Final = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(:[0-9]{1,5})?")
_FORM: Final = "application/x-www-form-urlencoded"


class RequestGuard:
    """Refuses requests that the console must not answer, and adds the headers to every response."""

    def __init__(self, app: ASGIApp, allowed_hosts: Iterable[str] = ()) -> None:
        self._app = app
        self._hosts = frozenset(host.lower() for host in (*allowed_hosts, "localhost"))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(SECURITY_HEADERS)
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        answer: ASGIApp = self._app
        if refused := problem(scope, self._hosts):
            status, reason = refused
            answer = PlainTextResponse(f"{reason}\n", status)
        await answer(scope, receive, send_with_headers)


def problem(scope: Scope, hosts: Collection[str]) -> tuple[int, str] | None:
    """Return the status and the reason with which a request is refused; None if it is not."""
    headers = Headers(scope=scope)
    if len(scope["raw_path"]) + len(scope["query_string"]) > TARGET_BYTES_MAX:
        return 414, f"the address has more than {TARGET_BYTES_MAX} bytes"
    if len(given := headers.getlist("host")) != 1:
        return 400, f"{len(given)} Host headers, one expected"
    host = given[0].lower()
    if not is_allowed_host(host, hosts):
        name = host if host.isprintable() else repr(host)
        return 421, f"the console does not answer for host {name[:100]}: name it with --allowed-host"
    if scope["method"] in ("GET", "HEAD"):
        return None
    if scope["method"] != "POST":
        return 405, "GET, HEAD or POST expected"
    if headers.get("content-type", "").partition(";")[0].strip().lower() != _FORM:
        return 415, f"Content-Type {_FORM} expected"
    origin = headers.get("origin")
    if origin is not None and urlsplit(origin).netloc.lower() != host:
        return 403, "the form comes from another site"
    if headers.get("sec-fetch-site", "same-origin") != "same-origin":
        return 403, "the form comes from another site"
    return None


def is_allowed_host(host: str, names: Collection[str]) -> bool:
    """Return whether the console may answer under this Host header.

    An IP address is always allowed: a name of another site that leads here has that name in its header.
    """
    found = _HOST.fullmatch(host)
    if found is None:
        return False
    name = found[1].removeprefix("[").removesuffix("]").removesuffix(".")
    try:
        ip_address(name)
    except ValueError:
        return name in names
    return True
