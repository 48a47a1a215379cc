"""The head of an HTTP request, as far as a page of metrics needs it. Pure: bytes to a path."""

from dataclasses import dataclass
from typing import Final

HEAD_BYTES_MAX: Final = 8192
_END: Final = b"\r\n\r\n"


class BadRequestError(Exception):
    """The request is refused. `status` is the HTTP status."""

    def __init__(self, status: str) -> None:
        super().__init__(status)
        self.status = status


@dataclass(frozen=True, slots=True)
class HttpRequest:
    path: str
    """Without the query."""
    wants_body: bool
    """False for HEAD: the answer has no body."""


def read_request(buffer: bytes | bytearray) -> HttpRequest | None:
    """Return the request at the front of the buffer; None if its head is not complete.

    Header fields and a body are not read, because no page depends on them.

    Raises:
        BadRequestError: the head is too long, malformed, or has another method than GET and HEAD.
    """
    end = buffer.find(_END, 0, HEAD_BYTES_MAX)
    if end < 0:
        if len(buffer) >= HEAD_BYTES_MAX:
            raise BadRequestError("431 Request Header Fields Too Large")
        return None
    line = bytes(buffer[: buffer.index(b"\r\n")])
    try:
        method, target, version = line.decode("ascii").split(" ")
    except ValueError:
        raise BadRequestError("400 Bad Request") from None
    if not version.startswith("HTTP/1.") or not target.startswith("/"):
        raise BadRequestError("400 Bad Request")
    if method not in ("GET", "HEAD"):
        raise BadRequestError("405 Method Not Allowed")
    return HttpRequest(target.partition("?")[0], method == "GET")
