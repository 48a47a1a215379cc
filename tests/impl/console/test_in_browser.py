"""Tests the pages in a real browser, at the width of a desktop and of a phone, light and dark.

Method: a broker and the console's server run in the event loop of the test, Chromium beside them. axe-core
checks contrast, labels, roles and order of headings on every page. The keyboard alone then sends a message.
"""

import asyncio
import json
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import Any, Final

import pytest

from mqproof.client import ConsumeFrom, Producer, PushConsumer, PushConsumerConfig, RetryLater, new_message
from mqproof.impl.console.application import PAGES
from mqproof.impl.console.config import ConsoleConfig
from mqproof.impl.console.sample_history import Sample
from mqproof.impl.console.web_server import ConsoleServer
from mqproof.impl.embedded.embedded_broker import EmbeddedBroker
from mqproof.impl.remoting.address_server import parse
from mqproof.impl.runtime.network import Address, AsyncioNetwork
from mqproof.impl.runtime.runtime import production

CHROMIUM: Final = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)

pytestmark = [
    pytest.mark.deep("a browser costs more than all other tests of the console together"),
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on the PATH: apt-get install chromium"),
]

VIEWS: Final = [
    (1280, 800, "light"),
    (1280, 800, "dark"),
    (375, 812, "light"),
    (375, 812, "dark"),
]
GROUP, FAILING = "billing", "mailer"
AXE: Final = files("axe_playwright_python") / "axe.min.js"


@dataclass(slots=True)
class Scene:
    broker: EmbeddedBroker
    server: ConsoleServer
    address: Address
    browser: Any

    def url(self, path: str) -> str:
        return f"http://{self.address}{path}"

    def addresses(self) -> dict[str, str]:
        """Return an address for each page, with content."""
        message = self.broker.messages("Orders")[0].stored.offset_message_id
        (client,) = (each for each in self.clients if each)
        found = {path: path for path in PAGES}
        found.update(
            {
                "/broker": "/broker?name=broker-a&id=0",
                "/topic": "/topic?name=Orders",
                "/consumer": f"/consumer?group={GROUP}",
                "/client": f"/client?group={GROUP}&client={client}",
                "/dead-letters": f"/dead-letters?group={FAILING}",
                "/messages": "/messages?topic=Orders",
                "/message": f"/message?id={message}",
                "by key": "/messages?by=key&topic=Orders&key=order-1",
                "by id": "/messages?by=id",
                "not found": "/topic?name=Nope",
                "no such page": "/nothing",
                "empty": "/consumer?group=nobody",
            }
        )
        return found

    clients: tuple[str, ...] = ()


@asynccontextmanager
async def scene(*, allow_changes: bool) -> AsyncIterator[Scene]:
    """Run a broker with messages, groups and dead letters, a console, and a browser."""
    from playwright.async_api import async_playwright

    config = PushConsumerConfig(consume_from=ConsumeFrom.FIRST_OFFSET)
    async with (
        EmbeddedBroker(sockets=True) as broker,
        broker.client() as session,
        broker.client() as other,
        async_playwright() as playwright,
    ):
        producer = Producer(session)
        for number in range(12):
            body = json.dumps({"order": number, "text": "x" * 200}).encode()
            await producer.send_or_raise(new_message("Orders", body, keys=f"order-{number}", tag="created"))
        failing = PushConsumer(other, FAILING, lambda _: RetryLater(delay_level=-1), config)
        async with PushConsumer(session, GROUP, lambda _: None, config) as consumer, failing:
            await consumer.subscribe("Orders")
            await failing.subscribe("Orders")
            await broker.expect(f"%DLQ%{FAILING}", 12, within_s=60)
            server = ConsoleServer(
                ConsoleConfig(parse(broker.name_server), port=0, allow_changes=allow_changes),
                production(AsyncioNetwork()),
            )
            _add_samples(server)
            address = await server.start()
            browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
            yield Scene(broker, server, address, browser, (session.client_id,))
            await browser.close()
            await server.stop()


def _add_samples(server: ConsoleServer) -> None:
    now_s = server.console.now_s()
    for number in range(30):
        sample = Sample(now_s - 300 + 10 * number, 90 * number, 70 * number, 20 * number % 130)
        server.console.sampler.history.add(("broker", "broker-a"), sample)
        server.console.sampler.history.add(("topic", "Orders"), sample)


@pytest.mark.parametrize(("width", "height", "scheme"), VIEWS)
def test_every_page_is_accessible_and_fits_the_screen(width: int, height: int, scheme: str) -> None:
    async def run() -> None:
        async with scene(allow_changes=True) as s:
            context = await s.browser.new_context(
                viewport={"width": width, "height": height}, color_scheme=scheme, bypass_csp=True
            )  # axe is a script, which the pages do not allow
            page = await context.new_page()
            for name, path in s.addresses().items():
                await page.goto(s.url(path))
                await page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
                assert await page.evaluate("document.documentElement.scrollWidth") <= width, name
                await page.evaluate(AXE.read_text(encoding="utf-8"))
                found = await page.evaluate("axe.run()")
                problems = [
                    (each["id"], node["target"], node["failureSummary"])
                    for each in found["violations"]
                    for node in each["nodes"]
                ]
                assert problems == [], name
                assert any(each["id"] == "color-contrast" for each in found["passes"]), name

    asyncio.run(run())


