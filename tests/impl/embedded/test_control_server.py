"""The control interface of a broker in memory, over HTTP: each operation, wrong values, and greedy peers."""

import asyncio
import json
import urllib.error
import urllib.request
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from mqproof import PushConsumer, ReceivedMessage, connect, new_message
from mqproof.client import Producer
from mqproof.impl.embedded import control_operations
from mqproof.impl.embedded.control_request import ControlRequest
from mqproof.impl.embedded.control_server import CONNECTIONS_MAX, ControlServer
from mqproof.impl.embedded.controlled_broker import ControlledBroker
from mqproof.impl.runtime.network import AsyncioNetwork

Call = Callable[..., Awaitable[tuple[int, dict[str, Any]]]]


def with_control(scenario: Callable[[ControlledBroker, Call], Awaitable[None]]) -> None:
    async def run() -> None:
        broker = ControlledBroker({"defaultTopicQueueNums": "1"})
        await broker.start()
        server = ControlServer(broker, AsyncioNetwork(), 0)
        url = f"http://{await server.start()}"

        async def call(method: str, path: str, body: object = None) -> tuple[int, dict[str, Any]]:
            return await asyncio.to_thread(_request, method, url + path, body)

        try:
            await scenario(broker, call)
        finally:
            await server.stop()
            await broker.stop()

    asyncio.run(run())


def _request(method: str, url: str, body: object) -> tuple[int, dict[str, Any]]:
    data = None if body is None else json.dumps(body).encode()
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(url, data, headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


async def send(broker: ControlledBroker, body: bytes, delay_level: int = 0) -> None:
    async with connect(str(broker.name_server)) as session:
        message = new_message("T", body, tag="a", keys="k", delay_level=delay_level)
        await Producer(session).send_or_raise(message)


def test_messages_are_listed_in_parts() -> None:
    async def scenario(broker: ControlledBroker, call: Call) -> None:
        for number in range(3):
            await send(broker, b"%d" % number if number else b"\xff")
        status, all_of_them = await call("GET", "/messages?topic=T")
        assert (status, all_of_them["topic"], all_of_them["count"]) == (200, "T", 3)
        first = all_of_them["messages"][0]
        assert (first["body"], first["body_base64"], first["tag"], first["keys"]) == (
            None,
            "/w==",
            "a",
            ["k"],
        )
        assert first["properties"]["TAGS"] == "a"
        _, part = await call("GET", "/messages?topic=T&offset=1&limit=1")
        assert [each["body"] for each in part["messages"]] == ["1"]
        assert (await call("GET", "/messages?topic=%25DLQ%25G"))[1]["count"] == 0

    with_control(scenario)


def test_an_answer_has_a_limited_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control_operations, "BODIES_BYTES_MAX", 10)

    async def scenario(broker: ControlledBroker, call: Call) -> None:
        for _ in range(3):
            await send(broker, b"12345")
        _, found = await call("GET", "/messages?topic=T")
        assert (found["count"], len(found["messages"])) == (3, 2)

    with_control(scenario)


def test_time_passes_and_clients_stay_connected() -> None:
    async def scenario(broker: ControlledBroker, call: Call) -> None:
        arrived = asyncio.Queue[bytes]()

        async def listener(messages: Sequence[ReceivedMessage]) -> None:
            arrived.put_nowait(messages[0].body)

        await send(broker, b"later", delay_level=18)
        async with (
            connect(str(broker.name_server)) as session,
            PushConsumer(session, "G", listener) as consumer,
        ):
            await consumer.subscribe("T")
            before = broker.now_ms()
            connected = session.remoting
            status, answer = await call("POST", "/advance", {"hours": 1, "minutes": 61})
            assert status == 200
            assert answer["now_ms"] >= before + 7_260_000
            async with asyncio.timeout(60):
                assert await arrived.get() == b"later"
            assert session.remoting is connected

    with_control(scenario)


