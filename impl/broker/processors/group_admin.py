"""Administration of consumer groups.

See docs/reference/protocol/administration.md, "Administration of a broker".
"""

from typing import Final

from msgspec import UNSET
from msgspec.structs import replace

from mqproof.impl.broker.services import Processor, Services
from mqproof.impl.remoting import headers, java_json
from mqproof.impl.remoting.bodies import AllGroups, SubscriptionGroup, SubscriptionGroupList
from mqproof.impl.remoting.channel import Channel, Reply
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.command import Command
from mqproof.impl.remoting.headers import DeleteGroupRequest, GroupRequest
from mqproof.impl.remoting.message import RETRY_PREFIX
from mqproof.impl.remoting.request_handler import RefusedError
from mqproof.impl.remoting.topic_names import name_problem


async def update_group(services: Services, request: Command, channel: Channel) -> Reply:
    """Create or change a group; answer after it is on disk."""
    await _put_all(services, [java_json.read(SubscriptionGroup, request.body)], channel)
    return request.answer(ResponseCode.SUCCESS)


async def update_groups(services: Services, request: Command, channel: Channel) -> Reply:
    """Create or change several groups, either all or none."""
    await _put_all(services, java_json.read(SubscriptionGroupList, request.body).group_config_list, channel)
    return request.answer(ResponseCode.SUCCESS)


async def delete_group(services: Services, request: Command, channel: Channel) -> Reply:  # noqa: ARG001
    """Delete a group and, if requested, its consumer offsets."""
    header = headers.read(DeleteGroupRequest, request.fields)
    await services.groups.delete(header.group_name)
    if header.remove_offset or header.clean_offset:
        services.offsets.remove_group(header.group_name)
    return request.answer(ResponseCode.SUCCESS)


def all_groups(services: Services, request: Command, channel: Channel) -> Reply:  # noqa: ARG001
    """Return every group with its settings, and the expressions of the groups."""
    groups = services.groups.snapshot()
    body = java_json.write(
        AllGroups(groups.data_version, groups.subscription_group_table, services.filters.shared()),
        standard=True,
    )
    return request.answer(ResponseCode.SUCCESS, body=body)


def one_group(services: Services, request: Command, channel: Channel) -> Reply:  # noqa: ARG001
    """Return the settings of a group."""
    header = headers.read(GroupRequest, request.fields)
    group = services.groups.get(header.group)
    if group is None:
        raise RefusedError(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, f"group {header.group} does not exist")
    return request.answer(ResponseCode.SUCCESS, body=java_json.write(group, standard=True))


async def _put_all(services: Services, groups: list[SubscriptionGroup], channel: Channel) -> None:
    for group in groups:
        if problem := _problem(services, group):
            raise RefusedError(ResponseCode.SYSTEM_ERROR, problem)
    asked = [_with_its_attributes(services, group) for group in groups]
    changed = [group for group in asked if services.groups.get(group.group_name) != group]
    await services.groups.put_all(changed, channel)


def _with_its_attributes(services: Services, group: SubscriptionGroup) -> SubscriptionGroup:
    """Return the group with the attributes that it has now.

    Attributes are kept but not changed: in a request they describe changes, by rules of 5.x.
    """
    known = services.groups.get(group.group_name)
    return replace(group, attributes=UNSET if known is None else known.attributes)


def _problem(services: Services, group: SubscriptionGroup) -> str | None:
    queues_max = services.config.topic_queues_max
    if not group.group_name or name_problem(RETRY_PREFIX + group.group_name):
        return f"{group.group_name!r} cannot be a consumer group's name"
    if not 0 <= group.retry_queue_nums <= queues_max:
        return f"{group.retry_queue_nums} retry queues, 0 to {queues_max} expected"
    return None


PROCESSORS: Final[dict[int, Processor]] = {
    RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP: update_group,
    RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST: update_groups,
    RequestCode.DELETE_SUBSCRIPTIONGROUP: delete_group,
    RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG: all_groups,
    RequestCode.GET_SUBSCRIPTIONGROUP_CONFIG: one_group,
}
