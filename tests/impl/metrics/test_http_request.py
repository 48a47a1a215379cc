"""Tests the reading of HTTP requests: complete, in parts, malformed and too long."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqproof.impl.metrics.http_request import HEAD_BYTES_MAX, BadRequestError, HttpRequest, read_request

GET = b"GET /metrics?x=1 HTTP/1.1\r\nHost: h\r\n\r\n"


def test_a_request_is_read_once_its_head_is_complete() -> None:
    for end in range(len(GET)):
        assert read_request(GET[:end]) is None
    assert read_request(GET) == HttpRequest("/metrics", wants_body=True)
    assert read_request(GET + b"more") == HttpRequest("/metrics", wants_body=True)


def test_head_wants_no_body() -> None:
    assert read_request(b"HEAD / HTTP/1.0\r\n\r\n") == HttpRequest("/", wants_body=False)


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"POST / HTTP/1.1", "405"),
        (b"GET / HTTP/2", "400"),
        (b"GET metrics HTTP/1.1", "400"),
        (b"GET  /  HTTP/1.1", "400"),
        (b"GET", "400"),
        (b"", "400"),
        (b"\xff\xfe / HTTP/1.1", "400"),
    ],
)
def test_what_is_not_a_request_is_refused(head: bytes, status: str) -> None:
    with pytest.raises(BadRequestError, match=status):
        read_request(head + b"\r\n\r\n")


@given(st.binary(max_size=200) | st.text("GETHAD /1.\r\n: ", max_size=40).map(str.encode))
def test_no_bytes_cause_another_error(data: bytes) -> None:
    try:
        request = read_request(data)
    except BadRequestError:
        return
    assert request is None or request.path.startswith("/")


def test_a_head_that_does_not_end_is_refused_at_the_limit() -> None:
    assert read_request(b"x" * (HEAD_BYTES_MAX - 1)) is None
    with pytest.raises(BadRequestError, match="431"):
        read_request(b"x" * HEAD_BYTES_MAX)
