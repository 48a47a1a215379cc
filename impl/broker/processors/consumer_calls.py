"""Administrators' requests to a consumer, forwarded by the broker over the consumer's connection.

See docs/reference/protocol/administration.md, "Administration of a broker".
"""

import asyncio
from collections.abc import Mapping
from typing import Final

from mqproof.impl.broker.services import Processor, Services
from mqproof.impl.remoting import headers, java_json
from mqproof.impl.remoting.bodies import ConsumerStatus
from mqproof.impl.remoting.channel import Channel, RemotingError, Reply
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.command import Command, new_request
from mqproof.impl.remoting.headers import ConsumerRequest, ConsumerStatusRequest
from mqproof.impl.remoting.java_json import ObjectKey
from mqproof.impl.remoting.message import parse_offset_message_id
from mqproof.impl.remoting.request_handler import RefusedError

_CALL_TIMEOUT_S: Final = 10.0
_STATUS_TIMEOUT_S: Final = 5.0
CALLABLE_VERSION: Final = 62
"""The first version that answers GET_CONSUMER_RUNNING_INFO and CONSUME_MESSAGE_DIRECTLY."""
NOTIFIABLE_VERSION: Final = 28
"""The first version that knows RESET_CONSUMER_CLIENT_OFFSET and GET_CONSUMER_STATUS_FROM_CLIENT."""


async def running_info(services: Services, request: Command, channel: Channel) -> Reply:  # noqa: ARG001
    """Return a consumer's report of its current state."""
    header = headers.read(ConsumerRequest, request.fields)
    return await _forward(services, request, header, request.fields)


async def consume_directly(services: Services, request: Command, channel: Channel) -> Reply:  # noqa: ARG001
    """Have a consumer consume a message, whatever its queue and offset."""
    header = headers.read(ConsumerRequest, request.fields)
    fields = {**request.fields, "brokerName": services.config.name}
    return await _forward(services, request, header, fields, _message(services, header.msg_id or ""))


async def consumer_status(services: Services, request: Command, channel: Channel) -> Reply:  # noqa: ARG001
    """Return the offsets in a topic's queues that the members of a group report.

    Members that do not answer are left out.
    """
    header = headers.read(ConsumerStatusRequest, request.fields)
    group = services.clients.consumer_group(header.group)
    members = {
        one.client_id: member_channel
        for member_channel, one in (group.members.items() if group else ())
        if one.version >= NOTIFIABLE_VERSION and header.client_addr in (None, "", one.client_id)
    }
    if not members:
        raise RefusedError(ResponseCode.CONSUMER_NOT_ONLINE, f"no such consumer of group {header.group}")
    answers = await asyncio.gather(*(_status(one, header) for one in members.values()))
    table = dict(zip(members, answers, strict=True))
    status = ConsumerStatus({client: found for client, found in table.items() if found is not None})
    return request.answer(ResponseCode.SUCCESS, body=java_json.write(status))


async def _forward(
    services: Services,
    request: Command,
    header: ConsumerRequest,
    fields: Mapping[str, str],
    body: bytes = b"",
) -> Command:
    group = services.clients.consumer_group(header.consumer_group)
    consumer = group.channel_of(header.client_id or "") if group else None
    if group is None or consumer is None:
        remark = f"consumer {header.client_id} of group {header.consumer_group} is not connected"
        raise RefusedError(ResponseCode.SYSTEM_ERROR, remark)
    if group.members[consumer].version < CALLABLE_VERSION:
        raise RefusedError(
            ResponseCode.SYSTEM_ERROR, f"consumer {header.client_id} is too old for this request"
        )
    try:
        answer = await consumer.invoke(new_request(request.code, dict(fields), body), _CALL_TIMEOUT_S)
    except RemotingError as error:
        raise RefusedError(
            ResponseCode.CONSUME_MSG_TIMEOUT, f"consumer {header.client_id} did not answer: {error}"
        ) from None
    return request.answer(answer.code, body=answer.body, remark=answer.remark)


async def _status(consumer: Channel, header: ConsumerStatusRequest) -> dict[ObjectKey, int] | None:
    request = new_request(RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT, headers.write(header))
    try:
        answer = await consumer.invoke(request, _STATUS_TIMEOUT_S)
        return java_json.read(ConsumerStatus, answer.body).message_queue_table
    except (RemotingError, java_json.BodyError):
        return None


def _message(services: Services, message_id: str) -> bytes:
    """Return the record with this offset message id. Raises RefusedError."""
    try:
        _, commit_offset = parse_offset_message_id(message_id)
    except ValueError as error:
        raise RefusedError(ResponseCode.SYSTEM_ERROR, str(error)) from None
    record = services.store.record_at(commit_offset)
    if record is None:
        raise RefusedError(ResponseCode.SYSTEM_ERROR, f"there is no message {message_id}")
    return record


PROCESSORS: Final[dict[int, Processor]] = {
    RequestCode.GET_CONSUMER_RUNNING_INFO: running_info,
    RequestCode.CONSUME_MESSAGE_DIRECTLY: consume_directly,
    RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS: consumer_status,
}
