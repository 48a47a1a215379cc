"""Routes at their limits, and routes that no broker can have.

See docs/reference/protocol/clients.md, "Name servers and routes".
"""

import asyncio
import json
from collections.abc import Sequence

from mqproof.conformance.adapters.client_calls.expectations import Expectations
from mqproof.conformance.adapters.client_calls.scripted_servers import (
    SILENCE,
    ScriptedServers,
    address,
    route,
)
from mqproof.impl.client.connection.session import Session
from mqproof.impl.client.consuming.pull_consumer import PullConsumer
from mqproof.impl.client.model import ClientError, MessageQueue
from mqproof.impl.client.producing.producer import Producer, ProducerConfig
from mqproof.impl.remoting.message import Message

_ROUTE = 105


async def judge(expect: Expectations, servers: ScriptedServers) -> None:
    servers.routes |= {"A": route({"a": 1})}
    session = Session([address("names-1")], servers.runtime("client"), "h@i")
    await session.start()
    await _routes(expect, servers, session)
    await session.stop()


async def _routes(expect: Expectations, servers: ScriptedServers, session: Session) -> None:
    """Routes at their limits, and routes that no broker can have."""
    consumer = PullConsumer(session, "g")
    producer = Producer(session, ProducerConfig("g"))
    most = 65_536
    servers.routes["most"] = route({"a": most + 1})
    expect.equal("the most queues to read", most, len(await consumer.queues("most")))
    counts: list[int] = []

    def count(queues: Sequence[MessageQueue]) -> MessageQueue:
        counts.append(len(queues))
        return queues[-1]

    order = f"broker-a:{most + 1};broker-a;:7;broker-b:\u0663;broker-b:-1;x:y:2;"
    servers.routes |= {"most-written": route({"a": most + 1}), "ordered": route({"a": 1}, order=order)}
    for topic in ("most-written", "ordered"):
        await producer.send(Message(topic, b"1"), select=count)
    expect.equal("the most queues to write", [most, most + 2], counts)
    good = json.loads(route({"a": 1}))
    for wrong in (
        {"brokerDatas": [{"brokerAddrs": {"0": "nowhere"}, "brokerName": "broker-a", "cluster": "c"}]},
        {"filterServerTable": {"127.0.0.1:10911": ["127.0.0.1:10912", "127.0.0.1:x"]}},
        {"queueDatas": 1},
    ):
        servers.routes["wrong"] = json.dumps({**good, **wrong}).encode()
        error = await expect.fails(f"a route with {wrong}", ClientError, consumer.queues("wrong"))
        expect.equal("its text", True, "the route of wrong is invalid" in str(error))
    servers.routes["wrong"] = json.dumps({**good, "filterServerTable": {"127.0.0.1:10911": None}}).encode()
    expect.equal("a route without filter servers", 1, len(await consumer.queues("wrong")))
    del servers.routes["wrong"]
    expect.equal("a route that is gone", 1, len(await consumer.queues("wrong")))
    servers.take()
    servers.script("names-1", _ROUTE, SILENCE, SILENCE)
    await asyncio.sleep(66)
    topics = sorted({each.fields["topic"] for each in servers.take(_ROUTE)})
    expect.equal("the topics after a silence", ["most", "most-written", "ordered", "wrong"], topics)
