"""Connections, checks and tasks that end in the middle of their work, and tag expressions that are none.

See docs/reference/protocol/clients.md, "Name servers and routes", and transactions.md, "Checks".
"""

import asyncio
from typing import Final

from mqproof.conformance.adapters.client_calls.expectations import Expectations
from mqproof.conformance.adapters.client_calls.feed import Feed
from mqproof.conformance.adapters.client_calls.pulling import message, records
from mqproof.conformance.adapters.client_calls.scripted_servers import ScriptedServers, address, route
from mqproof.impl.client.connection.session import Session
from mqproof.impl.client.consuming.pull_consumer import PullConsumer
from mqproof.impl.client.consuming.scheduled_pull import ScheduledPull
from mqproof.impl.client.message_selector import MessageSelector
from mqproof.impl.client.model import MessageQueue
from mqproof.impl.client.producing.producer import ProducerConfig
from mqproof.impl.client.producing.transaction_producer import TransactionProducer, TransactionState
from mqproof.impl.remoting.message import Message, StoredMessage

_ROUTE, _CHECK, _END = 105, 39, 37
_CONDITIONS: Final = (
    "NOT TagA", "a AND b", "TagA or TagB", "a IS b", "x BETWEEN y", "a in b", "a CONTAINS b",
    "a || b AND c", "a = 1", "a > 1", "a < 1", "(a)", "a STARTSWITH b", "a ENDSWITH b",
)  # fmt: skip
_TAGS: Final = ("NOT", "AND", "a || NOT", "a b", "a || b || c", "", "||", "ä", "a-b_c.d", "NOTA b")


async def judge(expect: Expectations, servers: ScriptedServers) -> None:
    for text in _CONDITIONS:
        expect.refused(f"the tags {text!r}", ValueError, lambda text=text: MessageSelector.tag(text))  # type: ignore[misc]
    for text in _TAGS:
        found = expect.accepted(f"the tags {text!r}", lambda text=text: MessageSelector.tag(text))  # type: ignore[misc]
        expect.equal("the expression", text, found and found.expression)
    await _hung_up(expect, servers)
    await _checks(expect, servers)
    feed = Feed(servers)
    feed.clear(1)
    await _tasks(expect, feed)


async def _hung_up(expect: Expectations, servers: ScriptedServers) -> None:
    """A name server that ends the connection after an answer is not the next one that is asked."""
    servers.routes["A"] = route({"a": 1})
    session = Session([address("names-1"), address("names-2")], servers.runtime("client"), "h@i")
    await session.start()
    servers.take()

    async def asked() -> list[str]:
        await session.routes.refresh("A")
        return [each.server for each in servers.take(_ROUTE)]

    (used,) = await asked()
    for step in range(4):
        expect.equal(f"the name server while the connection lasts, {step}", [used], await asked())
        servers.hang_up(used)
        await asyncio.sleep(0.1)
        used = "names-2" if used == "names-1" else "names-1"
        expect.equal(f"the name server after the end of the connection, {step}", [used], await asked())
    await session.stop()


async def _checks(expect: Expectations, servers: ScriptedServers) -> None:
    """A producer that stops while it checks a transaction reports nothing for it, and raises nothing."""
    servers.routes["A"] = route({"a": 1})
    session = Session([address("names-1")], servers.runtime("client"), "h@i")
    await session.start()
    running: list[str] = []

    async def check(_message: StoredMessage, transaction_id: str) -> TransactionState:
        running.append(transaction_id)
        await asyncio.sleep(100)
        return TransactionState.COMMIT

    async def local(_message: Message, _transaction_id: str) -> TransactionState:
        return TransactionState.UNKNOWN

    producer = TransactionProducer(session, check, ProducerConfig("tg"))
    await producer.send(Message("A", b"1"), local)
    fields = {"tranStateTableOffset": "5", "commitLogOffset": "6", "msgId": "M1", "transactionId": "T1"}
    half = message(b"half", properties={"PGROUP": "tg", "TRAN_MSG": "true"}, sys_flag=4)
    servers.push_oneway("a", _CHECK, fields, records(half))
    await asyncio.sleep(1)
    expect.equal("the checks that run", 1, len(running))
    servers.take()
    await producer.stop()
    await asyncio.sleep(101)
    expect.equal("the ends that a stopped check reports", [], servers.take(_END))
    await session.stop()


async def _tasks(expect: Expectations, feed: Feed) -> None:
    """A task that is cancelled ends alone: the service still stops, and leaves its group."""
    session = await feed.session()
    service = ScheduledPull(session, "g")
    calls: list[int] = []

    async def task(_consumer: PullConsumer, queue: MessageQueue) -> int:
        calls.append(queue.queue_id)
        await asyncio.sleep(5)
        raise asyncio.CancelledError

    await service.start()
    await service.register("A", task)
    await asyncio.sleep(2)
    expect.equal("the tasks that run", [0], calls)
    feed.servers.take()
    await service.stop()
    codes = [each.code for each in feed.servers.take()]
    expect.equal("whether the stopped service leaves its group", True, 35 in codes)
    await session.stop()
