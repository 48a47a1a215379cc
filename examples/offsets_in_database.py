"""Process each message exactly once: its effect and the group's offset are in one database transaction.

The offset store is a class of the application with the methods of `OffsetStore`. The consumer asks it where
to begin. It ignores the consumer's own saves, because the listener stores the offset together with the
effect. A message that is delivered again is recognised by its offset.

    mqproof serve --store /tmp/example-store &
    python examples/offsets_in_database.py
"""

import asyncio
import os
import sqlite3
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from mqproof import MessageQueue, Producer, PushConsumer, ReceivedMessage, connect, new_message
from mqproof.client import ConsumeFrom, PushConsumerConfig

TOPIC, GROUP = "example_deposits", "example_ledger"
AMOUNTS = [5, 20, 100, 7]


class Ledger:
    """A balance and the offsets, in one SQLite database. It is also the consumer's offset store."""

    def __init__(self, path: Path) -> None:
        self._database = sqlite3.connect(path, isolation_level=None)
        self._database.executescript(
            "CREATE TABLE IF NOT EXISTS payment (amount INTEGER);"
            "CREATE TABLE IF NOT EXISTS progress (queue TEXT PRIMARY KEY, next INTEGER);"
        )

    async def load(self, queue: MessageQueue) -> int | None:
        return self._next(queue)

    async def save(self, offsets: Mapping[MessageQueue, int], *, reset: bool = False) -> None:
        """Do nothing unless an operator resets the offset: `receive` has stored it already."""
        for queue, offset in offsets.items():
            if reset or self._next(queue) is None:
                self._set(queue, offset)

    async def release(self, queue: MessageQueue, offset: int) -> None:
        """Do nothing, for the same reason."""

    async def receive(self, messages: Sequence[ReceivedMessage]) -> None:
        """The listener: one transaction for the payment and the offset behind it."""
        for message in messages:
            if message.queue_offset < (self._next(message.queue) or 0):
                continue  # delivered again
            self._database.execute("BEGIN")
            self._database.execute("INSERT INTO payment VALUES (?)", (int(message.body),))
            self._set(message.queue, message.queue_offset + 1)
            self._database.execute("COMMIT")

    def balance(self) -> int:
        (total,) = self._database.execute("SELECT coalesce(sum(amount), 0) FROM payment").fetchone()
        return int(total)

    def close(self) -> None:
        self._database.close()

    def _next(self, queue: MessageQueue) -> int | None:
        found = self._database.execute("SELECT next FROM progress WHERE queue = ?", (str(queue),)).fetchone()
        return None if found is None else int(found[0])

    def _set(self, queue: MessageQueue, offset: int) -> None:
        self._database.execute("INSERT OR REPLACE INTO progress VALUES (?, ?)", (str(queue), offset))


async def consume(namesrv: str, ledger: Ledger, expected: int) -> None:
    """Consume until the balance is as expected. One queue at a time, so that its messages are in order."""
    config = PushConsumerConfig(orderly=True, consume_from=ConsumeFrom.FIRST_OFFSET, offset_store=ledger)
    async with connect(namesrv) as session, PushConsumer(session, GROUP, ledger.receive, config) as consumer:
        await consumer.subscribe(TOPIC)
        async with asyncio.timeout(60):
            while ledger.balance() < expected:
                await asyncio.sleep(0.05)


async def main(namesrv: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ledger.db"
        total = 0
        for _ in range(2):  # the second consumer continues where the first one stopped
            async with connect(namesrv) as session:
                producer = Producer(session)
                for amount in AMOUNTS:
                    await producer.send_or_raise(new_message(TOPIC, b"%d" % amount))
            total += sum(AMOUNTS)
            ledger = Ledger(path)
            await consume(namesrv, ledger, total)
            print("balance", ledger.balance())
            ledger.close()


if __name__ == "__main__":
    asyncio.run(main(os.environ.get("NAMESRV_ADDR", "127.0.0.1:9876")))
