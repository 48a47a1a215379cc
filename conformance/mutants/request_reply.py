"""Mutants of requests and replies, used to judge the suite. Each replaces one rule by a wrong one."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from mqproof.conformance.mutants.mutant import Mutant, by_name
from mqproof.impl.broker.processors import replies
from mqproof.impl.broker.services import Services
from mqproof.impl.broker.state.clients import ClientTable
from mqproof.impl.client.connection.waiting_replies import WaitingReplies
from mqproof.impl.client.producing.producer import Producer
from mqproof.impl.remoting.channel import Channel, Reply
from mqproof.impl.remoting.codes import ResponseCode
from mqproof.impl.remoting.command import Command
from mqproof.impl.remoting.headers import SendRequest
from mqproof.impl.remoting.message import Message
from mqproof.impl.runtime.network import Address

_push, _pushed, _first_of = replies._push, WaitingReplies.pushed, Producer._first_of
_producer_channel = ClientTable.producer_channel


def _any_producer(table: ClientTable, client_id: str) -> Channel | None:
    """Returns the connection of another producer if there is one; otherwise that of the requester."""
    own = _producer_channel(table, client_id)
    others = [channel for members in table.producers().values() for channel in members if channel is not own]
    return others[0] if own is not None and others else own


def _any_waiting(waiting: WaitingReplies, _correlation_id: str, message: Message) -> None:
    """Gives a reply to the request that was sent last."""
    for reply in reversed(waiting._waiting.values()):
        if not reply.done():
            reply.set_result(message)
            return


async def _answered_at_once(
    services: Services, header: SendRequest, properties: Mapping[str, str], body: bytes, sender: Address
) -> str | None:
    """Pushes the reply, and considers it confirmed at once."""
    if services.clients.producer_channel(properties["REPLY_TO_CLIENT"]) is None:
        return "gone"
    task = asyncio.ensure_future(_push(services, header, properties, body, sender))
    _TASKS.add(task)
    task.add_done_callback(_TASKS.discard)
    await asyncio.sleep(0.01)
    return None


_TASKS: Final[set[asyncio.Future[Any]]] = set()


def _late_refused(waiting: WaitingReplies, request: Command, channel: Channel) -> Reply:
    """Refuses a reply that no request waits for, so that its sender replies again, in vain."""
    before = sum(not reply.done() for reply in waiting._waiting.values())
    answer = _pushed(waiting, request, channel)
    if sum(not reply.done() for reply in waiting._waiting.values()) == before:
        return request.answer(ResponseCode.SYSTEM_ERROR, remark="no request waits for this reply")
    return answer


def _waits_longer(producer: Producer, reply: Any, sending: Any, deadline_s: float) -> Awaitable[None]:
    """Returns a reply that comes after the time limit."""
    return _first_of(producer, reply, sending, deadline_s + 10)


async def _waits_forever(
    _producer: Producer, reply: asyncio.Future[Message], _sending: object, _deadline_s: float
) -> None:
    """Waits without a time limit."""
    await asyncio.wait([reply])


def _mutant(name: str, defect: str, breaks: str, where: str, wrong: Callable[..., Any]) -> Mutant:
    return Mutant(name, defect, breaks, f"mqproof.impl.{where}", wrong)


_WAITING: Final = "client.connection.waiting_replies:WaitingReplies"
_PRODUCER: Final = "client.producing.producer:Producer"

MUTANTS: Final = by_name(
    _mutant(
        "reply-to-any-client", "a reply goes to another client than its requester", "REPLY-1",
        "broker.state.clients:ClientTable.producer_channel", _any_producer,
    ),
    _mutant(
        "correlation-not-compared", "a reply ends any request that waits", "REPLY-1",
        f"{_WAITING}.give", _any_waiting,
    ),
    _mutant(
        "late-reply-given", "a request ends with a reply after its time limit", "REPLY-2",
        f"{_PRODUCER}._first_of", _waits_longer,
    ),
    _mutant(
        "answered-when-pushed", "the broker does not wait until the client confirms a reply", "REPLY-3",
        "broker.processors.replies:_push", _answered_at_once,
    ),
    _mutant(
        "no-time-limit", "a request without a reply waits forever", "REPLY-4",
        f"{_PRODUCER}._first_of", _waits_forever,
    ),
    _mutant(
        "late-reply-refused", "a client refuses a reply that no request waits for", "SPEC-1",
        f"{_WAITING}.pushed", _late_refused,
    ),
)  # fmt: skip
"""The mutants by name."""
