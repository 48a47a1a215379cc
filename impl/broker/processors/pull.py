"""PULL_MESSAGE: returns messages from an offset on, or waits for the next one.

See docs/reference/protocol/pulling.md, "Pull requests" and "Get statuses".
"""

import asyncio
from collections.abc import Awaitable, Collection
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

from mqproof.impl.broker.processors.queries import is_far_behind
from mqproof.impl.broker.requests.checks import (
    require_consuming_group,
    require_readable_broker,
    require_readable_queue,
)
from mqproof.impl.broker.requests.offset_commits import commit_offset
from mqproof.impl.broker.requests.sql_filters import (
    Selection,
    registered_expression,
    require_filter_type,
    selection,
)
from mqproof.impl.broker.services import Services
from mqproof.impl.remoting import headers
from mqproof.impl.remoting.bodies import Subscription, SubscriptionGroup
from mqproof.impl.remoting.channel import Channel, Reply
from mqproof.impl.remoting.codes import ResponseCode
from mqproof.impl.remoting.command import Command
from mqproof.impl.remoting.headers import (
    PULL_CLASS_FILTER,
    PULL_COMMITS_OFFSET,
    PULL_HAS_SUBSCRIPTION,
    PULL_MAY_SUSPEND,
    PullRequest,
    PullResponse,
)
from mqproof.impl.remoting.message import tags_code
from mqproof.impl.remoting.request_handler import RefusedError
from mqproof.impl.runtime import upkeep
from mqproof.impl.store.results import GetResult, GetStatus

_HOLD_MS_MAX: Final = 60_000
"""The longest time that a pull is held, whatever the client requests."""

_EXPRESSION_CHARACTERS_MAX: Final = 4096

_EVERYTHING: Final[frozenset[int]] = frozenset()
_NOTHING: Final = frozenset({1 << 32})
"""A code that no tag has, because codes have 32 bits."""

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
"""Maps every get status to its response code; a test fails if a status is missing."""
_CORRECTED: Final = frozenset(
    status for status, code in _CODES.items() if code is ResponseCode.PULL_OFFSET_MOVED
)
_EMPTY_QUEUE: Final = frozenset({GetStatus.NO_MATCHED_LOGIC_QUEUE, GetStatus.NO_MESSAGE_IN_QUEUE})


@dataclass(frozen=True, slots=True)
class _Wanted:
    """The messages that a pull selects."""

    tags: Collection[int]
    """The codes of the wanted tags; empty means all messages."""
    selects: Selection | None = None
    """The SQL92 filter, or None. A pull with one is held until any message arrives."""


def pull_message(services: Services, request: Command, channel: Channel) -> Reply | Awaitable[Reply]:
    """Answer with the available messages; if there are none, hold the request where that is allowed."""
    header = headers.read(PullRequest, request.fields)
    require_readable_broker(services)
    group = require_consuming_group(services, header.consumer_group, channel)
    require_readable_queue(services, header.topic, header.queue_id)
    wanted = _wanted(services, header, group)
    if header.sys_flag & PULL_COMMITS_OFFSET and header.commit_offset >= 0:
        commit_offset(services, header)
    result, code = _get(services, header, wanted)
    if code is ResponseCode.PULL_NOT_FOUND and header.sys_flag & PULL_MAY_SUSPEND:
        if (reason := services.holds.budget.refusal(channel)) is not None:
            raise RefusedError(ResponseCode.SYSTEM_BUSY, reason)
        config = services.config
        asked_ms = header.suspend_timeout_millis if config.long_polling else config.short_polling_ms
        timeout_s = min(max(asked_ms, 0), _HOLD_MS_MAX) / 1000
        woken = services.holds.hold(
            header.topic, header.queue_id, header.queue_offset, wanted.tags, timeout_s, channel
        )
        return _after(woken, services, request, channel, header, wanted, group)
    return _answer(services, request, header, result, code, group)


async def _after(
    woken: asyncio.Future[None],
    services: Services,
    request: Command,
    channel: Channel,
    header: PullRequest,
    wanted: _Wanted,
    group: SubscriptionGroup,
) -> Reply:
    await woken
    if not (channel.takes and channel.is_open):
        # One message may wake thousands of a peer's pulls: messages that it does not read would only occupy
        # memory.
        return _answer(
            services, request, header, _nothing(services, header), ResponseCode.PULL_NOT_FOUND, group
        )
    # A pull is held only once: the answer is whatever is available now.
    result, code = _get(services, header, wanted)
    return _answer(services, request, header, result, code, group)


def _get(services: Services, header: PullRequest, wanted: _Wanted) -> tuple[GetResult, ResponseCode]:
    config = services.config
    count_max, bytes_max = config.pull_count_max, config.pull_bytes_max
    if is_far_behind(services, header.topic, header.queue_id, header.queue_offset):
        count_max, bytes_max = config.far_pull_count_max, config.far_pull_bytes_max
    if header.max_msg_bytes is not None:
        bytes_max = min(bytes_max, max(header.max_msg_bytes, 0))
    result = services.store.get(
        header.topic,
        header.queue_id,
        header.queue_offset,
        max_count=min(max(header.max_msg_nums, 1), count_max),
        max_bytes=bytes_max,
        tag_codes=wanted.tags,
        selects=wanted.selects,
    )
    # A consumer that begins at offset 0 of a queue without messages is at the right offset.
    if result.status in _EMPTY_QUEUE and header.queue_offset == 0:
        return result, ResponseCode.PULL_NOT_FOUND
    if not services.store.has_all and result.status in _CORRECTED:
        # The master may have messages that this broker lacks, so a copy must not correct a consumer's offset.
        return replace(result, next_offset=header.queue_offset), ResponseCode.PULL_RETRY_IMMEDIATELY
    return result, _CODES[result.status]


