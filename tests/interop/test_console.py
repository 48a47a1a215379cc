"""Tests the console at Apache's servers: every page, its changes, and the login with accounts.

Source: docs/reference/protocol/administration.md, "Administration commands".
"""

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from mqproof.client import (
    ConsumeFrom,
    Producer,
    PushConsumer,
    PushConsumerConfig,
    RetryLater,
    connect,
    new_message,
)
from mqproof.conformance.adapters.apache import servers
from mqproof.conformance.adapters.apache.servers import ApacheServer, home, running
from mqproof.impl.console.cluster_access import Protection
from mqproof.impl.console.visit import Console
from mqproof.impl.runtime.network import Address
from tests.impl.console.desk import browser_of, console_of, text_of

pytestmark = pytest.mark.apache

ADMIN = ("rocketmq-admin", "12345678")
ACCOUNTS = f"""
accounts:
- accessKey: {ADMIN[0]}
  secretKey: '{ADMIN[1]}'
  admin: true
"""
_AUTHENTICATION = "org.apache.rocketmq.auth.authentication.provider"
_AUTHORIZATION = "org.apache.rocketmq.auth.authorization.provider"
CONFIG = PushConsumerConfig(consume_from=ConsumeFrom.FIRST_OFFSET)


async def read(browser: httpx.AsyncClient, path: str, **query: Any) -> str:
    answer = await browser.get(path, params=query or None)
    assert answer.status_code == 200, (path, text_of(answer.text))
    return text_of(answer.text)


async def change(console: Console, browser: httpx.AsyncClient, path: str, **values: Any) -> str:
    """Send a form, and return the text of the page that follows."""
    (cookie,) = browser.cookies.values()
    session = console.sessions.read(cookie)
    assert session is not None
    answer = await browser.post(path, data={**values, "form_token": console.sessions.form_token(session)})
    assert answer.status_code == 303, (path, text_of(answer.text))
    return text_of((await browser.get(answer.headers["location"])).text)


def test_every_page_shows_an_apache_cluster_and_changes_it(apache: tuple[ApacheServer, ApacheServer]) -> None:
    names, _ = apache

    async def run() -> None:
        console = console_of([names.address], allow_changes=True)
        async with browser_of(console) as browser, connect(str(names.address)) as session:
            assert "apache-a master" in await read(browser, "/cluster")
            saved = await change(
                console,
                browser,
                "/topic/save",
                name="Desk",
                cluster="DefaultCluster",
                read_queues=2,
                write_queues=2,
            )
            assert "Topic Desk is saved" in saved
            await until(browser, "2 2 RW (6)", "/topic", name="Desk")
            sent = await change(
                console, browser, "/topic/send", name="Desk", body="hello", tag="t", keys="k-1"
            )
            assert "SEND_OK" in sent
            for number in range(2, 9):  # 4.9 resets only groups that have an offset in every queue
                await Producer(session).send_or_raise(new_message("Desk", b"again", keys=f"k-{number}"))
            # 4.9.5 does not report its state in its first seconds, and no state of replication.
            assert "brokerClusterName DefaultCluster" in await read(browser, "/broker", name="apache-a", id=0)
            await dead_letters(str(names.address), 8)
            await until(browser, "8 messages", "/messages", topic="Desk")
            await until(browser, "1 message ", "/messages", by="key", topic="Desk", key="k-1")
            await until(browser, "8 dead letters", "/dead-letters", group="desk_group")
            html = (await browser.get("/dead-letters", params={"group": "desk_group"})).text
            ids = re.findall(r'name="id" value="(\w+)"', html)
            text = await change(console, browser, "/dead-letters/resend", group="desk_group", id=ids[0])
            assert "SEND_OK: a copy is in %RETRY%desk_group@apache-a:" in text
            await until(browser, "desk_group", "/consumers")
            text = await read(browser, "/consumer", group="desk_group")
            assert "Progress" in text
            text = await change(
                console, browser, "/consumer/reset", group="desk_group", topic="Desk", target="begin"
            )
            assert "desk_group continues in 2 queues of Desk, at offsets 0 to 0" in text
            message = re.findall(
                r'href="/message\?id=(\w+)"', (await browser.get("/messages?topic=Desk")).text
            )[0]
            assert "desk_group NOT_ONLINE" in await read(browser, "/message", id=message)
            assert f"{names.address} answers" in await read(browser, "/operations")
            await read(browser, "/producers")
            await console.sampler.round()
            assert (console.sampler.problem, "Desk" in console.sampler.history.names("topic")) == ("", True)
            assert "Topic Desk is deleted" in await change(
                console, browser, "/topic/delete", name="Desk", confirm="Desk"
            )

    asyncio.run(run())


