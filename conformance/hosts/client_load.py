"""The load of `mqproof bench client` on our client, as a program; `ClientLoad.java` is the same for Apache's.

Arguments: name server, `send`, `block`, `consume` or `latency`, topic, number of messages, bytes of a body,
and a number: outstanding sends of `send`, or messages per second of `latency`. It writes messages per second,
or the median and the 99th percentile of the milliseconds from a send to its delivery.
"""

import asyncio
import struct
import sys
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final

from mqproof.impl.client.blocking import BlockingClient
from mqproof.impl.client.connection.connect import connect
from mqproof.impl.client.connection.session import Session
from mqproof.impl.client.consuming.push_consumer import PushConsumer, PushConsumerConfig
from mqproof.impl.client.consuming.start_offset import ConsumeFrom
from mqproof.impl.client.messages.compose import new_message
from mqproof.impl.client.model import Listener, ReceivedMessage, Sent
from mqproof.impl.client.producing.producer import Producer
from mqproof.impl.remoting.message import Message

_WARM_SENDS: Final = 2_000
_WAIT_S: Final = 300.0
_STAMP: Final = struct.Struct(">q")


def main(arguments: Sequence[str]) -> None:
    """Run one load and write its result."""
    name_server, kind, topic = arguments[:3]
    count, size, number = map(int, arguments[3:])
    if kind == "send":
        print(_run(_send(name_server, topic, count, size, number)))
    elif kind == "block":
        print(_block(name_server, topic, count, size))
    elif kind == "consume":
        print(_run(_consume(name_server, topic, count)))
    else:
        print(*_run(_latency(name_server, topic, count, size, number)))


def _run(work: Coroutine[Any, Any, Any]) -> Any:
    try:
        import uvloop
    except ImportError:
        return asyncio.run(work)
    return uvloop.run(work)


async def _send(name_server: str, topic: str, count: int, size: int, outstanding: int) -> float:
    body = bytes(size)
    async with connect(name_server) as session:
        producer = Producer(session)
        for number in (min(count, _WARM_SENDS), count):
            began = time.perf_counter()
            outcomes = await producer.send_many(_messages(topic, body, number), outstanding=outstanding)
            seconds = time.perf_counter() - began
            _require_sent(outcomes)
    return count / seconds


def _block(name_server: str, topic: str, count: int, size: int) -> float:
    body = bytes(size)
    with BlockingClient(name_server) as client:
        for number in (min(count, _WARM_SENDS), count):
            began = time.perf_counter()
            _require_sent([client.send(message) for message in _messages(topic, body, number)])
            seconds = time.perf_counter() - began
    return count / seconds


def _messages(topic: str, body: bytes, count: int) -> list[Message]:
    return [new_message(topic, body) for _ in range(count)]


def _require_sent(outcomes: Sequence[object]) -> None:
    for outcome in outcomes:
        if not isinstance(outcome, Sent):
            raise SystemExit(f"{outcome}")


async def _consume(name_server: str, topic: str, count: int) -> float:
    received, began, done = 0, 0.0, asyncio.Event()

    async def listener(messages: Sequence[ReceivedMessage]) -> None:
        nonlocal received, began
        began = began or time.perf_counter()
        received += len(messages)
        if received >= count:
            done.set()

    async with connect(name_server) as session:
        consumer = await _subscribed(session, topic, listener)
        async with asyncio.timeout(_WAIT_S):
            await done.wait()
        seconds = time.perf_counter() - began
        await consumer.stop()
    return count / seconds


async def _latency(name_server: str, topic: str, count: int, size: int, rate: int) -> tuple[float, float]:
    delays: list[float] = []
    done = asyncio.Event()

    async def listener(messages: Sequence[ReceivedMessage]) -> None:
        now = time.perf_counter_ns()
        delays.extend((now - _STAMP.unpack_from(message.body)[0]) / 1e6 for message in messages)
        if len(delays) >= count:
            done.set()

    async with connect(name_server) as session:
        consumer = await _subscribed(session, topic, listener)
        producer = Producer(session)
        sending: list[asyncio.Future[object]] = []

        def send(due: int) -> None:
            body = _STAMP.pack(due) + bytes(size - _STAMP.size)
            sending.append(asyncio.ensure_future(producer.send(new_message(topic, body))))

        await asyncio.to_thread(_at_rate, count, rate, asyncio.get_running_loop(), send)
        async with asyncio.timeout(_WAIT_S):
            _require_sent(await asyncio.gather(*sending))
            await done.wait()
        await consumer.stop()
    later = sorted(delays[count // 2 : count])  # the first half warms the connection
    return later[len(later) // 2], later[len(later) * 99 // 100]


def _at_rate(count: int, rate: int, loop: asyncio.AbstractEventLoop, send: Callable[[int], None]) -> None:
    """Call `send` in the loop when each message is due.

    This is a thread, because the timers of an event loop count whole milliseconds.
    """
    began = time.perf_counter_ns()
    for number in range(count):
        due = began + number * 1_000_000_000 // rate
        if (wait := due - time.perf_counter_ns()) > 0:
            time.sleep(wait / 1e9)
        loop.call_soon_threadsafe(send, due)


async def _subscribed(session: Session, topic: str, listener: Listener) -> PushConsumer:
    config = PushConsumerConfig(batch_max=32, consume_from=ConsumeFrom.FIRST_OFFSET)
    consumer = PushConsumer(session, f"load_{time.time_ns()}", listener, config)
    await consumer.subscribe(topic, "*")
    await consumer.start()
    return consumer


if __name__ == "__main__":
    main(sys.argv[1:])
