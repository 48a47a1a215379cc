"""Keep the offsets of a group in SQLite instead of at the brokers.

Any store with the three methods of `OffsetStore` will do. The consumer asks it where to begin, and saves its
progress every few seconds and when it stops. So a message may be delivered again after a crash, as with the
offsets of brokers; offsets_in_database.py shows how to exclude that.

    mqproof serve --store /tmp/example-store &
    python examples/offsets_in_sqlite.py
"""

import asyncio
import os
import sqlite3
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from mqproof import MessageQueue, Producer, PushConsumer, ReceivedMessage, connect, new_message
from mqproof.client import ConsumeFrom, PushConsumerConfig

TOPIC, GROUP = "example_counters", "example_counters_readers"


class SqliteOffsets:
    """The offsets of one group, in one table."""

    def __init__(self, path: Path) -> None:
        self._database = sqlite3.connect(path)
        self._database.execute("CREATE TABLE IF NOT EXISTS progress (queue TEXT PRIMARY KEY, next INTEGER)")

    async def load(self, queue: MessageQueue) -> int | None:
        found = self._database.execute("SELECT next FROM progress WHERE queue = ?", (str(queue),)).fetchone()
        return None if found is None else int(found[0])

    async def save(self, offsets: Mapping[MessageQueue, int], *, reset: bool = False) -> None:
        """Store the offsets. Only an operator's reset moves one back: another member may be ahead."""
        keep = "next = excluded.next" if reset else "next = max(next, excluded.next)"
        rows = [(str(queue), offset) for queue, offset in offsets.items()]
        statement = f"INSERT INTO progress VALUES (?, ?) ON CONFLICT (queue) DO UPDATE SET {keep}"
        with self._database:  # one transaction
            self._database.executemany(statement, rows)

    async def release(self, queue: MessageQueue, offset: int) -> None:
        """Store the last offset of a queue that another member reads from now on."""
        await self.save({queue: offset})

    def close(self) -> None:
        self._database.close()


async def consume(namesrv: str, offsets: SqliteOffsets, count: int) -> list[bytes]:
    """Consume this many messages, and stop."""
    bodies: list[bytes] = []
    enough = asyncio.Event()

    async def listener(messages: Sequence[ReceivedMessage]) -> None:
        bodies.extend(message.body for message in messages)
        if len(bodies) >= count:
            enough.set()

    config = PushConsumerConfig(consume_from=ConsumeFrom.FIRST_OFFSET, offset_store=offsets)
    async with connect(namesrv) as session, PushConsumer(session, GROUP, listener, config) as consumer:
        await consumer.subscribe(TOPIC)
        async with asyncio.timeout(60):
            await enough.wait()
    return sorted(bodies)


async def main(namesrv: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for first in (1, 4):  # the second consumer continues where the first one stopped
            async with connect(namesrv) as session:
                producer = Producer(session)
                for number in range(first, first + 3):
                    await producer.send_or_raise(new_message(TOPIC, b"%d" % number))
            offsets = SqliteOffsets(Path(folder) / "offsets.db")
            print(await consume(namesrv, offsets, 3))
            offsets.close()


if __name__ == "__main__":
    asyncio.run(main(os.environ.get("NAMESRV_ADDR", "127.0.0.1:9876")))
