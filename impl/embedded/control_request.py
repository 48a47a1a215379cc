"""A request of the control interface: an HTTP head and a JSON body. Pure: bytes to a request.

Browsers can reach the loopback interface for any page they show. Therefore a request must name this host,
have no origin, and declare its body as JSON, which no page can send to another origin without permission.
"""

from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final
from urllib.parse import parse_qsl, urlsplit

HEAD_BYTES_MAX: Final = 8192
BODY_BYTES_MAX: Final = 64 << 10
_FIELDS_MAX: Final = 16
_END: Final = b"\r\n\r\n"


class BadControlRequestError(Exception):
    """The request is refused. `status` is the HTTP status, and the message says why."""

    def __init__(self, status: str, why: str) -> None:
        super().__init__(why)
        self.status = status


@dataclass(frozen=True, slots=True)
class ControlRequest:
    method: str
    path: str
    query: dict[str, str]
    body: bytes
    """JSON; empty if the request has no body."""


def read_control_request(buffer: bytes | bytearray) -> ControlRequest | None:
    """Return the request at the front of the buffer; None while it is not complete.

    Raises:
        BadControlRequestError: it is too long or malformed, or may come from a page in a browser.
    """
    end = buffer.find(_END, 0, HEAD_BYTES_MAX)
    if end < 0:
        if len(buffer) >= HEAD_BYTES_MAX:
            raise BadControlRequestError("431 Request Header Fields Too Large", "the head is too long")
        return None
    try:
        first, *lines = bytes(buffer[:end]).decode("ascii").split("\r\n")
        method, target, version = first.split(" ")
        fields = {
            name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)
        }
    except ValueError:
        raise _malformed("the head is not that of an HTTP request") from None
    if not version.startswith("HTTP/1.") or not target.startswith("/"):
        raise _malformed("expected METHOD /PATH HTTP/1.1")
    _check_origin(fields)
    body = _body(buffer, end + len(_END), fields)
    if body is None:
        return None
    return ControlRequest(method, *_path_and_query(target), body)


def _malformed(why: str) -> BadControlRequestError:
    return BadControlRequestError("400 Bad Request", why)


def _path_and_query(target: str) -> tuple[str, dict[str, str]]:
    parts = urlsplit(target)
    try:
        pairs = parse_qsl(
            parts.query, keep_blank_values=True, strict_parsing=bool(parts.query), max_num_fields=_FIELDS_MAX,
            errors="strict",
        )  # fmt: skip
    except ValueError as error:
        raise _malformed(f"the query cannot be read: {error}") from None
    query = dict(pairs)
    if len(query) < len(pairs):
        raise _malformed("the query names a field twice")
    return parts.path, query


def _check_origin(fields: dict[str, str]) -> None:
    host = urlsplit(f"//{fields.get('host', '')}").hostname or ""
    if not _is_loopback(host):
        raise BadControlRequestError("403 Forbidden", f"the host is {host!r}: expected a loopback address")
    if "origin" in fields:
        raise BadControlRequestError("403 Forbidden", "requests of pages in a browser are refused")


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _body(buffer: bytes | bytearray, start: int, fields: dict[str, str]) -> bytes | None:
    """Return the body; None while it is not complete."""
    if "transfer-encoding" in fields:
        raise BadControlRequestError("411 Length Required", "a body needs a Content-Length")
    length = fields.get("content-length", "0")
    if not (length.isascii() and length.isdecimal() and len(length) < 10):
        raise _malformed(f"Content-Length is {length[:20]!r}")
    size = int(length)
    if size > BODY_BYTES_MAX:
        raise BadControlRequestError("413 Content Too Large", f"a body has at most {BODY_BYTES_MAX} bytes")
    kind = fields.get("content-type", "").partition(";")[0].strip().lower()
    if size and kind != "application/json":
        raise BadControlRequestError(
            "415 Unsupported Media Type", "Content-Type: application/json is expected"
        )
    return bytes(buffer[start : start + size]) if len(buffer) >= start + size else None
