"""An application of FastStream: a handler that consumes orders and sends bills, checked by pydantic.

A handler that fails gets its message again later. RocketMQ's own options are in reach: tags, keys, delays.

    pip install 'mqproof[faststream]' 'faststream[cli]'
    mqproof serve --store /tmp/example-store &
    python -m faststream run --app-dir examples faststream_app:app &
    python examples/faststream_app.py
"""

import asyncio
import os

from faststream import FastStream
from faststream.exceptions import RejectMessage
from pydantic import BaseModel

from mqproof.integrations import FastStreamBroker, FastStreamResponse

NAMESRV = os.environ.get("NAMESRV_ADDR", "127.0.0.1:9876")
PRICES = {"tea": 2, "coffee": 3}


class Order(BaseModel):
    number: str
    item: str


class Bill(BaseModel):
    number: str
    amount: int


broker = FastStreamBroker(NAMESRV)
app = FastStream(broker)


@broker.subscriber("example_orders", group="example_billing")
@broker.publisher("example_bills")
async def bill(order: Order) -> FastStreamResponse:
    if order.item not in PRICES:
        raise RejectMessage  # a dead letter at once: another attempt would fail too
    made = Bill(number=order.number, amount=PRICES[order.item])
    return FastStreamResponse(made, keys=(order.number,))


@broker.subscriber("example_prices", group="example_price_list")
async def price(item: str) -> int:
    """Answer a request."""
    return PRICES[item]


async def main() -> None:
    async with broker:
        await broker.publish(Order(number="7", item="tea"), "example_orders", keys=["7"])
        answer = await broker.request("coffee", "example_prices", timeout=30)
        print("a coffee costs", await answer.decode())


if __name__ == "__main__":
    asyncio.run(main())
