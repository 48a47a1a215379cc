"""The event `admin`: an administrative request that the broker carried out, with its address and account.

See docs/reference/protocol/event-log.md, "Events of a broker".
"""

from collections.abc import Awaitable, Callable, Iterable
from typing import Final

from mqproof.impl.access import policies
from mqproof.impl.broker.requests.offset_commits import commit_offset
from mqproof.impl.broker.services import Services
from mqproof.impl.remoting import headers, java_json
from mqproof.impl.remoting.bodies import SubscriptionGroup, SubscriptionGroupList, TopicConfigList
from mqproof.impl.remoting.channel import Channel, Handler, Reply
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.command import Command
from mqproof.impl.remoting.headers import (
    AccountRequest,
    CloneOffsetRequest,
    DeleteAccountRequest,
    DeleteGroupRequest,
    ResetOffsetRequest,
    SubjectRequest,
    TopicRequest,
    UpdateOffsetRequest,
    UpdateTopicRequest,
    UserRequest,
)
from mqproof.impl.remoting.signing import ACCESS_KEY
from mqproof.spec.events import Kind

_Subject = dict[str, str]
"""The columns `topic` and `group`, and other names as attributes."""


def recording(code: int, processor: Handler, services: Services) -> Handler:
    """Return the processor; it records each administrative request that it has carried out."""
    subjects = _SUBJECTS.get(code)
    if subjects is None or services.events is None:
        return processor

    async def handle(request: Command, channel: Channel) -> Reply:
        reply = processor(request, channel)
        answer = await reply if isinstance(reply, Awaitable) else reply
        if answer is not None and answer.code == ResponseCode.SUCCESS:
            for subject in subjects(request):
                _emit(services, request, channel, subject)
        return answer

    return handle


def commit(services: Services, header: UpdateOffsetRequest, request: Command, channel: Channel) -> None:
    """Commit an offset from its own request; record whether that is a reset, and who requested it.

    A member may carry out a reset of which the broker has notified it. Any other client, such as
    administration tools, resets an offset if it sets it back, or beyond what the group has received.
    """
    group, topic, queue_id = header.consumer_group, header.topic, header.queue_id
    known = services.offsets.query(group, topic, queue_id)
    if services.events is None or known is None:
        commit_offset(services, header)
        return
    reset = {"reset": "true", "previous": str(known)}
    if services.resets.explains(group, topic, queue_id, known, header.commit_offset):
        commit_offset(services, header, reset)
        return
    received = services.pull_progress.end(topic, group, queue_id)
    is_progress = known <= header.commit_offset <= max(received, known)
    if is_progress or channel in services.clients.consumer_channels(group):
        commit_offset(services, header)
    else:
        commit_offset(services, header, reset)
        _emit(services, request, channel, {"topic": topic, "group": group})


def reset_at_broker(services: Services, group: str, topic: str, before: dict[int, int]) -> None:
    """Record the offsets in a topic that the broker itself has changed from those in `before`."""
    if services.events is None:
        return
    for queue_id, offset in sorted(services.offsets.of_group(group, topic).items()):
        previous = before.get(queue_id)
        if offset != previous:
            attrs = {"reset": "true"} | ({} if previous is None else {"previous": str(previous)})
            services.events.emit(
                Kind.OFFSET_COMMIT,
                group=group,
                topic=topic,
                queue_id=queue_id,
                queue_offset=offset,
                attrs=attrs,
            )


def _emit(services: Services, request: Command, channel: Channel, subject: _Subject) -> None:
    assert services.events is not None, "the caller has checked that there is an event log"
    attrs = {"action": RequestCode(request.code).name.lower(), "address": str(channel.remote)}
    account = request.fields.get(ACCESS_KEY)
    if services.acl is not None and account:  # without access control, the request may name any account
        attrs["account"] = account
    named = {name: value for name, value in subject.items() if name not in ("topic", "group")}
    services.events.emit(
        Kind.ADMIN, topic=subject.get("topic"), group=subject.get("group"), attrs=attrs | named
    )


def _topics(request: Command) -> Iterable[_Subject]:
    topics = java_json.read(TopicConfigList, request.body).topic_config_list
    return [{"topic": topic.topic_name} for topic in topics]


def _groups(request: Command) -> Iterable[_Subject]:
    groups = java_json.read(SubscriptionGroupList, request.body).group_config_list
    return [{"group": group.group_name} for group in groups]


def _reset(request: Command) -> Iterable[_Subject]:
    header = headers.read(ResetOffsetRequest, request.fields)
    return [{"topic": header.topic, "group": header.group}]


def _clone(request: Command) -> Iterable[_Subject]:
    header = headers.read(CloneOffsetRequest, request.fields)
    topic = {"topic": header.topic} if header.topic else {}
    return [{"group": header.dest_group, "source": header.src_group, **topic}]


def _settings(request: Command) -> Iterable[_Subject]:
    """Return the names of the settings; their values may be secrets."""
    lines = request.body.decode("utf-8", errors="replace").splitlines()
    return [{"settings": ",".join(sorted(line.partition("=")[0].strip() for line in lines if "=" in line))}]


def _user(request: Command) -> Iterable[_Subject]:
    return [{"changed_account": headers.read(UserRequest, request.fields).username}]


def _subject(request: Command) -> Iterable[_Subject]:
    subject = headers.read(SubjectRequest, request.fields).subject
    return [{"changed_account": policies.user_of(subject)}]


_SUBJECTS: Final[dict[int, Callable[[Command], Iterable[_Subject]]]] = {
    RequestCode.UPDATE_AND_CREATE_TOPIC: lambda request: [
        {"topic": headers.read(UpdateTopicRequest, request.fields).topic}
    ],
    RequestCode.UPDATE_AND_CREATE_TOPIC_LIST: _topics,
    RequestCode.DELETE_TOPIC_IN_BROKER: lambda request: [
        {"topic": headers.read(TopicRequest, request.fields).topic}
    ],
    RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP: lambda request: [
        {"group": java_json.read(SubscriptionGroup, request.body).group_name}
    ],
    RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST: _groups,
    RequestCode.DELETE_SUBSCRIPTIONGROUP: lambda request: [
        {"group": headers.read(DeleteGroupRequest, request.fields).group_name}
    ],
    RequestCode.INVOKE_BROKER_TO_RESET_OFFSET: _reset,
    RequestCode.CLONE_GROUP_OFFSET: _clone,
    RequestCode.UPDATE_AND_CREATE_ACL_CONFIG: lambda request: [
        {"changed_account": headers.read(AccountRequest, request.fields).access_key}
    ],
    RequestCode.DELETE_ACL_CONFIG: lambda request: [
        {"changed_account": headers.read(DeleteAccountRequest, request.fields).access_key}
    ],
    RequestCode.UPDATE_GLOBAL_WHITE_ADDRS_CONFIG: lambda _: [{}],
    RequestCode.AUTH_CREATE_USER: _user,
    RequestCode.AUTH_UPDATE_USER: _user,
    RequestCode.AUTH_DELETE_USER: _user,
    RequestCode.AUTH_CREATE_ACL: _subject,
    RequestCode.AUTH_UPDATE_ACL: _subject,
    RequestCode.AUTH_DELETE_ACL: _subject,
    RequestCode.UPDATE_BROKER_CONFIG: _settings,
}
"""The requests that are recorded, and what each of them changes."""
