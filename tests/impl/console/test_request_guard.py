"""Tests what every request passes: its host, its origin, its size, and the headers of every response."""

import asyncio
from typing import Any

import httpx
import pytest
from starlette.responses import PlainTextResponse

from mqproof.impl.console.request_guard import (
    SECURITY_HEADERS,
    TARGET_BYTES_MAX,
    RequestGuard,
    is_allowed_host,
)

FORM = "application/x-www-form-urlencoded"


async def ask(method: str, url: str = "/", **headers: str) -> httpx.Response:
    app = RequestGuard(PlainTextResponse("page"), ["mq.example.org"])
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app), base_url="http://127.0.0.1:8080"
    ) as client:
        return await client.request(method, url, headers=names)


@pytest.mark.parametrize(
    ("host", "is_allowed"),
    [
        ("localhost", True),
        ("localhost:8080", True),
        ("127.0.0.1:8080", True),
        ("[::1]:8080", True),
        ("192.168.1.7", True),
        ("mq.example.org", True),
        ("mq.example.org.:80", True),
        ("attacker.example", False),
        ("127.0.0.1.attacker.example", False),
        ("localhost.attacker.example", False),
        ("mq.example.org.attacker.example", False),
        ("", False),
        ("localhost:", False),
        ("localhost:8080:9", False),
        ("local host", False),
        ("user@localhost", False),
        ("localhost/x", False),
    ],
)
def test_only_addresses_and_named_hosts_are_allowed(host: str, is_allowed: bool) -> None:
    assert is_allowed_host(host, {"localhost", "mq.example.org"}) is is_allowed


@pytest.mark.parametrize(
    ("method", "url", "headers", "status"),
    [
        ("GET", "/", {}, 200),
        ("HEAD", "/", {}, 200),
        ("GET", "/", {"Host": "MQ.example.org"}, 200),
        ("GET", "/", {"Host": "attacker.example"}, 421),
        ("GET", "/?a=" + "x" * TARGET_BYTES_MAX, {}, 414),
        ("PUT", "/", {}, 405),
        ("POST", "/", {"Content_Type": FORM}, 200),
        ("POST", "/", {"Content_Type": FORM + "; charset=utf-8", "Origin": "http://127.0.0.1:8080"}, 200),
        ("POST", "/", {"Content_Type": FORM, "Origin": "http://attacker.example"}, 403),
        ("POST", "/", {"Content_Type": FORM, "Origin": "null"}, 403),
        ("POST", "/", {"Content_Type": FORM, "Origin": "http://127.0.0.1:8081"}, 403),
        ("POST", "/", {"Content_Type": FORM, "Sec_Fetch_Site": "cross-site"}, 403),
        ("POST", "/", {"Content_Type": FORM, "Sec_Fetch_Site": "same-site"}, 403),
        ("POST", "/", {"Content_Type": "text/plain"}, 415),
        ("POST", "/", {}, 415),
    ],
)
def test_requests_that_another_site_could_cause_are_refused(
    method: str, url: str, headers: dict[str, Any], status: int
) -> None:
    answer = asyncio.run(ask(method, url, **headers))
    assert answer.status_code == status, answer.text
    assert {name: answer.headers[name] for name in SECURITY_HEADERS} == SECURITY_HEADERS
    assert answer.headers["cache-control"] == "no-store"


def test_two_host_headers_are_refused() -> None:
    async def run() -> int:
        status = 0

        async def send(message: Any) -> None:
            nonlocal status
            status = message.get("status", status)

        headers = [(b"host", b"localhost"), (b"host", b"attacker.example")]
        scope = {"type": "http", "method": "GET", "raw_path": b"/", "query_string": b"", "headers": headers}
        await RequestGuard(PlainTextResponse("page"))(scope, None, send)  # type: ignore[arg-type]  # reads no body
        return status

    assert asyncio.run(run()) == 400


def test_pages_load_nothing_from_other_hosts_and_run_no_script() -> None:
    policy = SECURITY_HEADERS["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; ")
    assert "script-src" not in policy
    assert "unsafe" not in policy
