"""Tests the web application: rights, forms, failures, and the recovery from them.

Method: a broker, the console's application and a browser without sockets run in one event loop.
"""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from mqproof.impl.admin.admin import UnreachableError
from mqproof.impl.client.model import ClientError, MessageError, NoRouteError, RefusalError
from mqproof.impl.console import application, visit
from mqproof.impl.console.application import CHANGES, PAGES
from mqproof.impl.console.form_values import FORM_BYTES_MAX, FormError
from mqproof.impl.console.login_limit import ATTEMPTS_MAX
from mqproof.impl.console.request_guard import SECURITY_HEADERS
from mqproof.impl.remoting.address_server import parse
from mqproof.impl.runtime.network import Address
from mqproof.testing import EmbeddedBroker
from tests.impl.console.desk import ACCOUNTS, ADMIN, HOST, READER, browser_of, console_of, desk, text_of

COOKIE = "mqproof_console_8080"


def test_a_read_only_console_offers_no_change_and_refuses_each() -> None:
    async def run() -> None:
        async with desk() as d:
            await d.store("T", b"m")
            pages = [
                await d.html("/topic", name="T"),
                *[await d.html(path) for path in ("/topics", "/operations", "/consumers")],
            ]
            assert all("read-only" in page and 'method="post"' not in page for page in pages)
            for path in CHANGES:
                assert "This console is read-only. Start it with --allow-changes" in await d.post(
                    path, status=403
                )
            assert len(d.broker.messages("T")) == 1

    asyncio.run(run())


def test_a_form_needs_the_token_of_its_session() -> None:
    async def run() -> None:
        async with desk(allow_changes=True) as d:
            await d.store("T", b"m")
            own = await d.form_token()
            async with browser_of(d.console) as other:
                await other.get("/")
                foreign = d.console.sessions.form_token(
                    d.console.sessions.read(other.cookies[COOKIE]) or pytest.fail("no session")
                )
            for token in ("", "x" * 64, foreign):
                answer = await d.send("/topic/send", {"name": "T", "body": "b", "form_token": token})
                assert (answer.status_code, "load its page again" in answer.text) == (400, True)
            answer = await d.send("/topic/send", {"name": "T", "body": "b", "form_token": own})
            assert answer.status_code == 303
            assert len(d.broker.messages("T")) == 2

    asyncio.run(run())


def test_a_large_form_is_refused() -> None:
    async def run() -> None:
        async with desk(allow_changes=True) as d:
            answer = await d.send("/topic/send", {"body": "b" * FORM_BYTES_MAX})
            assert (answer.status_code, f"more than {FORM_BYTES_MAX} bytes" in answer.text) == (400, True)

    asyncio.run(run())


def test_the_cookie_is_signed_not_for_scripts_and_not_for_other_sites() -> None:
    async def run() -> None:
        async with desk() as d:
            answer = await d.browser.get("/")
            cookie = answer.headers["set-cookie"]
            assert {"HttpOnly", "Path=/", "SameSite=strict", "Max-Age=28800"} <= set(cookie.split("; "))
            assert "set-cookie" not in (await d.browser.get("/")).headers
            d.browser.cookies.set(COOKIE, "forged", "127.0.0.1")
            assert "set-cookie" in (await d.browser.get("/")).headers

    asyncio.run(run())


def test_with_https_only_https_has_the_cookie() -> None:
    async def run() -> None:
        async with browser_of(
            console_of([Address("127.0.0.1", 1)], certificate="c", private_key="k")
        ) as browser:
            cookie = (await browser.get("/nothing")).headers["set-cookie"]
            assert cookie.startswith("__Host-mqproof_console_8080=")
            assert "Secure" in cookie.split("; ")

    asyncio.run(run())


def test_brokers_with_accounts_require_a_login_whose_rights_the_pages_have(tmp_path: Path) -> None:
    async def run() -> None:
        async with desk(accounts=ACCOUNTS, store=tmp_path, allow_changes=True) as d:
            for path in PAGES:
                answer = await d.browser.get(path)
                assert (answer.status_code, answer.headers["location"]) == (303, "/login"), path
            for path in CHANGES:
                answer = await d.send(path, {"form_token": await d.form_token()})
                assert (answer.status_code, answer.headers.get("location")) == (303, "/login"), path
            answer = await d.log_in((ADMIN[0], "wrong"))
            assert (answer.status_code, "secret key is wrong" in answer.text) == (403, True)
            before = d.browser.cookies[COOKIE]
            assert (await d.log_in(READER)).status_code == 303
            assert d.browser.cookies[COOKIE].split(".")[0] != before.split(".")[0]
            assert READER[0] in await d.get("/topics")
            assert "no status" in await d.get("/cluster")
            assert "the console has none of its own. Start it with --account FILE." in await d.get("/")
            assert not await d.console.may_sample()
            text = await d.post("/topic/save", status=403, name="T", cluster="DefaultCluster")
            assert "AclException" in text
            await d.post("/logout")
            assert (await d.browser.get("/topics")).headers["location"] == "/login"
            assert (await d.log_in(ADMIN)).status_code == 303
            assert "Topic T is saved" in await d.post("/topic/save", name="T", cluster="DefaultCluster")
            assert "secret" not in await d.html("/operations")

    asyncio.run(run())


def test_failed_logins_are_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        async with desk(accounts=ACCOUNTS, store=tmp_path) as d:
            for _ in range(ATTEMPTS_MAX):
                d.console.login_limit.failed()
            answer = await d.log_in(ADMIN)
            assert (answer.status_code, "Too many failed logins" in answer.text) == (429, True)

    asyncio.run(run())


