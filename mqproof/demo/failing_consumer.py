"""A consumer whose listener fails for every tenth message at first, so that the broker delivers it again.

Run as `python -m mqproof.demo.failing_consumer NAMESRV TOPIC GROUP COUNT SECONDS --events FILE`. Exits with 0
once COUNT messages are consumed, and with 3 if that takes longer than SECONDS.
"""

import argparse
import asyncio
from collections.abc import Sequence

from mqproof.impl.client.connection.connect import connect
from mqproof.impl.client.consuming.push_consumer import PushConsumer, PushConsumerConfig
from mqproof.impl.client.consuming.start_offset import ConsumeFrom
from mqproof.impl.client.model import ReceivedMessage, RetryLater
from mqproof.impl.runtime.clock import SystemClock
from mqproof.impl.runtime.event_log import EventLog

_FAILS_EVERY = 10
_INCONCLUSIVE = 3


class Listener:
    """Consumes messages; fails for the first delivery of every tenth."""

    def __init__(self, count: int) -> None:
        self._missing = count
        self._delivered = 0
        self.done = asyncio.Event()

    async def __call__(self, messages: Sequence[ReceivedMessage]) -> RetryLater | None:
        self._delivered += 1
        if self._delivered % _FAILS_EVERY == 0 and not messages[0].reconsume_times:
            return RetryLater(delay_level=1)
        self._missing -= len(messages)
        if self._missing <= 0:
            self.done.set()
        return None


async def consume(name_server: str, topic: str, group: str, count: int, seconds: float, events: str) -> int:
    """Consume `count` messages of the topic; returns the exit code."""
    listener = Listener(count)
    config = PushConsumerConfig(consume_from=ConsumeFrom.FIRST_OFFSET)
    log = EventLog.to_file(events, group, SystemClock())
    async with (
        connect(name_server) as session,
        PushConsumer(session, group, listener, config, log) as consumer,
    ):
        await consumer.subscribe(topic)
        try:
            async with asyncio.timeout(seconds):
                await listener.done.wait()
        except TimeoutError:
            return _INCONCLUSIVE
    return 0


def main() -> None:
    """Parse the command line; see the module's description."""
    parser = argparse.ArgumentParser(prog="python -m mqproof.demo.failing_consumer")
    for name in ("name_server", "topic", "group"):
        parser.add_argument(name)
    parser.add_argument("count", type=int)
    parser.add_argument("seconds", type=float)
    parser.add_argument("--events", required=True)
    asked = parser.parse_args()
    raise SystemExit(asyncio.run(consume(**vars(asked))))


if __name__ == "__main__":
    main()
