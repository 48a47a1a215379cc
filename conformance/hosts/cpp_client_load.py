"""The load of `mqproof bench client` on Apache's C++ client, by its Python wheel `rocketmq`.

`client_load.py` is the same for our client and has the same arguments. Callbacks run in threads of the C++
library. A send whose callback reports an error ends the program. Bodies are text, because the wheel ends a
body at its first zero byte.
"""

import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

from rocketmq.client import Message, Producer, PushConsumer

_WARM_SENDS: Final = 2_000
_WAIT_S: Final = 300.0
_STAMP_BYTES: Final = 20


def main(arguments: Sequence[str]) -> None:
    """Run one load and write its result."""
    name_server, kind, topic = arguments[:3]
    count, size, number = map(int, arguments[3:])
    if kind == "send":
        print(_send(name_server, topic, count, size, number))
    elif kind == "block":
        print(_block(name_server, topic, count, size))
    elif kind == "consume":
        print(_consume(name_server, topic, count))
    else:
        print(*_latency(name_server, topic, count, size, number))


class _Sending:
    """Sends with a limited number of outstanding messages."""

    def __init__(self, producer: Producer, outstanding: int) -> None:
        self._producer = producer
        self._outstanding = outstanding
        self._free = threading.BoundedSemaphore(outstanding)
        self._errors: list[object] = []

    def send(self, message: Message) -> None:
        if not self._free.acquire(timeout=_WAIT_S):
            raise SystemExit("no send ended in time")
        self._producer.send_async(message, self._sent, self._failed)

    def wait(self) -> None:
        """Wait until all sends ended. Raises SystemExit: a send failed, or did not end."""
        for _ in range(self._outstanding):
            if not self._free.acquire(timeout=_WAIT_S):
                raise SystemExit("not all sends ended in time")
        self._free.release(self._outstanding)
        if self._errors:
            raise SystemExit(f"{len(self._errors)} sends failed: {self._errors[0]}")

    def _sent(self, _: object) -> None:
        self._free.release()

    def _failed(self, error: object) -> None:
        self._errors.append(error)
        self._free.release()


def _send(name_server: str, topic: str, count: int, size: int, outstanding: int) -> float:
    producer = _started(name_server)
    sending = _Sending(producer, outstanding)
    body = b"x" * size
    for number in (min(count, _WARM_SENDS), count):
        began = time.perf_counter()
        for _ in range(number):
            sending.send(_message(topic, body))
        sending.wait()
        seconds = time.perf_counter() - began
    producer.shutdown()
    return count / seconds


def _block(name_server: str, topic: str, count: int, size: int) -> float:
    producer = _started(name_server)
    body = b"x" * size
    for number in (min(count, _WARM_SENDS), count):
        began = time.perf_counter()
        for _ in range(number):
            if (sent := producer.send_sync(_message(topic, body))).status != 0:
                raise SystemExit(f"{sent}")
        seconds = time.perf_counter() - began
    producer.shutdown()
    return count / seconds


def _consume(name_server: str, topic: str, count: int) -> float:
    received, began = 0, 0.0
    lock, done = threading.Lock(), threading.Event()

    def listener(_: object) -> None:
        nonlocal received, began
        with lock:
            began = began or time.perf_counter()
            received += 1
            if received >= count:
                done.set()

    consumer = _subscribed(name_server, topic, listener)
    if not done.wait(_WAIT_S):
        raise SystemExit(f"{received} of {count} messages were consumed in time")
    seconds = time.perf_counter() - began
    consumer.shutdown()
    return count / seconds


def _latency(name_server: str, topic: str, count: int, size: int, rate: int) -> tuple[float, float]:
    delays: list[float] = []
    done = threading.Event()

    def listener(message: Any) -> None:
        delays.append((time.perf_counter_ns() - int(message.body[:_STAMP_BYTES])) / 1e6)
        if len(delays) >= count:
            done.set()

    consumer = _subscribed(name_server, topic, listener)
    producer = _started(name_server)
    now = time.perf_counter_ns()
    producer.send_sync(_message(topic, _stamped(now, size)))  # opens the connection, so that no send fails
    sending = _Sending(producer, count)
    began = time.perf_counter_ns()
    for number in range(count):
        due = began + number * 1_000_000_000 // rate
        if (wait := due - time.perf_counter_ns()) > 0:
            time.sleep(wait / 1e9)
        sending.send(_message(topic, _stamped(due, size)))
    sending.wait()
    if not done.wait(_WAIT_S):
        raise SystemExit(f"{len(delays)} of {count} messages were consumed in time")
    consumer.shutdown()
    producer.shutdown()
    later = sorted(delays[count // 2 : count])  # the first half warms the connection
    return later[len(later) // 2], later[len(later) * 99 // 100]


def _stamped(at_ns: int, size: int) -> bytes:
    return b"%0*d" % (_STAMP_BYTES, at_ns) + b"x" * (size - _STAMP_BYTES)


def _message(topic: str, body: bytes) -> Message:
    message = Message(topic)
    message.set_body(body)
    return message


def _started(name_server: str) -> Producer:
    producer = Producer("load")
    producer.set_namesrv_addr(name_server)
    producer.start()
    return producer


def _subscribed(name_server: str, topic: str, listener: Callable[[Any], None]) -> PushConsumer:
    consumer = PushConsumer(f"load_{time.time_ns()}")
    consumer.set_namesrv_addr(name_server)
    consumer.subscribe(topic, listener)
    consumer.start()
    return consumer


if __name__ == "__main__":
    main(sys.argv[1:])
