"""Control requests: read in any pieces, bounded, and refused if a page in a browser may have sent them."""

import pytest

from mqproof.impl.embedded.control_request import (
    BODY_BYTES_MAX,
    HEAD_BYTES_MAX,
    BadControlRequestError,
    ControlRequest,
    read_control_request,
)


def head(line: str = "GET /health HTTP/1.1", *fields: str) -> bytes:
    return "\r\n".join([line, *fields, "", ""]).encode()


HOST = "Host: 127.0.0.1:8080"
JSON = "Content-Type: application/json"


def test_a_request_is_read_when_its_last_byte_has_arrived() -> None:
    whole = head("POST /advance?x=1&y=%25a HTTP/1.1", HOST, JSON, "Content-Length: 2") + b"{}"
    for size in range(len(whole)):
        assert read_control_request(whole[:size]) is None
    expected = ControlRequest("POST", "/advance", {"x": "1", "y": "%a"}, b"{}")
    assert read_control_request(whole) == expected
    assert read_control_request(whole + b"more") == expected


@pytest.mark.parametrize("host", ["localhost:1", "127.0.0.1", "127.1.2.3:80", "[::1]:80"])
def test_loopback_hosts_are_accepted(host: str) -> None:
    request = read_control_request(head("GET /health HTTP/1.1", f"Host: {host}"))
    assert request == ControlRequest("GET", "/health", {}, b"")


@pytest.mark.parametrize(
    ("data", "status", "why"),
    [
        (b"x" * HEAD_BYTES_MAX, "431", "too long"),
        (head("GET /health", HOST), "400", "head is not"),
        (head("GET health HTTP/1.1", HOST), "400", "expected METHOD"),
        (head("GET / SPDY/3", HOST), "400", "expected METHOD"),
        ("GÉT / HTTP/1.1\r\n\r\n".encode(), "400", "head is not"),
        (head(), "403", "host is ''"),
        (head("GET / HTTP/1.1", "Host: evil.example"), "403", "'evil.example'"),
        (head("GET / HTTP/1.1", HOST, "Origin: http://evil.example"), "403", "browser"),
        (head("POST / HTTP/1.1", HOST, "Transfer-Encoding: chunked"), "411", "Content-Length"),
        (head("POST / HTTP/1.1", HOST, "Content-Length: -1"), "400", "'-1'"),
        (head("POST / HTTP/1.1", HOST, "Content-Length: 9999999999"), "400", "9999999999"),
        (head("POST / HTTP/1.1", HOST, JSON, f"Content-Length: {BODY_BYTES_MAX + 1}"), "413", "at most"),
        (head("POST / HTTP/1.1", HOST, "Content-Length: 2"), "415", "application/json"),
        (head("POST / HTTP/1.1", HOST, "Content-Length: 2", "Content-Type: text/plain"), "415", "json"),
        (head("GET /messages?topic HTTP/1.1", HOST), "400", "query"),
        (head("GET /messages?a=1&a=2 HTTP/1.1", HOST), "400", "twice"),
        (head("GET /messages?a=%ff HTTP/1.1", HOST), "400", "query"),
        (head(f"GET /messages?{'&'.join(f'a{n}=1' for n in range(17))} HTTP/1.1", HOST), "400", "query"),
    ],
)  # fmt: skip
def test_other_requests_are_refused(data: bytes, status: str, why: str) -> None:
    with pytest.raises(BadControlRequestError, match=why) as caught:
        read_control_request(data)
    assert caught.value.status.startswith(status)
