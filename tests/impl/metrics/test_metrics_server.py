"""Tests the HTTP server of the metrics: its pages, and that a hostile peer costs little.

Method: a simulated network and clock.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

import pytest

from mqproof.impl.metrics.config import MetricsConfig
from mqproof.impl.metrics.families import Family, Metric, MetricType
from mqproof.impl.metrics.http_request import HEAD_BYTES_MAX
from mqproof.impl.metrics.metrics_server import (
    CONNECTION_S,
    CONNECTIONS_MAX,
    FRESH_S,
    PAGES_MAX,
    MetricsServer,
)
from mqproof.impl.runtime.network import Address, Connection, SimulatedNetwork
from mqproof.impl.runtime.runtime import Runtime, simulated
from mqproof.impl.runtime.simulated_loop import SimulatedLoop, run_simulated

T = TypeVar("T")
COUNT = Metric("count", MetricType.GAUGE, "Number of scrapes.")


class Counting:
    """A source that counts its scrapes. A scrape takes `seconds`."""

    metrics: Sequence[Metric] = (COUNT,)

    def __init__(self) -> None:
        self.scrapes = 0
        self.seconds = 0.0
        self.reason = ""
        self.error: Exception | None = None

    async def collect(self) -> list[Family]:
        self.scrapes += 1
        await asyncio.sleep(self.seconds)
        if self.error is not None:
            raise self.error
        return [Family(COUNT, {}, {(): self.scrapes})]

    def unready(self) -> str:
        return self.reason


class Peer:
    """A receiver that keeps what it receives."""

    def __init__(self) -> None:
        self.data = b""
        self.ended_s: float | None = None

    def received(self, data: bytes) -> None:
        self.data += data

    def write_paused(self) -> None: ...
    def write_resumed(self) -> None: ...

    def closed(self) -> None:
        self.ended_s = asyncio.get_running_loop().time()

    @property
    def status(self) -> str:
        return self.data.decode().partition("\r\n")[0].removeprefix("HTTP/1.1 ")

    @property
    def body(self) -> str:
        return self.data.decode().partition("\r\n\r\n")[2]


class Site:
    def __init__(self, runtime: Runtime, server: MetricsServer, address: Address, source: Counting) -> None:
        self.runtime = runtime
        self.server = server
        self.source = source
        self._address = address

    async def open(self) -> tuple[Connection, Peer]:
        peer = Peer()
        return await self.runtime.network.connect(self._address, lambda _: peer), peer

    async def get(self, path: str, method: str = "GET") -> Peer:
        connection, peer = await self.open()
        connection.write(f"{method} {path} HTTP/1.1\r\nHost: h\r\n\r\n".encode())
        await asyncio.sleep(0.1)
        return peer


def play(scenario: Callable[[Site], Coroutine[Any, Any, T]]) -> T:
    loop = SimulatedLoop()

    async def main() -> T:
        runtime, source = simulated(loop, SimulatedNetwork()), Counting()
        server = MetricsServer(MetricsConfig(metrics_port=0), runtime, ["broker"])
        server.sources["broker"] = source
        site = Site(runtime, server, await server.start(), source)
        try:
            return await scenario(site)
        finally:
            await server.stop()

    return run_simulated(main(), loop)


def test_a_page_is_answered_and_the_connection_closed() -> None:
    async def scenario(site: Site) -> Peer:
        return await site.get("/metrics")

    peer = play(scenario)
    assert peer.status == "200 OK"
    assert "Content-Type: text/plain; version=0.0.4" in peer.data.decode()
    assert f"Content-Length: {len(peer.body)}\r\n" in peer.data.decode()
    assert peer.body.endswith("count 1\n")
    assert peer.ended_s is not None


def test_head_has_the_length_and_no_body() -> None:
    async def scenario(site: Site) -> tuple[Peer, Peer]:
        return await site.get("/healthz", "HEAD"), await site.get("/healthz")

    head, get = play(scenario)
    assert (head.body, get.body) == ("", "ok\n")
    assert head.data.decode() + "ok\n" == get.data.decode()


def test_an_unknown_page_names_those_that_exist() -> None:
    async def scenario(site: Site) -> Peer:
        return await site.get("/metric")

    assert play(scenario).body == "pages: /metrics /healthz /readyz\n"


def test_a_server_is_ready_when_all_its_parts_are() -> None:
    async def scenario(site: Site) -> list[tuple[str, str]]:
        answers = [await site.get("/readyz")]
        site.source.reason = "the store is read-only"
        answers.append(await site.get("/readyz"))
        site.server.sources["broker"] = None
        answers.append(await site.get("/readyz"))
        return [(answer.status[:3], answer.body) for answer in answers]

    assert play(scenario) == [
        ("200", "ok\n"),
        ("503", "broker: the store is read-only\n"),
        ("503", "broker: not started\n"),
    ]


@pytest.mark.usefixtures("caplog")
def test_a_failed_task_makes_the_process_unhealthy() -> None:
    async def scenario(site: Site) -> list[str]:
        site.runtime.supervisor.on_failure = lambda _: None
        before = await site.get("/healthz")
        site.runtime.supervisor.fail("flush", RuntimeError("broken"))
        return [before.status, (await site.get("/healthz")).body, (await site.get("/readyz")).status]

    before, body, ready = play(scenario)
    assert before == "200 OK"
    assert body == "the task 'flush' failed: RuntimeError: broken\n"
    assert ready.startswith("503")


def test_a_reason_for_being_unready_does_not_make_the_process_unhealthy() -> None:
    async def scenario(site: Site) -> Peer:
        site.source.reason = "the store is read-only"
        return await site.get("/healthz")

    assert play(scenario).status == "200 OK"


def test_a_page_is_used_again_for_a_second() -> None:
    async def scenario(site: Site) -> list[int]:
        seen = []
        for pause_s in (0.0, 0.0, FRESH_S):
            await asyncio.sleep(pause_s)
            await site.get("/metrics")
            seen.append(site.source.scrapes)
        return seen

    assert play(scenario) == [1, 1, 2]


def test_a_page_that_fails_is_reported_and_the_next_one_works(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(site: Site) -> list[str]:
        site.source.error = OSError("disk")
        failed = await site.get("/metrics")
        site.source.error = None
        return [failed.status, failed.body, (await site.get("/metrics")).status]

    assert play(scenario) == ["500 Internal Server Error", "OSError: disk\n", "200 OK"]
    assert "the page '/metrics' failed" in caplog.text


@pytest.mark.parametrize("sent", [b"", b"GET /metrics HTTP/1.1\r\nHost: h\r\n", b"GET"])
def test_a_peer_that_does_not_complete_its_request_is_disconnected(sent: bytes) -> None:
    async def scenario(site: Site) -> float | None:
        connection, peer = await site.open()
        connection.write(sent)
        await asyncio.sleep(CONNECTION_S + 1)
        return peer.ended_s

    assert play(scenario) == pytest.approx(CONNECTION_S, abs=0.1)


def test_a_peer_that_sends_a_byte_at_a_time_gets_no_more_time() -> None:
    async def scenario(site: Site) -> float | None:
        connection, peer = await site.open()
        for _ in range(int(CONNECTION_S) * 2):
            connection.write(b"x")
            await asyncio.sleep(1)
        return peer.ended_s

    assert play(scenario) == pytest.approx(CONNECTION_S, abs=0.1)


def test_a_request_that_is_too_long_is_refused() -> None:
    async def scenario(site: Site) -> Peer:
        connection, peer = await site.open()
        connection.write(b"x" * HEAD_BYTES_MAX)
        await asyncio.sleep(0.1)
        return peer

    assert play(scenario).status == "431 Request Header Fields Too Large"


def test_only_the_first_request_of_a_connection_is_answered() -> None:
    async def scenario(site: Site) -> Peer:
        connection, peer = await site.open()
        connection.write(b"GET /healthz HTTP/1.1\r\n\r\n" * 3)
        connection.write(b"POST / HTTP/1.1\r\n\r\n")
        await asyncio.sleep(0.1)
        return peer

    assert play(scenario).data.count(b"HTTP/1.1 ") == 1


def test_idle_connections_do_not_keep_out_a_scrape(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(site: Site) -> tuple[str, int]:
        idle = [(await site.open())[1] for _ in range(CONNECTIONS_MAX)]
        status = (await site.get("/metrics")).status
        return status, sum(peer.ended_s is not None for peer in idle)

    with caplog.at_level(logging.WARNING):
        assert play(scenario) == ("200 OK", 1)
    assert "closed a connection to the metrics" in caplog.text


@pytest.mark.usefixtures("caplog")
def test_the_number_of_connections_is_limited() -> None:
    async def scenario(site: Site) -> tuple[int, int]:
        site.source.seconds = 5.0
        peers = [await site.get("/healthz?x" if number >= PAGES_MAX else "/metrics") for number in range(40)]
        open_now = sum(peer.ended_s is None for peer in peers)
        silent = [(await site.open())[1] for _ in range(3 * CONNECTIONS_MAX)]
        await asyncio.sleep(0.1)
        return open_now, sum(peer.ended_s is None for peer in silent)

    open_now, silent = play(scenario)
    assert open_now == PAGES_MAX
    assert silent == CONNECTIONS_MAX - PAGES_MAX


def test_few_peers_receive_pages_of_metrics_at_once() -> None:
    async def scenario(site: Site) -> list[str]:
        site.source.seconds = 5.0
        peers = [await site.get("/metrics") for _ in range(PAGES_MAX + 1)]
        await asyncio.sleep(6)
        return [peer.status[:3] for peer in peers]

    assert play(scenario) == ["200"] * PAGES_MAX + ["503"]


def test_a_scrape_whose_peer_has_left_is_cancelled() -> None:
    async def scenario(site: Site) -> str:
        site.source.seconds = 5.0
        for _ in range(PAGES_MAX):
            connection, _ = await site.open()
            connection.write(b"GET /metrics HTTP/1.1\r\n\r\n")
            await asyncio.sleep(0.1)
            connection.abort()
        await asyncio.sleep(0.1)
        site.source.seconds = 0.0
        return (await site.get("/metrics")).status

    assert play(scenario) == "200 OK"


def test_a_port_that_other_machines_reach_is_mentioned(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        runtime = simulated(loop, SimulatedNetwork())
        server = MetricsServer(MetricsConfig(metrics_host="10.0.0.1"), runtime)
        await server.start()
        await server.stop()

    loop = SimulatedLoop()
    run_simulated(main(), loop)
    assert "every client that reaches 10.0.0.1:5557 can read the metrics" in caplog.text
