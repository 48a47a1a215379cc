"""A broker and a console in this process, and a browser that reads and sends its pages without a socket."""

import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from typing import Any, Final

import httpx

from mqproof.client import Producer, Session, new_message
from mqproof.impl.console.application import create_app
from mqproof.impl.console.config import ConsoleConfig
from mqproof.impl.console.visit import Console
from mqproof.impl.embedded.embedded_broker import EmbeddedBroker
from mqproof.impl.remoting.address_server import NameServers, parse
from mqproof.impl.runtime.network import AsyncioNetwork
from mqproof.impl.runtime.runtime import production

HOST: Final = "http://127.0.0.1:8080"
ADMIN: Final = ("the_admin", "secret-of-admin")
READER: Final = ("a_reader", "secret-of-reader")
ACCOUNTS: Final = f"""
accounts:
- accessKey: {ADMIN[0]}
  secretKey: {ADMIN[1]}
  admin: true
- accessKey: {READER[0]}
  secretKey: {READER[1]}
  defaultTopicPerm: SUB
  defaultGroupPerm: SUB
- accessKey: from_here
  secretKey: never-checked
  whiteRemoteAddress: 127.0.0.1
"""


@dataclass(frozen=True, slots=True)
class Desk:
    broker: EmbeddedBroker
    session: Session
    console: Console
    browser: httpx.AsyncClient

    async def get(self, path: str, *, status: int = 200, **query: Any) -> str:
        """Return the text that a page shows, after checking its status."""
        return text_of(await self.html(path, status=status, **query))

    async def html(self, path: str, *, status: int = 200, **query: Any) -> str:
        answer = await self.browser.get(path, params=query or None)
        assert answer.status_code == status, (path, answer.status_code, text_of(answer.text))
        return answer.text

    async def post(self, path: str, *, status: int = 303, **values: Any) -> str:
        """Send a form with the token of this session. Returns the text of the page that follows."""
        answer = await self.send(path, {**values, "form_token": await self.form_token()})
        assert answer.status_code == status, (path, answer.status_code, text_of(answer.text))
        if status == 303:
            answer = await self.browser.get(answer.headers["location"])
        return text_of(answer.text)

    async def send(self, path: str, values: Mapping[str, Any], **headers: str) -> httpx.Response:
        """Send a form as it is."""
        return await self.browser.post(path, data=dict(values), headers=headers)

    async def form_token(self) -> str:
        page = (await self.browser.get("/messages", params={"by": "id"}, follow_redirects=True)).text
        page += (await self.browser.get("/operations", follow_redirects=True)).text
        found = re.search(r'name="form_token" value="(\w+)"', page)
        if found is None:  # a read-only console has no form: its token is derived from the cookie
            session = self.console.sessions.read(self.browser.cookies["mqproof_console_8080"])
            assert session is not None
            return self.console.sessions.form_token(session)
        return found[1]

    async def log_in(self, account: tuple[str, str]) -> httpx.Response:
        access_key, secret_key = account
        values = {"access_key": access_key, "secret_key": secret_key, "form_token": await self.form_token()}
        return await self.send("/login", values)

    async def store(self, topic: str, *bodies: bytes, tag: str | None = None, keys: str = "") -> None:
        """Send messages, which create the topic."""
        producer = Producer(self.session)
        for body in bodies:
            await producer.send_or_raise(new_message(topic, body, tag=tag, keys=keys.split()))


@asynccontextmanager
async def desk(
    *, name_servers: str = "", accounts: str = "", store: Path | None = None, **config: Any
) -> AsyncIterator[Desk]:
    """Start a broker, with accounts if there are any, and a console for it or for other name servers."""
    properties = {}
    if accounts:
        assert store is not None
        (store / "config").mkdir(parents=True)
        (store / "config" / "plain_acl.yml").write_text(accounts)
        (store / "config" / "plain_acl.yml").chmod(0o600)
        properties = {"aclEnable": "true"}
    async with (
        EmbeddedBroker(sockets=True, store=store, properties=properties) as broker,
        broker.client() as session,
    ):
        console = console_of(parse(name_servers or broker.name_server), **config)
        async with browser_of(console) as browser:
            yield Desk(broker, session, console, browser)


def console_of(name_servers: NameServers, **config: Any) -> Console:
    return Console(ConsoleConfig(name_servers, **config), production(AsyncioNetwork()))


def browser_of(console: Console) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(create_app(console)), base_url=HOST)


def text_of(html: str) -> str:
    """Return what a page shows, with one space between words."""
    body = html.partition("<body>")[2] or html
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", body)).split())
