"""Write a row and send a message, both or neither: a transactional message with SQLite.

The message of an order is sent if and only if its row is committed, also if the program is killed at any
step. A check asks the database: a transaction whose row is there has committed. One that is not there never
will, because a local transaction first claims its id, and a check claims the ids that it does not find.

    mqproof serve --store /tmp/example-store &
    python examples/transactions.py place 3      # place three orders
    python examples/transactions.py settle       # answer checks, and compare messages with rows

`DIE_AT` kills the program at a step: half, claimed, row, committed or reported.
"""

import asyncio
import os
import sqlite3
import sys
import time

from mqproof import LitePullConsumer, Message, connect, new_message
from mqproof.client import (
    ConsumeFrom,
    LitePullConfig,
    ProducerConfig,
    StoredMessage,
    TransactionProducer,
    TransactionState,
)

TOPIC, GROUP, READERS = "example_orders", "example_orders_shop", "example_orders_readers"
DATABASE = os.environ.get("EXAMPLE_DATABASE", "/tmp/example-orders.sqlite")
SETTLE_S = float(os.environ.get("EXAMPLE_SETTLE_S", "60"))


def database() -> sqlite3.Connection:
    connection = sqlite3.connect(DATABASE, isolation_level=None, timeout=10)
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE IF NOT EXISTS claims (transaction_id TEXT PRIMARY KEY, committed INT)")
    connection.execute("CREATE TABLE IF NOT EXISTS orders (name TEXT PRIMARY KEY, transaction_id TEXT)")
    return connection


def die_at(step: str) -> None:
    """Stop the process at this step, without any cleaning up."""
    if os.environ.get("DIE_AT") == step:
        os._exit(9)


def place(message: Message, transaction_id: str) -> TransactionState:
    """Run the local transaction: write the order, unless a check has rolled it back already."""
    die_at("half")
    connection = database()
    connection.execute("BEGIN IMMEDIATE")
    claim = "INSERT INTO claims VALUES (?, 1) ON CONFLICT DO NOTHING"
    if not connection.execute(claim, [transaction_id]).rowcount:
        connection.execute("ROLLBACK")
        return TransactionState.ROLLBACK
    die_at("claimed")
    connection.execute("INSERT INTO orders VALUES (?, ?)", [message.body.decode(), transaction_id])
    die_at("row")
    connection.execute("COMMIT")
    die_at("committed")
    return TransactionState.COMMIT


def check(_message: StoredMessage, transaction_id: str) -> TransactionState:
    """Answer a broker: the transaction has committed, or it is rolled back now and for ever."""
    connection = database()
    connection.execute("INSERT INTO claims VALUES (?, 0) ON CONFLICT DO NOTHING", [transaction_id])
    found = connection.execute("SELECT committed FROM claims WHERE transaction_id = ?", [transaction_id])
    return TransactionState.COMMIT if found.fetchone()[0] else TransactionState.ROLLBACK


async def settle(namesrv: str) -> None:
    """Answer the checks of earlier runs until the messages equal the rows."""
    rows = {name for (name,) in database().execute("SELECT name FROM orders")}
    seen: list[str] = []
    config = LitePullConfig(consume_from=ConsumeFrom.FIRST_OFFSET)
    async with connect(namesrv) as session, LitePullConsumer(session, READERS, config) as consumer:
        await consumer.subscribe(TOPIC)
        producer = TransactionProducer(session, check, ProducerConfig(GROUP))
        await session.greet()
        end_s = time.monotonic() + SETTLE_S
        while time.monotonic() < end_s:
            seen += [message.body.decode() for message in await consumer.poll(timeout_ms=500)]
        await producer.stop()
    print("rows:    ", *sorted(rows))
    print("messages:", *sorted(seen))
    if sorted(seen) != sorted(rows):
        raise SystemExit("rows and messages differ")


async def place_all(namesrv: str, count: int) -> None:
    async with connect(namesrv) as session:
        producer = TransactionProducer(session, check, ProducerConfig(GROUP))
        for number in range(count):
            order = f"{os.getpid()}-{number}"
            outcome = await producer.send(new_message(TOPIC, order.encode()), place)
            die_at("reported")
            print(order, outcome.state.name)
        await producer.stop()


if __name__ == "__main__":
    address = os.environ.get("NAMESRV_ADDR", "127.0.0.1:9876")
    is_settling = sys.argv[1:] == ["settle"]
    asyncio.run(settle(address) if is_settling else place_all(address, int(sys.argv[2])))