def test_axe_finds_a_text_without_contrast_and_a_field_without_a_label() -> None:
    """Otherwise the test above could not fail."""

    async def run() -> None:
        async with scene(allow_changes=False) as s:
            context = await s.browser.new_context(bypass_csp=True)
            page = await context.new_page()
            await page.goto(s.url("/topics"))
            await page.evaluate("document.querySelector('h1').style.color = '#e8e8e8'")
            await page.evaluate("document.querySelector('main label').remove()")
            await page.evaluate(AXE.read_text(encoding="utf-8"))
            found = await page.evaluate("axe.run()")
            assert {"color-contrast", "label"} <= {each["id"] for each in found["violations"]}

    asyncio.run(run())


def test_the_pages_load_nothing_else_and_break_no_rule_of_their_policy() -> None:
    async def run() -> None:
        async with scene(allow_changes=True) as s:
            page = await (await s.browser.new_context()).new_page()
            messages: list[str] = []
            requested: set[str] = set()
            page.on("console", lambda message: messages.append(message.text))
            page.on("pageerror", lambda error: messages.append(str(error)))
            page.on("request", lambda request: requested.add(request.url.partition("?")[0]))
            for path in PAGES.keys() - {
                "/broker",
                "/topic",
                "/consumer",
                "/client",
                "/dead-letters",
                "/message",
            }:
                await page.goto(s.url(path))
            assert messages == []
            assert {url for url in requested if not url.startswith(s.url("/"))} == set()

    asyncio.run(run())


async def tab_to(page: Any, what: str) -> None:
    """Press the tab key until the element is focused, and check that the focus is visible."""
    for _ in range(100):
        await page.keyboard.press("Tab")
        if await page.evaluate(f"document.activeElement.matches({json.dumps(what)})"):
            style = "getComputedStyle(document.activeElement).outlineStyle"
            assert await page.evaluate(style) != "none", what
            return
    raise AssertionError(f"100 tabs do not reach {what}")


@pytest.mark.parametrize("width", [1280, 375])
def test_the_keyboard_alone_sends_a_message(width: int) -> None:
    async def run() -> None:
        async with scene(allow_changes=True) as s:
            page = await (await s.browser.new_context(viewport={"width": width, "height": 800})).new_page()
            await page.goto(s.url("/"))
            await page.keyboard.press("Tab")
            assert await page.evaluate("document.activeElement.textContent") == "Skip to the content"
            assert await page.evaluate("document.activeElement.getBoundingClientRect().top >= 0")
            await page.keyboard.press("Enter")
            assert await page.evaluate("document.activeElement.id") == "content"
            await page.goto(s.url("/topics"))
            await tab_to(page, "a[href='/topic?name=Orders']")
            await page.keyboard.press("Enter")
            await page.wait_for_url("**/topic?name=Orders")
            await tab_to(page, "details.form summary")
            await page.keyboard.press("Enter")
            await tab_to(page, "input[name=tag]")
            await page.keyboard.type("from-keyboard")
            await tab_to(page, "textarea[name=body]")
            await page.keyboard.type("hello")
            await tab_to(page, "form[action='/topic/send'] button")
            await page.keyboard.press("Enter")
            await page.wait_for_selector(".note.good")
            assert "SEND_OK" in await page.inner_text(".note.good")
            assert [each.tag for each in s.broker.messages("Orders") if each.body == b"hello"] == [
                "from-keyboard"
            ]

    asyncio.run(run())


def test_a_form_of_another_site_changes_nothing() -> None:
    async def run() -> None:
        async with scene(allow_changes=True) as s:
            context = await s.browser.new_context()
            page = await context.new_page()
            await page.goto(s.url("/topic?name=Orders"))
            form = (
                f"<form method=post action='{s.url('/topic/send')}'><input name=name value=Orders>"
                "<input name=body value=evil><button>Go</button></form>"
            )
            await page.goto(f"data:text/html,{form}")
            await page.click("button")
            await page.wait_for_load_state()
            assert "the form comes from another site" in await page.inner_text("body")
            assert not [each for each in s.broker.messages("Orders") if each.body == b"evil"]

    asyncio.run(run())


def test_a_page_recovers_when_the_name_server_is_back() -> None:
    async def run() -> None:
        async with scene(allow_changes=False) as s:
            page = await (await s.browser.new_context()).new_page()
            await page.goto(s.url("/cluster"))
            known = s.server.console.config
            s.server.console.config = replace(known, name_servers=[Address("127.0.0.1", 1)])
            await page.reload()
            assert "The cluster does not answer" in await page.inner_text("h1")
            s.server.console.config = known
            await page.reload()
            assert "broker-a" in await page.inner_text("main")

    asyncio.run(run())
