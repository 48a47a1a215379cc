"""Test an application with a real broker.

pip install mqproof pytest
python -m pytest examples/pytest_app
"""

import asyncio

from orders import running

from mqproof import LitePullConsumer, Producer, Sent, connect, new_message
from mqproof.client import ConsumeFrom, LitePullConfig

FROM_START = LitePullConfig(consume_from=ConsumeFrom.FIRST_OFFSET)


def test_an_order_gets_an_invoice(namesrv: str) -> None:
    assert asyncio.run(invoices(namesrv, {"7": "tea 3", "8": "coffee 2"})) == {"7": "6", "8": "6"}


async def invoices(namesrv: str, orders: dict[str, str]) -> dict[str, str]:
    """Send the orders to the running application, and return the total of each invoice."""
    totals: dict[str, str] = {}
    async with asyncio.timeout(30), connect(namesrv, client_id="test") as session:
        producer = Producer(session)
        for number, order in orders.items():
            assert isinstance(await producer.send(new_message("orders", order.encode(), keys=[number])), Sent)
        async with running(namesrv), LitePullConsumer(session, "test", FROM_START) as consumer:
            await consumer.subscribe("invoices")
            while totals.keys() != orders.keys():
                for message in await consumer.poll(timeout_ms=500):
                    totals[message.keys[0]] = message.body.decode()
    return totals
