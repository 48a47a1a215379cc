"""SEND_REPLY_MESSAGE: pass a reply on to the client that requested it, and store it in the reply topic.

See docs/reference/protocol/requests-and-replies.md; spec/tla/RequestReply.tla has the same steps.
"""

from collections.abc import Mapping
from typing import Final

from mqproof.impl.broker.processors.send import read_header, refused
from mqproof.impl.broker.requests.checks import require_master, require_writable_broker
from mqproof.impl.broker.services import Processor, Services
from mqproof.impl.remoting import headers
from mqproof.impl.remoting.channel import Channel, RemotingError, Reply
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.command import Command, new_request
from mqproof.impl.remoting.headers import HeaderError, PushReplyRequest, SendRequest
from mqproof.impl.remoting.message import (
    CORRELATION_ID,
    DELAY,
    PUSH_REPLY_TIME,
    REPLY_TO_CLIENT,
    SYS_TRANSACTION_MASK,
    WAIT,
    Message,
    decode_properties,
    encode_properties,
)
from mqproof.impl.remoting.request_handler import RefusedError
from mqproof.impl.remoting.topic_names import reply_topic
from mqproof.impl.runtime.clock import now_ms
from mqproof.impl.runtime.network import Address
from mqproof.impl.store.results import STORED, PutResult

_PUSH_TIMEOUT_S: Final = 10.0
_NOT_IN_REPLIES: Final = (DELAY, "TRAN_MSG", "TIMER_DELAY_SEC", "TIMER_DELAY_MS", "TIMER_DELIVER_MS")
"""Properties that request an operation that a broker does not perform on replies."""


async def send_reply(services: Services, request: Command, channel: Channel) -> Reply:
    """Push the reply to its requester, store it, and answer whether the requester confirmed it."""
    try:
        require_master(services)
        require_writable_broker(services)
        header = read_header(request)
        properties = _properties(services, header, request.body)
    except (RefusedError, HeaderError) as error:
        return refused(services, request, error)
    problem = await _push(services, header, properties, request.body, channel.remote)
    stored = None
    if services.config.store_replies:
        stored = await _store(services, header, properties, request.body, channel.remote)
    code = ResponseCode.SUCCESS if problem is None else ResponseCode.SYSTEM_ERROR
    return request.answer(code, _answer_fields(services, header, stored), remark=problem)


def _answer_fields(services: Services, header: SendRequest, stored: PutResult | None) -> dict[str, str]:
    """Return the place of the stored reply; without one, the message id `0`, which is no place."""
    place = stored if stored is not None and stored.status in STORED else None
    fields = headers.write_send_response(
        msg_id=place.message_id if place else "0",
        queue_id=max(header.queue_id, 0),
        queue_offset=place.queue_offset if place else 0,
        transaction_id=None,
    )
    return fields | services.tracing_fields()


def _properties(services: Services, header: SendRequest, body: bytes) -> Mapping[str, str]:
    """Return the properties of a reply that this broker passes on.

    Raises:
        RefusedError: the topic or queue is not that of replies, the reply is too large, has no requester or
            correlation id, or requests an operation that a broker does not perform on replies.
    """
    topic = reply_topic(services.config.cluster)
    if header.topic != topic:
        raise RefusedError(ResponseCode.NO_PERMISSION, f"a reply to topic {header.topic}, {topic} expected")
    if header.queue_id not in (-1, 0):
        raise RefusedError(
            ResponseCode.SYSTEM_ERROR, f"queue {header.queue_id} of topic {topic}, which has 1"
        )
    if header.batch or header.sys_flag & SYS_TRANSACTION_MASK:
        raise RefusedError(ResponseCode.MESSAGE_ILLEGAL, "a reply that is a batch or part of a transaction")
    bytes_max = services.config.store.message_bytes_max
    if len(body) > bytes_max:
        remark = f"a reply of {len(body)} bytes, at most {bytes_max} expected"
        raise RefusedError(ResponseCode.MESSAGE_ILLEGAL, remark)
    properties = decode_properties(header.properties or "")
    for name in (REPLY_TO_CLIENT, CORRELATION_ID):
        if not properties.get(name):
            raise RefusedError(ResponseCode.SYSTEM_ERROR, f"a reply without the property {name}")
    if asked := [name for name in _NOT_IN_REPLIES if properties.get(name, "0") != "0"]:
        raise RefusedError(ResponseCode.MESSAGE_ILLEGAL, f"a reply with the property {asked[0]}")
    return properties


async def _push(
    services: Services, header: SendRequest, properties: Mapping[str, str], body: bytes, sender: Address
) -> str | None:
    """Push the reply to its requester; return None when it confirmed, else what happened."""
    client_id = properties[REPLY_TO_CLIENT]
    requester = services.clients.producer_channel(client_id)
    if requester is None:
        return f"client {client_id} is not connected"
    if not requester.takes:
        return f"client {client_id} does not read what is sent to it"
    time_ms = now_ms(services.runtime.clock)
    pushed = PushReplyRequest(
        producer_group=header.producer_group,
        topic=header.topic,
        default_topic=header.default_topic,
        default_topic_queue_nums=header.default_topic_queue_nums,
        queue_id=max(header.queue_id, 0),
        sys_flag=header.sys_flag,
        born_timestamp=header.born_timestamp,
        flag=header.flag,
        born_host=str(sender),
        store_host=str(services.address),
        store_timestamp=time_ms,
        properties=encode_properties({**properties, PUSH_REPLY_TIME: str(time_ms)}),
        reconsume_times=header.reconsume_times,
        unit_mode=header.unit_mode,
    )
    command = new_request(RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT, headers.write(pushed), body)
    try:
        answer = await requester.invoke(command, _PUSH_TIMEOUT_S)
    except (RemotingError, ValueError) as error:
        return f"client {client_id} did not confirm the reply: {error}"
    if answer.code != ResponseCode.SUCCESS:
        return f"client {client_id} refused the reply: {answer.remark or 'no remark'}"
    return None


async def _store(
    services: Services, header: SendRequest, properties: Mapping[str, str], body: bytes, sender: Address
) -> PutResult | None:
    """Store the reply as a record of the reply topic; None if too many sends wait for the disk."""
    message = Message(
        topic=header.topic,
        body=body,
        properties={name: value for name, value in properties.items() if name != WAIT},
        queue_id=0,
        flag=header.flag,
        sys_flag=header.sys_flag,
        born_timestamp_ms=header.born_timestamp,
        born_host=sender,
        store_host=services.address,
        reconsume_times=header.reconsume_times or 0,
    )
    try:
        with services.sends.admitted(len(body)):
            result = await services.store.put(message)
    except RefusedError:
        return None
    if result.status in STORED:
        services.statistics.put(header.topic, 1, len(body))
    else:
        services.statistics.failed_puts.add(1)
    return result


PROCESSORS: Final[dict[int, Processor]] = {
    RequestCode.SEND_REPLY_MESSAGE: send_reply,
    RequestCode.SEND_REPLY_MESSAGE_V2: send_reply,
}