async def until(browser: httpx.AsyncClient, text: str, path: str, **query: Any) -> None:
    """Load a page until it has the text: a broker registers topics and indexes messages after a while."""
    async with asyncio.timeout(60):
        while True:
            answer = await browser.get(path, params=query)
            if text in text_of(answer.text):
                return
            await asyncio.sleep(0.2)


async def dead_letters(name_server: str, count: int) -> None:
    """Let a member of the group move every message to its dead letters."""
    failed = asyncio.Semaphore(0)

    async def listener(_: Any) -> RetryLater:
        failed.release()
        return RetryLater(delay_level=-1)

    async with (
        connect(name_server) as session,
        PushConsumer(session, "desk_group", listener, CONFIG) as consumer,
    ):
        await consumer.subscribe("Desk")
        async with asyncio.timeout(60):
            for _ in range(count):
                await failed.acquire()
        await asyncio.sleep(1)  # the answers of the listener are sent, and offsets are committed


@pytest.fixture(scope="module")
def with_accounts(release: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Address]:
    """Start a name server and a broker that checks accounts; the form of accounts depends on the release."""
    folder: Path = tmp_path_factory.mktemp("accounts")
    names = servers.name_server(release, folder)
    properties = {"aclEnable": "true"}
    if release.startswith("5"):
        properties = {
            "authenticationEnabled": "true",
            "authorizationEnabled": "true",
            "authenticationProvider": f"{_AUTHENTICATION}.DefaultAuthenticationProvider",
            "authenticationMetadataProvider": f"{_AUTHENTICATION}.LocalAuthenticationMetadataProvider",
            "authorizationProvider": f"{_AUTHORIZATION}.DefaultAuthorizationProvider",
            "authorizationMetadataProvider": f"{_AUTHORIZATION}.LocalAuthorizationMetadataProvider",
            "initAuthenticationUser": f'{{"username":"{ADMIN[0]}","password":"{ADMIN[1]}"}}',
            "innerClientAuthenticationCredentials": f'{{"accessKey":"{ADMIN[0]}","secretKey":"{ADMIN[1]}"}}',
        }
    (home(folder) / "conf" / "plain_acl.yml").write_text(ACCOUNTS)
    with running(names, servers.broker(release, folder, names.address, properties=properties)):
        yield names.address


def test_a_login_needs_the_right_secret_of_an_account(with_accounts: Address) -> None:
    async def run() -> None:
        console = console_of([with_accounts])
        assert await console.protection() is Protection.ACCOUNTS
        async with browser_of(console) as browser:
            assert (await browser.get("/cluster")).headers["location"] == "/login"

            async def log_in(access_key: str, secret_key: str) -> httpx.Response:
                (cookie,) = browser.cookies.values()
                session = console.sessions.read(cookie)
                assert session is not None
                token = console.sessions.form_token(session)
                form = {"access_key": access_key, "secret_key": secret_key, "form_token": token}
                return await browser.post("/login", data=form)

            for wrong in ((ADMIN[0], "wrong-secret"), ("nobody-knows", ADMIN[1])):
                answer = await log_in(*wrong)
                assert (answer.status_code, "secret key is wrong" in answer.text) == (403, True), text_of(
                    answer.text
                )
            assert (await log_in(*ADMIN)).status_code == 303
            assert "apache-a master" in await read(browser, "/cluster")
            assert ADMIN[1] not in await read(browser, "/operations")

    asyncio.run(run())
