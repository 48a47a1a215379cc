"""Requests that brokers send to a client. See docs/reference/protocol/clients.md, "Requests to clients"."""

from collections.abc import Mapping
from typing import Protocol

from mqproof.impl.client.connection.records import AnswerReader
from mqproof.impl.client.connection.waiting_replies import WaitingReplies
from mqproof.impl.client.model import MessageQueue
from mqproof.impl.remoting import bodies, headers, java_json
from mqproof.impl.remoting.bodies import ConsumedDirectly, ConsumerStatus, QueueOffsets, RunningInfo
from mqproof.impl.remoting.channel import Channel, Handler, Reply
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.command import Command
from mqproof.impl.remoting.headers import (
    CheckTransactionRequest,
    ConsumerRequest,
    ConsumerStatusRequest,
    ResetOffsetRequest,
)
from mqproof.impl.remoting.java_json import ObjectKey
from mqproof.impl.remoting.message import StoredMessage
from mqproof.impl.remoting.request_handler import RefusedError
from mqproof.impl.runtime.network import Address


class Member(Protocol):
    """A consumer that divides the queues of its group with other members."""

    def members_changed(self) -> None:
        """Handle that a member joined, left, or changed its subscriptions."""
        ...

    def reset_offsets(self, topic: str, offsets: Mapping[MessageQueue, int]) -> None:
        """Move the group to the offsets that an operator sets."""
        ...

    def progress(self, topic: str) -> Mapping[MessageQueue, int]:
        """Return the member's offsets in the queues of a topic."""
        ...

    def running_info(self) -> RunningInfo:
        """Return the queues that the member reads, and the messages that it holds and consumes."""
        ...

    async def consume_directly(self, message: StoredMessage, broker_name: str) -> ConsumedDirectly | None:
        """Pass a message to the listener, whatever queue it is from.

        Returns None if the member has no listener.
        """
        ...


class Checked(Protocol):
    """A producer that answers the checks of brokers. It must not block or raise."""

    def __call__(self, broker: Address, header: CheckTransactionRequest, message: StoredMessage, /) -> None:
        """Find the end of the transaction and report it to the broker, in the background."""
        ...


def processors(
    members: Mapping[str, Member], checked: Mapping[str, Checked], replies: WaitingReplies
) -> dict[int, Handler]:
    """Return the handlers by request code.

    `members` holds the current members, and `checked` the producers that answer checks, both by group. They
    are read on each request. `replies` has the requests that wait for a reply.
    """
    reader = AnswerReader()

    def ids_changed(request: Command, channel: Channel) -> Reply:  # noqa: ARG001  # a Handler's signature
        # Notify all groups, whichever the request names. This makes up for a notification that a group
        # missed.
        for member in list(members.values()):
            member.members_changed()
        return request.answer(ResponseCode.SUCCESS)

    def reset(request: Command, channel: Channel) -> Reply:  # noqa: ARG001
        header = headers.read(ResetOffsetRequest, request.fields)
        table = java_json.read(QueueOffsets, request.body).offset_table
        named = {key.as_a(bodies.MessageQueue): offset for key, offset in table.items()}
        offsets = {MessageQueue(q.topic, q.broker_name, q.queue_id): n for q, n in named.items()}
        _member(members, header.group).reset_offsets(header.topic, offsets)
        return request.answer(ResponseCode.SUCCESS)

    def status(request: Command, channel: Channel) -> Reply:  # noqa: ARG001
        header = headers.read(ConsumerStatusRequest, request.fields)
        progress = _member(members, header.group).progress(header.topic)
        table = {
            ObjectKey(bodies.MessageQueue(queue.broker_name, queue.queue_id, queue.topic)): offset
            for queue, offset in progress.items()
        }
        return request.answer(
            ResponseCode.SUCCESS, body=java_json.write(ConsumerStatus(message_queue_table=table))
        )

    def running(request: Command, channel: Channel) -> Reply:  # noqa: ARG001
        header = headers.read(ConsumerRequest, request.fields)
        info = _member(members, header.consumer_group).running_info()
        return request.answer(ResponseCode.SUCCESS, body=java_json.write(info))

    async def consume(request: Command, channel: Channel) -> Reply:  # noqa: ARG001
        header = headers.read(ConsumerRequest, request.fields)
        member = _member(members, header.consumer_group)
        message = await _one_message(request, reader)
        result = await member.consume_directly(message, header.broker_name or "")
        if result is None:
            remark = f"the consumer of group {header.consumer_group} polls and has no listener"
            raise RefusedError(ResponseCode.SYSTEM_ERROR, remark)
        return request.answer(ResponseCode.SUCCESS, body=java_json.write(result))

    return {
        RequestCode.CHECK_TRANSACTION_STATE: _checks(checked, reader),
        RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT: replies.pushed,
        RequestCode.GET_CONSUMER_RUNNING_INFO: running,
        RequestCode.CONSUME_MESSAGE_DIRECTLY: consume,
        RequestCode.NOTIFY_CONSUMER_IDS_CHANGED: ids_changed,
        RequestCode.RESET_CONSUMER_CLIENT_OFFSET: reset,
        RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT: status,
    }


def _checks(checked: Mapping[str, Checked], reader: AnswerReader) -> Handler:
    """Return the handler of a broker's check of a transaction."""

    async def check(request: Command, channel: Channel) -> Reply:
        header = headers.read(CheckTransactionRequest, request.fields)
        message = await _one_message(request, reader)
        producer = checked.get(message.message.properties.get("PGROUP", ""))
        if producer is not None:
            producer(channel.remote, header, message)
        return None

    return check


async def _one_message(request: Command, reader: AnswerReader) -> StoredMessage:
    try:
        (message,), _ = await reader.read(request.body, lambda _: True)
    except ValueError as error:
        raise RefusedError(ResponseCode.SYSTEM_ERROR, f"not one message: {error}") from None
    return message


def _member(members: Mapping[str, Member], group: str) -> Member:
    member = members.get(group)
    if member is None:
        raise RefusedError(ResponseCode.SYSTEM_ERROR, f"this client has no consumer of group {group}")
    return member
