"""Our broker in a thread of this process, with sockets and files, whose processor time can be read alone."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from mqproof.impl.embedded.embedded_broker import EmbeddedBroker
from mqproof.impl.embedded.loop_thread import LoopThread
from mqproof.impl.runtime.network import Address


@dataclass(frozen=True, slots=True)
class ThreadedBroker:
    address: Address
    cpu_s: Callable[[], float]
    """Returns the processor time of the broker's thread so far."""


@contextmanager
def threaded_broker(store: Path) -> Iterator[ThreadedBroker]:
    """Yield a running broker; it is stopped after the block."""
    broker, thread = EmbeddedBroker(store=store, sockets=True), LoopThread("broker")
    thread.start_with(broker.start())
    try:
        yield ThreadedBroker(Address.parse(broker.address), lambda: thread.call(time.thread_time))
    finally:
        thread.end_after(broker.stop())
