"""Requests of brokers: register, heartbeat, unregister, and queries.

See docs/reference/protocol/name-server.md, "Registration" and "Expiry".
"""

from typing import Final

from mqproof.impl.namesrv.kv_config import ORDER_TOPICS
from mqproof.impl.namesrv.registration_body import read_body
from mqproof.impl.namesrv.route_table import BoundsError, BrokerKey
from mqproof.impl.namesrv.services import Processor, Services, now_ms
from mqproof.impl.remoting import headers, java_json
from mqproof.impl.remoting.bodies import DataVersion, MemberGroup, RegisterBrokerBody, Table, TopicConfigs
from mqproof.impl.remoting.channel import Channel, Reply
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.command import Command
from mqproof.impl.remoting.headers import (
    BrokerHeartbeatRequest,
    DataVersionRequest,
    DataVersionResponse,
    MemberGroupRequest,
    RegisterBrokerRequest,
    RegisterBrokerResponse,
    UnregisterBrokerRequest,
)
from mqproof.impl.remoting.request_handler import RefusedError
from mqproof.spec.events import Kind

_TOPICS_LOGGED_MAX: Final = 8
_EXPIRY_MS_MAX: Final = 3_600_000
"""The maximum expiry time that a broker can request, so that a dead broker does not stay in the routes."""


def register(services: Services, request: Command, channel: Channel) -> Reply:
    """Register the broker and its topics.

    The response has the master's address for a slave and, if configured, the ordered topics.
    """
    header = headers.read(RegisterBrokerRequest, request.fields)
    key = BrokerKey(header.cluster_name, header.broker_name, header.broker_id, header.broker_addr)
    body = read_body(header, request.body)
    own_expiry_ms = _expiry_ms(header.heartbeat_timeout_millis)
    try:
        master = services.table.register(
            key,
            body,
            ha_address=header.ha_server_addr,
            connection=id(channel),
            now_ms=now_ms(),
            expiry_ms=own_expiry_ms or services.config.broker_expiry_ms,
            enable_acting_master=header.enable_acting_master,
            forget_unlisted=services.config.forget_unlisted,
        )
    except BoundsError as error:
        raise RefusedError(ResponseCode.SYSTEM_ERROR, str(error)) from None
    attrs = _asked(own_expiry_ms) | _listed(body)
    services.emit(Kind.REGISTER, key.broker_name, key.address, id=str(key.broker_id), **attrs)
    response = RegisterBrokerResponse()
    if master is not None:
        response = RegisterBrokerResponse(master.ha_address, master.key.address)
    ordered = services.kv.namespace(ORDER_TOPICS) if services.config.return_order_to_brokers else None
    table = java_json.write(Table(ordered)) if ordered else b""
    return request.answer(ResponseCode.SUCCESS, headers.write(response), table)


def unregister(services: Services, request: Command, channel: Channel) -> Reply:  # noqa: ARG001
    """Remove the broker, if it is registered with the same cluster, name, id and address."""
    header = headers.read(UnregisterBrokerRequest, request.fields)
    key = BrokerKey(header.cluster_name, header.broker_name, header.broker_id, header.broker_addr)
    if services.table.unregister(key):
        services.emit(Kind.UNREGISTER, key.broker_name, key.address)
    return request.answer(ResponseCode.SUCCESS)


def heartbeat(services: Services, request: Command, channel: Channel) -> Reply:  # noqa: ARG001
    """Record that a known broker is alive."""
    header = headers.read(BrokerHeartbeatRequest, request.fields)
    expiry_ms = _expiry_ms(header.heartbeat_timeout_mills)
    if services.table.heartbeat(header.cluster_name, header.broker_addr, now_ms(), expiry_ms):
        services.emit(Kind.HEARTBEAT, header.broker_name, header.broker_addr, **_asked(expiry_ms))
    return request.answer(ResponseCode.SUCCESS)


def query_data_version(services: Services, request: Command, channel: Channel) -> Reply:  # noqa: ARG001
    """Return whether the broker has a new version to register. The request also counts as a heartbeat."""
    header = headers.read(DataVersionRequest, request.fields)
    version = java_json.read(DataVersion, request.body)
    known = services.table.heartbeat(header.cluster_name, header.broker_addr, now_ms())
    if known is not None:
        services.emit(Kind.HEARTBEAT, known.key.broker_name, known.key.address)
    changed = known is None or known.data_version != version
    body = java_json.write(known.data_version) if known else b""
    return request.answer(ResponseCode.SUCCESS, headers.write(DataVersionResponse(changed)), body)


def member_group(services: Services, request: Command, channel: Channel) -> Reply:  # noqa: ARG001
    """Return the addresses of one broker name."""
    header = headers.read(MemberGroupRequest, request.fields)
    group = services.table.member_group(header.broker_name)
    if group is None or group.cluster != header.cluster_name:
        remark = f"no broker {header.broker_name} in cluster {header.cluster_name}"
        raise RefusedError(ResponseCode.SYSTEM_ERROR, remark)
    return request.answer(ResponseCode.SUCCESS, body=java_json.write(MemberGroup(group)))


def _listed(body: RegisterBrokerBody | None) -> dict[str, str]:
    """Return the registered topics, if they are few, and their version, for the event log."""
    listed = body.topic_config_serialize_wrapper if body else TopicConfigs(DataVersion(), {})
    if len(listed.topic_config_table) > _TOPICS_LOGGED_MAX:
        return {}
    version = listed.data_version
    return {
        "topics": ",".join(listed.topic_config_table),
        "version": f"{version.state_version or 0}.{version.timestamp}.{version.counter}",
    }


def _expiry_ms(asked_ms: int | None) -> int | None:
    return min(asked_ms, _EXPIRY_MS_MAX) if asked_ms and asked_ms > 0 else None


def _asked(expiry_ms: int | None) -> dict[str, str]:
    """Return the event log attribute for a broker that requests its own expiry time."""
    return {"expiry_ms": str(expiry_ms)} if expiry_ms else {}


PROCESSORS: Final[dict[int, Processor]] = {
    RequestCode.REGISTER_BROKER: register,
    RequestCode.UNREGISTER_BROKER: unregister,
    RequestCode.BROKER_HEARTBEAT: heartbeat,
    RequestCode.QUERY_DATA_VERSION: query_data_version,
    RequestCode.GET_BROKER_MEMBER_GROUP: member_group,
}