def _nothing(services: Services, header: PullRequest) -> GetResult:
    begin = services.store.min_offset(header.topic, header.queue_id)
    end = services.store.max_offset(header.topic, header.queue_id)
    return GetResult(GetStatus.OFFSET_OVERFLOW_ONE, header.queue_offset, begin, end)


def _answer(
    services: Services,
    request: Command,
    header: PullRequest,
    result: GetResult,
    code: ResponseCode,
    group: SubscriptionGroup,
) -> Command:
    broker_id = 0
    if not services.store.has_all and result.status in _CORRECTED:
        broker_id = group.broker_id
    elif services.config.slave_readable:
        slowly = is_far_behind(services, header.topic, header.queue_id, header.queue_offset)
        broker_id = group.which_broker_when_consume_slowly if slowly else group.broker_id
    statistics = services.statistics
    (statistics.found if result.records else statistics.missed).add()
    body = b"".join(result.records)
    if result.records:
        statistics.got(header.topic, header.consumer_group, len(result.records), len(body))
        services.pull_progress.note(
            header.topic,
            header.consumer_group,
            header.queue_id,
            result.next_offset,
            len(result.records),
            upkeep.now_s(),
        )
    response = PullResponse(broker_id, result.next_offset, result.min_offset, result.max_offset)
    return request.answer(code, headers.write(response), body, remark=result.status.value)


# Message filters.


def _wanted(services: Services, header: PullRequest, group: SubscriptionGroup) -> _Wanted:
    if header.sys_flag & PULL_HAS_SUBSCRIPTION:
        kind, text = header.expression_type, header.subscription
        is_class_filter = bool(header.sys_flag & PULL_CLASS_FILTER)
    else:
        subscription = _subscription(services, header, group)
        kind, text = subscription.expression_type, subscription.sub_string
        is_class_filter = subscription.class_filter_mode
    if is_class_filter or not require_filter_type(kind):
        return _Wanted(_tags(text, is_class_filter))
    if not header.sys_flag & PULL_HAS_SUBSCRIPTION:
        text = registered_expression(services, header)
    return _Wanted(_EVERYTHING, selection(services, header.topic, text))


def _subscription(services: Services, header: PullRequest, group: SubscriptionGroup) -> Subscription:
    """Return the group's subscription to the topic, from its heartbeats."""
    connected = services.clients.consumer_group(header.consumer_group)
    if connected is not None and connected.is_broadcasting and not group.consume_broadcast_enable:
        raise RefusedError(
            ResponseCode.NO_PERMISSION, f"group {header.consumer_group} may not consume in broadcast mode"
        )
    subscription = connected.subscriptions.get(header.topic) if connected else None
    if subscription is None:
        raise RefusedError(
            ResponseCode.SUBSCRIPTION_NOT_EXIST,
            f"no heartbeat has subscribed group {header.consumer_group} to topic {header.topic}",
        )
    if subscription.sub_version < header.sub_version and not _serves_newer(subscription, header):
        raise RefusedError(
            ResponseCode.SUBSCRIPTION_NOT_LATEST,
            f"subscription version {subscription.sub_version}, the request has {header.sub_version}",
        )
    return subscription


def _serves_newer(subscription: Subscription, header: PullRequest) -> bool:
    """Return whether a known subscription can serve a newer, unknown one without losing messages.

    This is so if the known one is to all messages and both filter by tags, because the client compares the
    tags itself.
    """
    types = {subscription.expression_type or "TAG", header.expression_type or "TAG"}
    return types == {"TAG"} and subscription.sub_string in (None, "", "*")


def _tags(expression: str | None, is_class_filter: bool) -> Collection[int]:
    if is_class_filter:  # the client's own code filters
        return _EVERYTHING
    if not expression or expression == "*":
        return _EVERYTHING
    if len(expression) > _EXPRESSION_CHARACTERS_MAX:
        raise RefusedError(
            ResponseCode.SUBSCRIPTION_PARSE_FAILED,
            f"expression of {len(expression)} characters, at most {_EXPRESSION_CHARACTERS_MAX} expected",
        )
    if not expression.replace("||", ""):
        raise RefusedError(ResponseCode.SUBSCRIPTION_PARSE_FAILED, f"expression {expression} names no tag")
    return _tag_codes(expression) or _NOTHING


@lru_cache(maxsize=4096)
def _tag_codes(expression: str) -> frozenset[int]:
    """Return the hash codes of `TagA || TagB`. The client compares the tags themselves again."""
    tags = (tag.strip() for tag in expression.split("||"))
    return frozenset(tags_code(tag) for tag in tags if tag)
