"""Tests the dashboard: samples as charts and tables, and what it shows before the first one."""

import asyncio

from mqproof.impl.console.sample_history import Sample
from tests.impl.console.desk import desk


def test_before_the_first_samples_the_next_step_is_shown() -> None:
    async def run() -> None:
        async with desk() as d:
            text = await d.get("/")
            assert "No samples yet. The console samples every 10 s" in text
            assert "mqproof send --namesrv HOST:PORT --topic Orders --body hello" in text

    asyncio.run(run())


def test_samples_are_charts_of_brokers_and_rows_of_topics() -> None:
    async def run() -> None:
        async with desk() as d:
            now_s = d.console.now_s()
            for number in range(4):
                at_s = now_s - 100 + 10 * number
                d.console.sampler.history.add(("broker", "b-1"), Sample(at_s, 1000 * number, 500 * number, 7))
                d.console.sampler.history.add(("topic", "Quiet"), Sample(at_s, 0, 0, 0))
                d.console.sampler.history.add(("topic", "Busy"), Sample(at_s, 50 * number, 0, 5000 * number))
            html = await d.html("/", minutes=5)
            assert 'aria-label="b-1: sent/s 100, delivered/s 50"' in html
            assert 'aria-label="b-1: not consumed: messages 7"' in html
            text = await d.get("/", minutes=5)
            assert "Brokers 1 masters sampled Topics 2" in text
            assert "Sent/s 100 by producers" in text
            assert "Not consumed 15k" in text
            assert text.index("Busy") < text.index("Quiet")
            assert "Busy 5 0 15,000" in text

    asyncio.run(run())


def test_a_page_refreshes_only_if_it_is_asked_to() -> None:
    async def run() -> None:
        async with desk() as d:
            assert "refresh" not in (await d.browser.get("/")).headers
            assert (await d.browser.get("/", params={"refresh": "10"})).headers["refresh"] == "10"
            assert (
                "refresh is '1', one of 0, 10, 60 expected"
                in (await d.get("/", status=400, refresh="1")).lower()
            )

    asyncio.run(run())


def test_too_many_topics_are_reported() -> None:
    async def run() -> None:
        async with desk() as d:
            d.console.sampler.topics_left_out = 7
            assert "7 topics are not sampled" in await d.get("/")

    asyncio.run(run())
