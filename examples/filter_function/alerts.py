"""Receive only the messages that a function selects. A filter server runs it beside the broker.

The function is WebAssembly, `alerts.wat`. A broker has filter servers only if its `filterServerEnable` is
true. It is off by default:

    pip install 'mqproof[filter]'
    mqproof serve --store /tmp/example-store &
    mqproof admin updateBrokerConfig -n 127.0.0.1:9876 -c DefaultCluster -k filterServerEnable -v true
    mqproof filter-server --broker 127.0.0.1:10911 &
    python examples/filter_function/alerts.py
"""

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path

from wasmtime import wat2wasm

from mqproof import Producer, PushConsumer, ReceivedMessage, connect, new_message
from mqproof.client import ConsumeFrom, MessageSelector, PushConsumerConfig

TOPIC, GROUP = "example_log_lines", "example_log_alerts"
LINES = ("started", "ALERT disk full", "ok", "ALER", "ALERT fan stopped", "stopped")
ALERTS = MessageSelector.function(bytes(wat2wasm(Path(__file__).with_name("alerts.wat").read_text("utf-8"))))


async def main(namesrv: str) -> None:
    received: list[str] = []
    complete = asyncio.Event()

    async def listener(messages: Sequence[ReceivedMessage]) -> None:
        received.extend(each.body.decode() for each in messages)
        if len(received) == 2:
            complete.set()

    config = PushConsumerConfig(consume_from=ConsumeFrom.FIRST_OFFSET)
    async with connect(namesrv) as session:
        producer = Producer(session)
        for line in LINES:
            await producer.send_or_raise(new_message(TOPIC, line.encode()))
        async with PushConsumer(session, GROUP, listener, config) as consumer:
            await consumer.subscribe(TOPIC, ALERTS)
            async with asyncio.timeout(60):
                await complete.wait()
    print("received", " and ".join(sorted(received)))


if __name__ == "__main__":
    asyncio.run(main(os.environ.get("NAMESRV_ADDR", "127.0.0.1:9876")))
