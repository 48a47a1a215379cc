"""END_TRANSACTION and RESUME_CHECK_HALF_MESSAGE, and the request of a check.

See docs/reference/protocol/transactions.md, "End of a transaction" and "Checks".
"""

from collections.abc import Awaitable
from functools import partial
from typing import Final

from mqproof.impl.broker import half_messages
from mqproof.impl.broker.half_messages import DISCARD_TOPIC, HALF_TOPIC, PRODUCER_GROUP
from mqproof.impl.broker.requests.checks import require_master, require_writable_broker
from mqproof.impl.broker.services import Processor, Services
from mqproof.impl.broker.state.open_transactions import End
from mqproof.impl.broker.state.traffic import OTHERS
from mqproof.impl.remoting import headers
from mqproof.impl.remoting.channel import Channel, Reply
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.command import Command, new_request
from mqproof.impl.remoting.headers import CheckTransactionRequest, EndTransactionRequest, ResumeCheckRequest
from mqproof.impl.remoting.later import Later
from mqproof.impl.remoting.message import (
    REAL_TOPIC,
    SYS_TRANSACTION_COMMIT,
    SYS_TRANSACTION_ROLLBACK,
    UNIQUE_KEY,
    StoredMessage,
    parse_offset_message_id,
)
from mqproof.impl.remoting.request_handler import RefusedError
from mqproof.impl.store.files import record
from mqproof.impl.store.results import STORED, PutStatus

_UNKNOWN: Final = 0
_ENDS: Final = {SYS_TRANSACTION_COMMIT: End.COMMIT, SYS_TRANSACTION_ROLLBACK: End.ROLLBACK}
_CODES: Final = {
    **dict.fromkeys(STORED, ResponseCode.SUCCESS),
    PutStatus.MESSAGE_ILLEGAL: ResponseCode.MESSAGE_ILLEGAL,
    PutStatus.SERVICE_NOT_AVAILABLE: ResponseCode.SERVICE_NOT_AVAILABLE,
}


def end_transaction(
    services: Services,
    request: Command,
    channel: Channel,  # noqa: ARG001  # a processor's signature
) -> Reply | Awaitable[Reply]:
    """Commit or roll back the half message that the request names."""
    header = headers.read(EndTransactionRequest, request.fields)
    if services.is_slave:
        raise RefusedError(ResponseCode.SLAVE_NOT_AVAILABLE, "a slave does not end transactions")
    if header.commit_or_rollback == _UNKNOWN:
        return None
    end = _ENDS.get(header.commit_or_rollback)
    if end is None:
        remark = f"commitOrRollback is {header.commit_or_rollback}, 0, 8 or 12 expected"
        raise RefusedError(ResponseCode.SYSTEM_ERROR, remark)
    stored = _named(services, header)
    reply = Later()
    topic = stored.message.properties.get(REAL_TOPIC, OTHERS)

    def done(status: PutStatus | None, reason: str) -> None:
        code = ResponseCode.SUCCESS if status is None else _CODES.get(status, ResponseCode.SYSTEM_ERROR)
        if end is End.ROLLBACK or status in STORED:
            services.statistics.traffic.transaction_ended(topic, committed=end is not End.ROLLBACK)
        reply.set(request.answer(code, remark=reason or None))

    services.transactions.end(stored, end, done)
    return reply


def _named(services: Services, header: EndTransactionRequest) -> StoredMessage:
    """Return the half message of the request, if group, offsets and unique key agree."""
    stored = services.transactions.half_at(header.commit_log_offset)
    if stored is None:
        remark = f"no half message begins at {header.commit_log_offset}"
        raise RefusedError(ResponseCode.SYSTEM_ERROR, remark)
    group = stored.message.properties.get(PRODUCER_GROUP)
    if group != header.producer_group:
        remark = f"the half message is of group {group}, not {header.producer_group}"
        raise RefusedError(ResponseCode.SYSTEM_ERROR, remark)
    if stored.queue_offset != header.tran_state_table_offset:
        remark = f"the half message has offset {stored.queue_offset}, not {header.tran_state_table_offset}"
        raise RefusedError(ResponseCode.SYSTEM_ERROR, remark)
    key = half_messages.key_of(stored.message)
    if not is_named_by_key(key, header.msg_id):
        raise RefusedError(ResponseCode.SYSTEM_ERROR, f"the half message has key {key}, not {header.msg_id}")
    return stored


def is_named_by_key(key: str | None, msg_id: str) -> bool:
    """Return whether a request means the message with this key.

    A crash may have lost the message that the request means, and another one may be in its place.
    """
    return key is None or key == msg_id


async def resume_check(services: Services, request: Command, channel: Channel) -> Reply:  # noqa: ARG001  # a processor's signature
    """Make a discarded message a half message again."""
    header = headers.read(ResumeCheckRequest, request.fields)
    require_master(services)
    require_writable_broker(services)
    try:
        _, commit_offset = parse_offset_message_id(header.msg_id)
    except ValueError as error:
        raise RefusedError(ResponseCode.SYSTEM_ERROR, str(error)) from None
    stored = services.transactions.half_at(commit_offset, DISCARD_TOPIC)
    if stored is None:
        raise RefusedError(ResponseCode.SYSTEM_ERROR, f"no discarded message has the id {header.msg_id}")
    result = await services.store.put(half_messages.resumed(stored.message, services.address))
    code = _CODES.get(result.status, ResponseCode.SYSTEM_ERROR)
    return request.answer(code, remark=result.reason or None)


def ask_producer(services: Services, copy: StoredMessage) -> None:
    """Ask one of the producers of a half message's group for the end of its transaction."""
    message = copy.message
    channel = services.clients.next_producer(message.properties.get(PRODUCER_GROUP, ""))
    if channel is None:
        return
    key = message.properties.get(UNIQUE_KEY)
    header = CheckTransactionRequest(
        tran_state_table_offset=copy.queue_offset,
        commit_log_offset=copy.commit_offset,
        msg_id=key,
        transaction_id=key,
        offset_msg_id=copy.offset_message_id,
        topic=HALF_TOPIC,
    )
    body = record.encode(half_messages.for_producer(message))
    record.place(body, copy.queue_offset, copy.commit_offset, copy.store_timestamp_ms)
    fields = headers.write(header)
    channel.send_oneway(
        new_request(RequestCode.CHECK_TRANSACTION_STATE, fields, body=bytes(body), oneway=True)
    )


async def run(services: Services) -> None:
    """End, check and discard transactions until cancelled: the work of a master."""
    await services.transactions.run(
        services.address,
        services.offsets,
        partial(ask_producer, services),
        lambda: services.topics.ensure(DISCARD_TOPIC, 1),
        check_interval_ms=lambda: services.config.transaction_check_interval_ms,
        timeout_ms=lambda: services.config.transaction_timeout_ms,
        checks_max=lambda: services.config.transaction_checks_max,
        operation_interval_ms=services.config.transaction_operation_interval_ms,
    )


PROCESSORS: Final[dict[int, Processor]] = {
    RequestCode.END_TRANSACTION: end_transaction,
    RequestCode.RESUME_CHECK_HALF_MESSAGE: resume_check,
}
