"""Lists of the connected clients for administrators.

See docs/reference/protocol/groups.md, "Client registration".
"""

from collections.abc import Mapping

from mqproof.impl.broker.services import Services, loop_ms
from mqproof.impl.broker.state.clients import Member
from mqproof.impl.remoting import headers, java_json
from mqproof.impl.remoting.bodies import (
    Connection,
    ConsumerConnection,
    ProducerConnection,
    ProducerInfo,
    ProducerTable,
)
from mqproof.impl.remoting.channel import Channel, Reply
from mqproof.impl.remoting.codes import ResponseCode
from mqproof.impl.remoting.command import Command
from mqproof.impl.remoting.headers import ConsumerGroupRequest, ProducerGroupRequest
from mqproof.impl.remoting.request_handler import RefusedError
from mqproof.impl.runtime.clock import now_ms as wall_ms


def consumer_connections(services: Services, request: Command, channel: Channel) -> Reply:  # noqa: ARG001  # a processor's signature
    """Return the members of a consumer group and their subscriptions."""
    header = headers.read(ConsumerGroupRequest, request.fields)
    group = services.clients.consumer_group(header.consumer_group)
    if group is None:
        remark = f"no consumer of group {header.consumer_group} is connected"
        raise RefusedError(ResponseCode.CONSUMER_NOT_ONLINE, remark)
    body = ConsumerConnection(
        connection_set=_connections(group.members),
        consume_from_where=group.data.consume_from_where,
        consume_type=group.data.consume_type,
        message_model=group.data.message_model,
        subscription_table=dict(group.subscriptions),
    )
    return request.answer(ResponseCode.SUCCESS, body=java_json.write(body, standard=True))


def producer_connections(services: Services, request: Command, channel: Channel) -> Reply:  # noqa: ARG001  # a processor's signature
    """Return the members of a producer group."""
    header = headers.read(ProducerGroupRequest, request.fields)
    members = services.clients.producers().get(header.producer_group)
    if not members:
        remark = f"no producer of group {header.producer_group} is connected"
        raise RefusedError(ResponseCode.SYSTEM_ERROR, remark)
    body = ProducerConnection(_connections(members))
    return request.answer(ResponseCode.SUCCESS, body=java_json.write(body, standard=True))


def all_producers(services: Services, request: Command, channel: Channel) -> Reply:  # noqa: ARG001  # a processor's signature
    """Return all producers, by group."""
    # Members have the event loop's time; administrators need wall-clock time.
    loop_to_wall_ms = wall_ms(services.runtime.clock) - loop_ms()
    data = {
        name: [_info(channel, member, loop_to_wall_ms) for channel, member in members.items()]
        for name, members in services.clients.producers().items()
    }
    return request.answer(ResponseCode.SUCCESS, body=java_json.write(ProducerTable(data), standard=True))


def _connections(members: Mapping[Channel, Member]) -> list[Connection]:
    return [
        Connection(str(channel.remote), member.client_id, member.language, member.version)
        for channel, member in members.items()
    ]


def _info(channel: Channel, member: Member, loop_to_wall_ms: int) -> ProducerInfo:
    return ProducerInfo(
        client_id=member.client_id,
        language=member.language,
        last_update_timestamp=member.last_update_ms + loop_to_wall_ms,
        remote_ip=f"/{channel.remote}",
        version=member.version,
    )
