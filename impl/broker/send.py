"""SEND_MESSAGE and SEND_MESSAGE_V2: from a request to a stored message to a status.

See docs/protocol.md, "Sending" and "Put statuses".
"""

from typing import Final

from impl.broker.services import Services
from impl.broker.topics import DEFAULT_TOPIC, NOT_FOR_CLIENTS, name_problem
from impl.message import SYS_TRANSACTION_MASK, UNIQUE_KEY, WAIT, Message, decode_properties
from impl.remoting import headers
from impl.remoting.bodies import TopicConfig
from impl.remoting.channel import Channel, Reply
from impl.remoting.codes import RequestCode, ResponseCode
from impl.remoting.command import Command
from impl.remoting.dispatch import RefusedError
from impl.remoting.headers import SendRequest, SendResponse
from impl.store.delay import scheduled
from impl.store.results import STORED, PutResult, PutStatus
from spec.events import Kind

_CODES: Final = {
    PutStatus.PUT_OK: ResponseCode.SUCCESS,
    PutStatus.FLUSH_DISK_TIMEOUT: ResponseCode.FLUSH_DISK_TIMEOUT,
    PutStatus.MESSAGE_ILLEGAL: ResponseCode.MESSAGE_ILLEGAL,
    PutStatus.SERVICE_NOT_AVAILABLE: ResponseCode.SERVICE_NOT_AVAILABLE,
    PutStatus.UNKNOWN_ERROR: ResponseCode.SYSTEM_ERROR,
}
"""Every put status has its response code; a status without one fails the test that says so."""

_TRACING: Final = {"MSG_REGION": "DefaultRegion", "TRACE_ON": "true"}
"""Fields of every send response, errors included: Java clients take them for granted."""


async def send_message(services: Services, request: Command, channel: Channel) -> Reply:
    """Store the message and answer with one of the four stored statuses, or refuse."""
    try:
        header = read_header(request)
        topic = await _topic(services, header)
        message, wait = _message(services, request, header, topic, channel)
        placed = _scheduled(services, message)
    except RefusedError as refusal:
        return request.answer(refusal.code, _TRACING, remark=refusal.remark)
    result = await services.store.put(placed, wait=wait)
    code = _CODES[result.status]
    if result.status not in STORED:
        return request.answer(code, _TRACING, remark=result.reason)
    unique_key = message.properties.get(UNIQUE_KEY)
    if services.events is not None and not request.is_oneway:
        _report(services, placed, wait, result)
    response = SendResponse(result.message_id, message.queue_id, result.queue_offset, unique_key)
    return request.answer(code, {**headers.write(response), **_TRACING}, remark=result.reason or None)


def read_header(request: Command) -> SendRequest:
    """The header under its long or its one-letter names. Raises HeaderError."""
    if request.code == RequestCode.SEND_MESSAGE:
        return headers.read(SendRequest, request.fields)
    return headers.read_send_v2(request.fields)


async def _topic(services: Services, header: SendRequest) -> TopicConfig:
    if problem := name_problem(header.topic):
        raise RefusedError(ResponseCode.SYSTEM_ERROR, problem)
    if header.topic in NOT_FOR_CLIENTS:
        raise RefusedError(ResponseCode.NO_PERMISSION, f"nobody may send to topic {header.topic}")
    known = services.topics.get(header.topic)
    if known is not None:
        return known
    created = await services.topics.create_for_send(
        header.topic, header.default_topic or DEFAULT_TOPIC, header.default_topic_queue_nums
    )
    if created is None:
        raise RefusedError(ResponseCode.TOPIC_NOT_EXIST, f"topic {header.topic} does not exist")
    return created


def _message(
    services: Services, request: Command, header: SendRequest, topic: TopicConfig, channel: Channel
) -> tuple[Message, bool]:
    """The message to be stored, and whether its producer waits for the flush."""
    if header.batch:
        raise RefusedError(ResponseCode.MESSAGE_ILLEGAL, "batches are not supported")
    properties = decode_properties(header.properties or "")
    if properties.get("TRAN_MSG", "").lower() == "true" or header.sys_flag & SYS_TRANSACTION_MASK:
        raise RefusedError(ResponseCode.NO_PERMISSION, "transactional messages are not supported")
    wait = properties.pop(WAIT, "true").lower() != "false"
    properties["CLUSTER"] = services.config.cluster
    message = Message(
        topic=header.topic,
        body=request.body,
        properties=properties,
        queue_id=_queue_id(services, header.queue_id, topic),
        flag=header.flag,
        sys_flag=header.sys_flag,
        born_timestamp_ms=header.born_timestamp,
        born_host=channel.remote,
        store_host=services.address,
        reconsume_times=header.reconsume_times or 0,
    )
    return message, wait


def _scheduled(services: Services, message: Message) -> Message:
    try:
        return scheduled(message, services.config.store.delay_levels_ms)
    except ValueError as error:
        raise RefusedError(ResponseCode.MESSAGE_ILLEGAL, str(error)) from None


def _queue_id(services: Services, asked: int, topic: TopicConfig) -> int:
    queues = max(topic.read_queue_nums, topic.write_queue_nums)
    if asked >= queues:
        raise RefusedError(
            ResponseCode.SYSTEM_ERROR, f"queue {asked} of topic {topic.topic_name}, which has {queues} queues"
        )
    return asked if asked >= 0 else services.runtime.random.randrange(topic.write_queue_nums)


def _report(services: Services, message: Message, wait: bool, result: PutResult) -> None:
    assert services.events is not None
    ok = result.status is PutStatus.PUT_OK
    services.events.emit(
        Kind.SEND_ACK,
        msg_id=message.properties.get(UNIQUE_KEY) or result.message_id,
        topic=message.topic,
        queue_id=message.queue_id,
        queue_offset=result.queue_offset,
        commit_offset=result.commit_offset,
        status="SEND_OK" if ok else result.status.value,
        attrs={} if wait else {"wait": "false"},
    )