def test_a_public_console_without_accounts_shows_nothing() -> None:
    async def run() -> None:
        async with desk(host="0.0.0.0") as d:
            assert (await d.browser.get("/")).headers["location"] == "/login"
            assert "check no accounts, so no login is possible" in await d.get("/login", status=403)

    asyncio.run(run())


def test_without_login_pages_have_the_account_of_the_console(tmp_path: Path) -> None:
    async def run() -> None:
        from mqproof.impl.remoting.signing import Credentials

        async with desk(
            accounts=ACCOUNTS, store=tmp_path, needs_login=False, account=Credentials(*ADMIN)
        ) as d:
            assert "V4_9_8" in await d.get("/cluster")
            assert "every client that can connect has access" in await d.get("/operations")

    asyncio.run(run())


def test_when_the_name_server_is_gone_pages_say_so_and_recover(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(visit, "PROTECTION_S", 0.0)

    async def run() -> None:
        async with EmbeddedBroker(sockets=True) as broker:
            console = console_of(parse(broker.name_server))
            known = console.config
            async with browser_of(console) as browser:
                assert (await browser.get("/cluster")).status_code == 200
                console.config = replace(known, name_servers=[Address("127.0.0.1", 1)])
                for path in ("/cluster", "/topics", "/consumers", "/producers"):
                    answer = await browser.get(path)
                    assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
                    assert "The cluster does not answer" in text_of(answer.text)
                    assert (
                        answer.headers["content-security-policy"]
                        == SECURITY_HEADERS["Content-Security-Policy"]
                    )
                await console.sampler.round()
                assert "The cluster cannot be sampled" in text_of((await browser.get("/")).text)
                assert "no answer" in text_of((await browser.get("/operations")).text)
                console.config = known
                assert (await browser.get("/cluster")).status_code == 200
                await console.sampler.round()
                assert "cannot be sampled" not in text_of((await browser.get("/")).text)

    asyncio.run(run())


def test_a_console_that_never_reached_a_broker_shows_nothing() -> None:
    """It does not know whether the brokers check accounts."""

    async def run() -> None:
        async with browser_of(console_of([Address("127.0.0.1", 1)])) as browser:
            for path in (*PAGES, "/login"):
                assert (await browser.get(path)).status_code == 503, path

    asyncio.run(run())


@pytest.mark.parametrize(
    ("error", "status", "text"),
    [
        (FormError("n is 'x'"), 400, "N is 'x'."),
        (MessageError("the body is empty"), 400, "This message cannot be sent"),
        (NoRouteError("the name server knows no topic T"), 404, "Not found"),
        (RefusalError("refused", 1), 403, "A server refused the request"),
        (UnreachableError("no server"), 503, "works again as soon as a server answers"),
        (ClientError("invalid answer"), 502, "Invalid answer"),
        (TimeoutError(), 504, "did not answer in 25 s"),
    ],
)
def test_failures_are_pages(
    monkeypatch: pytest.MonkeyPatch, error: Exception, status: int, text: str
) -> None:
    async def failing(_: visit.Visit) -> None:
        raise error

    monkeypatch.setitem(application.PAGES, "/topics", failing)

    async def run() -> None:
        async with desk(needs_login=False) as d:
            assert text in await d.get("/topics", status=status)

    asyncio.run(run())


def test_a_page_that_takes_too_long_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    async def waiting(_: visit.Visit) -> None:
        await asyncio.Event().wait()

    monkeypatch.setitem(application.PAGES, "/topics", waiting)
    monkeypatch.setattr(application, "PAGE_S", 0.01)

    async def run() -> None:
        async with browser_of(console_of([], needs_login=False)) as browser:
            assert (await browser.get("/topics")).status_code == 504

    asyncio.run(run())


def test_unknown_addresses_and_methods_are_pages_too() -> None:
    async def run() -> None:
        async with browser_of(console_of([])) as browser:
            assert "There is no such page." in text_of((await browser.get("/nothing")).text)
            form = {"Content-Type": "application/x-www-form-urlencoded"}
            assert (await browser.post("/topics", headers=form)).status_code == 405
            assert (await browser.get("/topic/save")).status_code == 405
            assert (await browser.get("/healthz")).text == "ok\n"
            assert (await browser.get("/console.css")).headers["content-type"].startswith("text/css")
            assert (await browser.get("/favicon.svg")).headers["content-type"] == "image/svg+xml"
            assert (await browser.get("/static/../application.py")).status_code == 404
            assert (await browser.get("/", headers={"Host": "attacker.example"})).status_code == 421
            assert str(browser.base_url).startswith(HOST)

    asyncio.run(run())


def test_no_page_fails_on_any_value_of_its_query() -> None:
    async def run() -> None:
        async with desk(allow_changes=True) as d:
            await d.store("T", b"m")
            names = (
                "name",
                "group",
                "topic",
                "id",
                "by",
                "key",
                "kind",
                "page",
                "minutes",
                "refresh",
                "begin",
                "search",
                "client",
                "since",
            )
            for value in ("", "\u202e", "-1", "9" * 30, "T", "%", "2026-05-01T08:00", "NaN"):
                for path in PAGES:
                    answer = await d.browser.get(path, params=dict.fromkeys(names, value))
                    assert answer.status_code in (200, 400, 403, 404, 502), (path, value, answer.text)

    asyncio.run(run())