def test_faults_are_ordered_counted_and_forgotten() -> None:
    async def scenario(broker: ControlledBroker, call: Call) -> None:
        _, ordered = await call("POST", "/faults", {"operation": "send", "executed": True, "times": 2})
        assert ordered["pending"]["send"] == 2
        await send(broker, b"x")
        assert (await call("GET", "/messages?topic=T"))[1]["count"] == 3
        for _ in range(10):
            await call("POST", "/faults", {"operation": "pull", "times": 1000})
        assert (await call("GET", "/faults"))[1]["pending"]["pull"] == 10_000
        status, refused = await call("POST", "/faults", {"operation": "pull"})
        assert (status, refused["error"]) == (400, "10000 faults of pull wait: at most 10000")
        assert set((await call("DELETE", "/faults"))[1]["pending"].values()) == {0}

    with_control(scenario)


def test_a_reset_leaves_nothing_but_the_ports_and_the_time() -> None:
    async def scenario(broker: ControlledBroker, call: Call) -> None:
        await send(broker, b"x")
        await call("POST", "/faults", {"operation": "send", "times": 5})
        await call("POST", "/advance", {"hours": 1})
        before = (await call("GET", "/health"))[1]
        assert (await call("POST", "/reset")) == (200, {"reset_count": 1})
        status, after = await call("GET", "/health")
        assert (status, after["status"]) == (200, "ok")
        assert (after["name_server"], after["broker"]) == (before["name_server"], before["broker"])
        assert after["now_ms"] >= before["now_ms"]
        assert (await call("GET", "/messages?topic=T"))[1]["count"] == 0
        await send(broker, b"y")
        assert (await call("GET", "/messages?topic=T"))[1]["count"] == 1

    with_control(scenario)


def test_wrong_requests_are_refused_with_a_reason() -> None:
    async def scenario(broker: ControlledBroker, call: Call) -> None:
        for method, path, body, status, why in (
            ("GET", "/nothing", None, 404, "/health /reset /advance /faults /messages"),
            ("GET", "/reset", None, 405, "/reset: POST"),
            ("GET", "/health?x=1", None, 400, "/health has no query"),
            ("POST", "/reset", {"x": 1}, 400, "unknown field `x`"),
            ("POST", "/advance", {"hour": 1}, 400, "unknown field `hour`"),
            ("POST", "/advance", {"hours": -1}, 400, "expected 0 s to 7 days"),
            ("POST", "/advance", {"hours": 169}, 400, "expected 0 s to 7 days"),
            ("POST", "/advance", [], 400, "Expected `object`"),
            ("POST", "/faults", {"operation": "sent"}, 400, "'sent' is not a kind of request"),
            ("POST", "/faults", {"operation": "send", "code": "BUSY"}, 400, "'BUSY' is not the name"),
            ("POST", "/faults", {"operation": "send", "times": 1001}, 400, "$.times"),
            ("GET", "/messages", None, 400, "topic"),
            ("GET", "/messages?topic=T&limit=1001", None, 400, "$.limit"),
            ("GET", "/messages?topic=T&offset=-1", None, 400, "$.offset"),
        ):
            answered, answer = await call(method, path, body)
            assert (answered, why in answer["error"]) == (status, True), (method, path, body, answer)

    with_control(scenario)


def test_a_peer_that_opens_too_many_connections_does_not_stop_others() -> None:
    async def scenario(broker: ControlledBroker, call: Call) -> None:
        server = ControlServer(broker, AsyncioNetwork(), 0)
        at = await server.start()
        opened = [await asyncio.open_connection(at.host, at.port) for _ in range(CONNECTIONS_MAX)]
        reader, writer = await asyncio.open_connection(at.host, at.port)
        assert await reader.read() == b""  # closed at once
        writer.close()
        for _, other in opened:
            other.close()
        await asyncio.gather(*(other.wait_closed() for _, other in opened))
        async with asyncio.timeout(60):
            while (await asyncio.to_thread(_status, f"http://{at}/health")) != 200:
                await asyncio.sleep(0.01)
        await server.stop()

    with_control(scenario)


def _status(url: str) -> int:
    try:
        return _request("GET", url, None)[0]
    except OSError:
        return 0


def test_a_failed_broker_is_reported() -> None:
    class Failed(ControlledBroker):
        failure = "a task ended"

    async def run() -> None:
        broker = Failed({})
        await broker.start()
        request = ControlRequest("GET", "/health", {}, b"")
        status, answer = await control_operations.operate(broker, request)
        assert (status[:3], answer["status"], answer["error"]) == ("503", "failed", "a task ended")
        await broker.stop()

    asyncio.run(run())
