"""What brokers for tests cost: their start, their memory, virtual time, and many isolated tests.

    python -m mqproof.impl.embedded.testing_speed --json FILE

`mqproof bench testing` runs it in a process of its own, so that the memory is that of the brokers. The
isolated tests run in pytest, each with its own fixture `rocketmq`.
"""

import argparse
import asyncio
import gc
import json
import logging
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from mqproof.impl.client.connection.session import Session
from mqproof.impl.client.consuming.push_consumer import PushConsumer
from mqproof.impl.client.messages.compose import new_message
from mqproof.impl.client.model import ReceivedMessage
from mqproof.impl.client.producing.producer import Producer
from mqproof.impl.client.producing.transaction_producer import TransactionProducer, TransactionState
from mqproof.impl.embedded.embedded_broker import EmbeddedBroker
from mqproof.impl.embedded.threaded_broker import ThreadedBroker
from mqproof.impl.remoting import java_json
from mqproof.impl.remoting.bodies import ConsumerData, ConsumerIds, Heartbeat
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.command import new_request
from mqproof.impl.remoting.message import Message, StoredMessage

_BROKERS: Final = 20
"""Brokers at once, whose memory is measured."""
_TEST_FILE: Final = """
import pytest
from mqproof import new_message


@pytest.mark.parametrize("number", range({tests}))
def test_isolated(rocketmq, number):
    with rocketmq.client() as client:
        client.send_or_raise(new_message("Orders", b"%d" % number))
    (message,) = rocketmq.expect("Orders")
    assert message.body == b"%d" % number
"""


async def start_times_ms(rounds: int, folder: Path) -> dict[str, list[float]]:
    """Return the time from the creation of a broker until it serves, for each kind of broker."""

    async def started(**options: Any) -> float:
        begun_s = time.perf_counter()
        async with EmbeddedBroker(**options):
            return (time.perf_counter() - begun_s) * 1000

    found: dict[str, list[float]] = {"without sockets": [], "with sockets": [], "on disk": []}
    for number in range(rounds):
        found["without sockets"].append(await started())
        found["with sockets"].append(await started(sockets=True))
        found["on disk"].append(await started(store=folder / str(number)))
    return found


def threaded_start_ms(rounds: int) -> list[float]:
    """Return the times of the fixture `rocketmq`, a broker in a thread."""
    times = []
    for _ in range(rounds):
        begun_s = time.perf_counter()
        with ThreadedBroker():
            times.append((time.perf_counter() - begun_s) * 1000)
    return times


async def memory_kib() -> float:
    """Return the resident memory that one more broker takes."""
    async with EmbeddedBroker():
        pass  # what all brokers share is loaded
    gc.collect()
    before = _resident_kib()
    brokers = [EmbeddedBroker() for _ in range(_BROKERS)]
    for broker in brokers:
        await broker.start()
    gc.collect()
    grown = (_resident_kib() - before) / _BROKERS
    for broker in brokers:
        await broker.stop()
    return grown


async def virtual_times_ms(rounds: int) -> dict[str, list[float]]:
    """Return the real time of four long stories, and of the part of the retries that no skip can save."""
    stories: dict[str, Callable[[], Awaitable[float]]] = {
        "a delay of two hours is delivered": _delay,
        "16 retries end in the dead letter queue": _retries,
        "16 retries, without upkeep": _attempts,
        "a silent consumer expires": _silence,
        "a transaction is checked back": _check_back,
    }
    found = {}
    for name, story in stories.items():
        found[name] = [await story() for _ in range(rounds)]
    return found


async def _advanced(broker: EmbeddedBroker, **duration: float) -> float:
    begun_s = time.perf_counter()
    await broker.clock.advance(**duration)
    return (time.perf_counter() - begun_s) * 1000


async def _delay() -> float:
    async with EmbeddedBroker() as broker, broker.client() as session:
        await Producer(session).send_or_raise(new_message("Later", b"x", delay_level=18))
        took = await _advanced(broker, hours=2, seconds=20)
        _require(len(broker.messages("Later")) == 1, "the delayed message is not delivered")
    return took


async def _retries() -> float:
    async with _failing_consumer() as broker:
        return await _advanced(broker, hours=4, minutes=50)


async def _attempts() -> float:
    """Return the time of the steps of the same advance in which a retry is due: delivery, pull, send back."""
    took_ms, begun_s = 0.0, time.perf_counter()

    async def add(is_due: bool) -> None:
        nonlocal took_ms, begun_s
        took_ms += (time.perf_counter() - begun_s) * 1000 if is_due else 0.0
        begun_s = time.perf_counter()

    async with _failing_consumer() as broker:
        begun_s = time.perf_counter()
        await broker.clock.advance_by((4 * 60 + 50) * 60, add)
    return took_ms


