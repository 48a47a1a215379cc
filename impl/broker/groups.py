"""HEART_BEAT, UNREGISTER_CLIENT, GET_CONSUMER_LIST_BY_GROUP: who consumes in which group.

See docs/protocol.md, "Client registration".
"""

import asyncio
from collections.abc import Iterable

from impl.broker.checks import require_group
from impl.broker.services import Services
from impl.broker.topics import RETRY_PREFIX
from impl.remoting import headers, java_json
from impl.remoting.bodies import ConsumerIds, Heartbeat
from impl.remoting.channel import Channel, Reply
from impl.remoting.codes import RequestCode, ResponseCode
from impl.remoting.command import Command, new_request
from impl.remoting.dispatch import RefusedError
from impl.remoting.headers import ConsumerGroupRequest, UnregisterClientRequest


async def heartbeat(services: Services, request: Command, channel: Channel) -> Reply:
    """Note the client's groups and subscriptions; each consumer group gets its retry topic."""
    beat = java_json.read(Heartbeat, request.body)
    for data in beat.consumer_data_set:
        group = require_group(services, data.group_name)
        await services.topics.ensure(RETRY_PREFIX + data.group_name, max(1, group.retry_queue_nums))
    if channel.is_open:
        notify(services, services.clients.heartbeat(channel, beat, now_ms()))
    return request.answer(ResponseCode.SUCCESS)


def unregister(services: Services, request: Command, channel: Channel) -> Reply:
    """The client leaves its groups."""
    header = headers.read(UnregisterClientRequest, request.fields)
    notify(services, services.clients.unregister(channel, header.producer_group, header.consumer_group))
    return request.answer(ResponseCode.SUCCESS)


def consumer_ids(services: Services, request: Command, channel: Channel) -> Reply:  # noqa: ARG001  # a processor's signature
    """The client ids of a group."""
    header = headers.read(ConsumerGroupRequest, request.fields)
    ids = services.clients.consumer_ids(header.consumer_group)
    if not ids:
        raise RefusedError(ResponseCode.SYSTEM_ERROR, f"no consumer of group {header.consumer_group}")
    return request.answer(ResponseCode.SUCCESS, body=java_json.write(ConsumerIds(ids), standard=True))


def notify(services: Services, groups: Iterable[str]) -> None:
    """Tell the members of changed groups to look again who is there."""
    for group in sorted(groups):
        fields = headers.write(ConsumerGroupRequest(group))
        for channel in services.clients.consumer_channels(group):
            note = new_request(RequestCode.NOTIFY_CONSUMER_IDS_CHANGED, fields, oneway=True)
            channel.send_oneway(note)


def now_ms() -> int:
    """The event loop's clock: for how long somebody was silent, not what time it is."""
    return int(asyncio.get_running_loop().time() * 1000)
