"""PULL_MESSAGE: messages from an offset on, or a wait for the next one.

See docs/protocol.md, "Pulling" and "Get statuses".
"""

from collections.abc import Awaitable, Collection
from typing import Final

from impl.broker.checks import require_group, require_readable_queue
from impl.broker.queries import commit_offset
from impl.broker.services import Services
from impl.message import tags_code
from impl.remoting import headers
from impl.remoting.bodies import Subscription
from impl.remoting.channel import Channel, Reply
from impl.remoting.codes import ResponseCode
from impl.remoting.command import Command
from impl.remoting.dispatch import RefusedError
from impl.remoting.headers import (
    PULL_COMMITS_OFFSET,
    PULL_HAS_SUBSCRIPTION,
    PULL_MAY_SUSPEND,
    PullRequest,
    PullResponse,
)
from impl.store.results import GetResult, GetStatus

_COUNT_MAX: Final = 32
"""Messages in one answer, whatever the client asks for."""

_HOLD_MS_MAX: Final = 60_000
"""No pull is held for longer, whatever the client asks for."""

_CODES: Final = {
    GetStatus.FOUND: ResponseCode.SUCCESS,
    GetStatus.MESSAGE_WAS_REMOVING: ResponseCode.PULL_RETRY_IMMEDIATELY,
    GetStatus.NO_MATCHED_MESSAGE: ResponseCode.PULL_RETRY_IMMEDIATELY,
    GetStatus.NO_MATCHED_LOGIC_QUEUE: ResponseCode.PULL_OFFSET_MOVED,
    GetStatus.NO_MESSAGE_IN_QUEUE: ResponseCode.PULL_OFFSET_MOVED,
    GetStatus.OFFSET_OVERFLOW_ONE: ResponseCode.PULL_NOT_FOUND,
    GetStatus.OFFSET_OVERFLOW_BADLY: ResponseCode.PULL_OFFSET_MOVED,
    GetStatus.OFFSET_TOO_SMALL: ResponseCode.PULL_OFFSET_MOVED,
}
_EMPTY_QUEUE: Final = frozenset({GetStatus.NO_MATCHED_LOGIC_QUEUE, GetStatus.NO_MESSAGE_IN_QUEUE})


def pull_message(services: Services, request: Command, channel: Channel) -> Reply | Awaitable[Reply]:  # noqa: ARG001  # a processor's signature
    """Answer with what is there; hold the request where it may be held and nothing is."""
    header = headers.read(PullRequest, request.fields)
    tag_codes = _checked(services, header)
    if header.sys_flag & PULL_COMMITS_OFFSET:
        commit_offset(services, header)
    result, code = _get(services, header, tag_codes)
    if code is ResponseCode.PULL_NOT_FOUND and header.sys_flag & PULL_MAY_SUSPEND:
        if services.holds.is_full:
            raise RefusedError(ResponseCode.SYSTEM_BUSY, "too many pulls are held")
        return _hold(services, request, header, tag_codes)
    return _answer(request, result, code)


async def _hold(services: Services, request: Command, header: PullRequest, tags: Collection[int]) -> Reply:
    config = services.config
    asked_ms = header.suspend_timeout_millis if config.long_polling else config.short_polling_ms
    timeout_s = min(max(asked_ms, 0), _HOLD_MS_MAX) / 1000
    await services.holds.wait(header.topic, header.queue_id, header.queue_offset, tags, timeout_s)
    # Held once only: whatever is there now is the answer.
    return _answer(request, *_get(services, header, tags))


def _get(services: Services, header: PullRequest, tags: Collection[int]) -> tuple[GetResult, ResponseCode]:
    count = min(max(header.max_msg_nums, 1), _COUNT_MAX)
    result = services.store.get(
        header.topic, header.queue_id, header.queue_offset, max_count=count, tag_codes=tags
    )
    # A consumer that begins at 0 of a queue without messages is where it should be.
    if result.status in _EMPTY_QUEUE and header.queue_offset == 0:
        return result, ResponseCode.PULL_NOT_FOUND
    return result, _CODES[result.status]


def _answer(request: Command, result: GetResult, code: ResponseCode) -> Command:
    response = PullResponse(0, result.next_offset, result.min_offset, result.max_offset)
    body = b"".join(result.records)
    return request.answer(code, headers.write(response), body, remark=result.status.value)


def _checked(services: Services, header: PullRequest) -> Collection[int]:
    """The tag codes that are wanted, none meaning all; the checks are in the protocol's order."""
    require_group(services, header.consumer_group)
    require_readable_queue(services, header.topic, header.queue_id)
    if header.sys_flag & PULL_HAS_SUBSCRIPTION:
        return _tag_codes(header.expression_type, header.subscription)
    subscription = _subscription(services, header)
    return _tag_codes(subscription.expression_type, subscription.sub_string)


def _subscription(services: Services, header: PullRequest) -> Subscription:
    """What the group's heartbeats said of the topic."""
    group = services.clients.consumer_group(header.consumer_group)
    subscription = group.subscriptions.get(header.topic) if group else None
    if subscription is None:
        raise RefusedError(
            ResponseCode.SUBSCRIPTION_NOT_EXIST,
            f"no heartbeat told of group {header.consumer_group} and topic {header.topic}",
        )
    if subscription.sub_version < header.sub_version:
        raise RefusedError(
            ResponseCode.SUBSCRIPTION_NOT_LATEST,
            f"subscription version {subscription.sub_version}, the request has {header.sub_version}",
        )
    return subscription


def _tag_codes(expression_type: str | None, expression: str | None) -> Collection[int]:
    """`TagA || TagB` as hash codes. The client compares the tags themselves again."""
    if (expression_type or "TAG") != "TAG":
        raise RefusedError(
            ResponseCode.SYSTEM_ERROR, f"filter type {expression_type} is not supported, TAG is"
        )
    if not expression or expression == "*":
        return frozenset()
    tags = (tag.strip() for tag in expression.split("||"))
    return frozenset(tags_code(tag) for tag in tags if tag)