@asynccontextmanager
async def _failing_consumer() -> AsyncIterator[EmbeddedBroker]:
    """Let a consumer fail to consume a message, which must be a dead letter at the end."""

    async def fail(messages: Sequence[ReceivedMessage]) -> None:
        raise ValueError(messages[0].message_id)

    async with EmbeddedBroker() as broker, broker.client() as session:
        await Producer(session).send_or_raise(new_message("Orders", b"x"))
        async with PushConsumer(session, "Bar", fail) as consumer:
            await consumer.subscribe("Orders")
            yield broker
        _require(len(broker.messages("%DLQ%Bar")) == 1, "the message is no dead letter")


async def _silence() -> float:
    async with EmbeddedBroker() as broker, broker.client() as silent, broker.client() as session:
        await Producer(session).send_or_raise(new_message("Orders", b"x"))
        await announce(silent, session, "Orders", "Bar")
        _require(await members(session, "Orders", "Bar") == ["silent"], "the consumer is no member")
        took = await _advanced(broker, minutes=3)
        _require(await members(session, "Orders", "Bar") == [], "the silent consumer is still a member")
    return took


async def announce(silent: Session, known: Session, topic: str, group: str) -> None:
    """Send one heartbeat of a consumer, which sends no other."""
    body = java_json.write(Heartbeat("silent", [ConsumerData(group)]), standard=True)
    address = known.routes.address(topic, "broker-a")
    assert address is not None
    await silent.remoting.invoke(address, new_request(RequestCode.HEART_BEAT, body=body), 5.0)


async def members(session: Session, topic: str, group: str) -> list[str]:
    """Return the client ids of the group's members, as the broker reports them."""
    address = session.routes.address(topic, "broker-a")
    assert address is not None
    request = new_request(RequestCode.GET_CONSUMER_LIST_BY_GROUP, {"consumerGroup": group})
    answer = await session.remoting.invoke(address, request, 5.0)
    if answer.code != ResponseCode.SUCCESS:
        return []  # the group has no members
    return [*java_json.read(ConsumerIds, answer.body).consumer_id_list]


async def _check_back() -> float:
    async def unknown(_: Message, __: str) -> TransactionState:
        return TransactionState.UNKNOWN

    async def commit(_: StoredMessage, __: str) -> TransactionState:
        return TransactionState.COMMIT

    async with EmbeddedBroker() as broker, broker.client() as session:
        producer = TransactionProducer(session, commit)
        try:
            await producer.send(new_message("Orders", b"x"), unknown)
            took = await _advanced(broker, minutes=3)
            _require(len(broker.messages("Orders")) == 1, "the transaction is not checked back")
        finally:
            await producer.stop()
    return took


def isolated_tests_s(tests: int, folder: Path) -> float:
    """Return how long pytest takes for so many tests, each with a broker of its own.

    Raises:
        RuntimeError: pytest is not installed, or a test failed.
    """
    (folder / "test_isolated.py").write_text(_TEST_FILE.format(tests=tests))
    begun_s = time.perf_counter()
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(folder)]
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    took_s = time.perf_counter() - begun_s
    if not re.search(rf"\b{tests} passed", ran.stdout):
        raise RuntimeError(f"the isolated tests failed: {(ran.stdout + ran.stderr)[-300:].strip()}")
    return took_s


def measure(tests: int, rounds: int) -> dict[str, list[float]]:
    """Return the values of each row by round; the name of a row ends in its unit."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        starts = asyncio.run(start_times_ms(rounds, root / "stores"))
        starts["in a thread, as the fixture rocketmq"] = threaded_start_ms(rounds)
        found = {f"start {name}: ms": times for name, times in starts.items()}
        found["memory of one more broker: KiB"] = [asyncio.run(memory_kib())]
        stories = asyncio.run(virtual_times_ms(rounds))
        found |= {f"{name}: ms": times for name, times in stories.items()}
        if tests:
            found[f"{tests} isolated tests in pytest: s"] = [isolated_tests_s(tests, root)]
    return found


def _require(holds: bool, text: str) -> None:
    if not holds:
        raise RuntimeError(text)


def _resident_kib() -> int:
    found = re.search(r"VmRSS:\s+(\d+) kB", Path("/proc/self/status").read_text())
    _require(found is not None, "/proc/self/status has no VmRSS")
    assert found is not None
    return int(found[1])


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m mqproof.impl.embedded.testing_speed")
    parser.add_argument("--tests", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--json", type=Path, required=True)
    given = parser.parse_args()
    logging.disable(logging.CRITICAL)  # listeners fail on purpose, and the log would be what is measured
    given.json.write_text(json.dumps(measure(given.tests, given.rounds), indent=2))


if __name__ == "__main__":
    main()
