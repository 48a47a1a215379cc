"""Helpers of the tests that repeat, on processes over loopback, what a broker once did not withstand.

`pytest -s` prints the figure of each test.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from mqproof.conformance.hosts.processes import Cluster, cluster
from mqproof.conformance.wire.server_connection import Address
from mqproof.impl.client.blocking import BlockingClient
from mqproof.impl.client.messages.compose import new_message
from mqproof.impl.client.model import MessageQueue, Refused, Sent

SECONDS_MAX: Final = 120.0
TOPIC: Final = "T"
BROKER: Final = "broker-a"
QUEUE: Final = MessageQueue(TOPIC, BROKER, 0)


def figure(name: str, value: object) -> None:
    print(f"\n  {name}: {value}", end="")


@contextmanager
def site(folder: Path) -> Iterator[Cluster]:
    """Yield processes, with a name server, that are ended after the block."""
    with cluster(folder, "ASYNC_FLUSH") as made:
        made.keeps_events = False
        made.start_name_server()
        yield made


def start(made: Cluster, **properties: object) -> Address:
    """Start the broker with these properties, and return its address."""
    file = made.folder / "broker.properties"
    file.write_text("".join(f"{key}={value}\n" for key, value in properties.items()), encoding="utf-8")
    made.broker_options = ("--config", str(file))
    made.start_broker()
    return Address("127.0.0.1", made.broker_port)


def log_of(made: Cluster, name: str = "broker") -> str:
    return (made.folder / f"{name}.log").read_text(encoding="utf-8", errors="replace")


def until(condition: Callable[[], object], what: str) -> float:
    """Wait until the condition holds; return how many seconds that took."""
    began = time.monotonic()
    while not condition():
        assert time.monotonic() < began + SECONDS_MAX, what
        time.sleep(0.02)
    return time.monotonic() - began


def send(client: BlockingClient, body: bytes, queue: MessageQueue | None = QUEUE) -> str:
    """Send a message; return the status, or why there is none."""
    outcome = client.send(new_message(TOPIC, body), queue, timeout_ms=10_000)
    match outcome:
        case Sent():
            return outcome.status
        case Refused():
            return f"{outcome.status}: {outcome.remark}"
    return outcome.remark


def bodies(client: BlockingClient, count: int) -> list[bytes]:
    """Read queue 0 up to that many messages, or until nothing more is found."""
    found: list[bytes] = []
    offset = 0
    while len(found) < count:
        result = client.pull(QUEUE, offset)
        found += [stored.message.body for stored in result.messages]
        if result.next_offset <= offset:
            break
        offset = result.next_offset
    return found
