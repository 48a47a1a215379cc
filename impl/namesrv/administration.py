"""Requests of administrators to change permissions, topics and configuration.

See docs/reference/protocol/name-server.md, "Administration of a name server".
"""

from collections.abc import Awaitable
from typing import Final

from mqproof.impl.namesrv import config
from mqproof.impl.namesrv.kv_config import KvFullError
from mqproof.impl.namesrv.route_table import BoundsError
from mqproof.impl.namesrv.services import Processor, Services
from mqproof.impl.remoting import headers, java_json
from mqproof.impl.remoting.bodies import PERM_READ_WRITE, PERM_WRITE, Table, TopicRoute
from mqproof.impl.remoting.channel import Channel, Reply
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.command import Command
from mqproof.impl.remoting.headers import (
    AddWriteResponse,
    BrokerNameRequest,
    DeleteRoutedTopicRequest,
    KvNamespaceRequest,
    KvRequest,
    KvResponse,
    PutKvRequest,
    RegisterTopicRequest,
    WipeWriteResponse,
)
from mqproof.impl.remoting.request_handler import RefusedError
from mqproof.impl.runtime.properties import ConfigError, ProtectedKeyError


def wipe_write(services: Services, request: Command, channel: Channel) -> Reply:  # noqa: ARG001
    """Remove the write permission of a broker's queues. Its messages can still be read."""
    header = headers.read(BrokerNameRequest, request.fields)
    count = services.table.change_permissions(header.broker_name, lambda perm: perm & ~PERM_WRITE)
    return request.answer(ResponseCode.SUCCESS, headers.write(WipeWriteResponse(count)))


def add_write(services: Services, request: Command, channel: Channel) -> Reply:  # noqa: ARG001
    """Permit both writing and reading for all queues of a broker."""
    header = headers.read(BrokerNameRequest, request.fields)
    count = services.table.change_permissions(header.broker_name, lambda _: PERM_READ_WRITE)
    return request.answer(ResponseCode.SUCCESS, headers.write(AddWriteResponse(count)))


def delete_topic(services: Services, request: Command, channel: Channel) -> Reply:  # noqa: ARG001
    """Delete a topic, until a broker that still has it registers again."""
    header = headers.read(DeleteRoutedTopicRequest, request.fields)
    services.table.delete_topic(header.topic, header.cluster_name or None)
    return request.answer(ResponseCode.SUCCESS)


def register_topic(services: Services, request: Command, channel: Channel) -> Reply:  # noqa: ARG001
    """Add one topic's queues at known brokers."""
    header = headers.read(RegisterTopicRequest, request.fields)
    try:
        services.table.add_queues(header.topic, java_json.read(TopicRoute, request.body).queue_datas)
    except BoundsError as error:
        raise RefusedError(ResponseCode.SYSTEM_ERROR, str(error)) from None
    return request.answer(ResponseCode.SUCCESS)


async def put_kv(services: Services, request: Command, channel: Channel) -> Reply:  # noqa: ARG001
    """Store a key-value entry. Responds once it is on disk."""
    header = headers.read(PutKvRequest, request.fields)
    await _kept(services.kv.put(header.namespace, header.key, header.value))
    return request.answer(ResponseCode.SUCCESS)


def get_kv(services: Services, request: Command, channel: Channel) -> Reply:  # noqa: ARG001
    """Return the value of a key, or QUERY_NOT_FOUND."""
    header = headers.read(KvRequest, request.fields)
    value = services.kv.get(header.namespace, header.key)
    if value is None:
        remark = f"no key {header.key!r} in namespace {header.namespace!r}"
        raise RefusedError(ResponseCode.QUERY_NOT_FOUND, remark)
    return request.answer(ResponseCode.SUCCESS, headers.write(KvResponse(value)))


async def delete_kv(services: Services, request: Command, channel: Channel) -> Reply:  # noqa: ARG001
    """Delete a key-value entry. Responds once the change is on disk."""
    header = headers.read(KvRequest, request.fields)
    await _kept(services.kv.delete(header.namespace, header.key))
    return request.answer(ResponseCode.SUCCESS)


def list_kv(services: Services, request: Command, channel: Channel) -> Reply:  # noqa: ARG001
    """Return all entries of a namespace, or QUERY_NOT_FOUND."""
    header = headers.read(KvNamespaceRequest, request.fields)
    values = services.kv.namespace(header.namespace)
    if values is None:
        raise RefusedError(ResponseCode.QUERY_NOT_FOUND, f"no namespace {header.namespace!r}")
    return request.answer(ResponseCode.SUCCESS, body=java_json.write(Table(values)))


def get_config(services: Services, request: Command, channel: Channel) -> Reply:  # noqa: ARG001
    """Return the configuration as the text of a properties file."""
    return request.answer(ResponseCode.SUCCESS, body=config.show(services.config).encode())


async def update_config(services: Services, request: Command, channel: Channel) -> Reply:  # noqa: ARG001
    """Change the configuration as the body says, completely or not at all.

    The change is written to the properties file before it takes effect.
    """
    async with services.config_file.changing:
        try:
            new = config.updated(services.config, request.body.decode())
            await services.config_file.keep(config.show(services.config), config.show(new))
        except ProtectedKeyError as error:
            raise RefusedError(ResponseCode.NO_PERMISSION, str(error)) from None
        except (ConfigError, UnicodeDecodeError, OSError) as error:
            raise RefusedError(ResponseCode.SYSTEM_ERROR, str(error)) from None
        services.config = new
    return request.answer(ResponseCode.SUCCESS)


async def _kept(change: Awaitable[None]) -> None:
    try:
        await change
    except KvFullError as error:
        raise RefusedError(ResponseCode.SYSTEM_ERROR, str(error)) from None
    except OSError as error:
        raise RefusedError(ResponseCode.SYSTEM_ERROR, f"kvConfig.json cannot be written: {error}") from None


PROCESSORS: Final[dict[int, Processor]] = {
    RequestCode.WIPE_WRITE_PERM_OF_BROKER: wipe_write,
    RequestCode.ADD_WRITE_PERM_OF_BROKER: add_write,
    RequestCode.DELETE_TOPIC_IN_NAMESRV: delete_topic,
    RequestCode.REGISTER_TOPIC_IN_NAMESRV: register_topic,
    RequestCode.PUT_KV_CONFIG: put_kv,
    RequestCode.GET_KV_CONFIG: get_kv,
    RequestCode.DELETE_KV_CONFIG: delete_kv,
    RequestCode.GET_KVLIST_BY_NAMESPACE: list_kv,
    RequestCode.GET_NAMESRV_CONFIG: get_config,
    RequestCode.UPDATE_NAMESRV_CONFIG: update_config,
}
