"""A web service that accepts orders and processes them in the background.

POST /orders sends a message and answers 202. A push consumer of the same process confirms the order, and
GET /orders/{number} shows its state. The session with the cluster lives as long as the application. The
producer is a dependency, which a test can override.

Create the topic first: a consumer looks for the route of a missing topic only every 30 seconds.

    pip install fastapi uvicorn
    mqproof serve --store /tmp/example-store &
    mqproof admin updateTopic -n 127.0.0.1:9876 -c DefaultCluster -t example_web_orders
    python -m uvicorn --app-dir examples fastapi_service:app
    curl -X POST localhost:8000/orders -H 'Content-Type: application/json' -d '{"number": "7", "item": "tea"}'
    curl localhost:8000/orders/7
"""

import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Annotated

from fastapi import Depends, FastAPI, HTTPException, Request
from pydantic import BaseModel

from mqproof import Producer, PushConsumer, ReceivedMessage, Refused, Sent, connect, new_message

TOPIC, GROUP = "example_web_orders", "example_web_orders_kitchen"
NAMESRV = os.environ.get("NAMESRV_ADDR", "127.0.0.1:9876")


class Order(BaseModel):
    number: str
    item: str


confirmed: dict[str, str] = {}
"""Order number to item. A real service keeps this in a database, because a message may arrive twice."""


async def confirm(messages: Sequence[ReceivedMessage]) -> None:
    for message in messages:
        order = Order.model_validate_json(message.body)
        confirmed[order.number] = order.item


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    async with connect(NAMESRV) as session, PushConsumer(session, GROUP, confirm) as consumer:
        app.state.producer = Producer(session)
        await consumer.subscribe(TOPIC)
        yield


app = FastAPI(title="Orders", lifespan=lifespan)


def producer_of(request: Request) -> Producer:
    found: Producer = request.app.state.producer
    return found


@app.post("/orders", status_code=202)
async def place(order: Order, producer: Annotated[Producer, Depends(producer_of)]) -> dict[str, str]:
    message = new_message(TOPIC, order.model_dump_json().encode(), keys=[order.number])
    match await producer.send(message):
        case Sent(message_id=message_id):
            return {"message_id": message_id}
        case Refused(remark=remark):
            raise HTTPException(503, f"the order is not accepted: {remark}")
        case _:
            raise HTTPException(504, "it is unknown whether the order is accepted")


@app.get("/orders/{number}")
async def show(number: str) -> dict[str, str]:
    if number not in confirmed:
        raise HTTPException(404, f"order {number} is not confirmed")
    return {"number": number, "item": confirmed[number], "state": "confirmed"}
