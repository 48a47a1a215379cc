"""Mutants that show when push consumers are the members of a group, used to judge the consumers suite.

Each replaces one rule by a wrong one.
"""

from typing import Any, Final

import msgspec

from mqproof.conformance.mutants.mutant import Mutant
from mqproof.impl.client.blocking import BlockingClient
from mqproof.impl.client.consuming.consumer_events import ConsumerEvents
from mqproof.impl.client.consuming.group_requests import GroupRequests
from mqproof.impl.client.consuming.lite_pull_consumer import LitePullConsumer
from mqproof.impl.client.consuming.offset_store import FileOffsets, Offsets
from mqproof.impl.client.consuming.rebalance import Rebalancer
from mqproof.impl.client.consuming.scheduled_pull import ScheduledPull
from mqproof.impl.client.model import MessageQueue
from mqproof.impl.client.tracing.trace_dispatcher import TraceDispatcher
from mqproof.impl.client.tracing.trace_records import TraceRecord, encode
from mqproof.impl.remoting.bodies import ConsumerData, HeldQueue
from mqproof.impl.remoting.headers import PULL_HAS_SUBSCRIPTION, PullRequest
from mqproof.impl.remoting.message import RETRY_PREFIX

_gain, _send_batch = ScheduledPull.gain, BlockingClient.send_batch
_load, _commit, _queues_of_member = Offsets.load, GroupRequests.commit, Rebalancer._queues_of_member


def _no_effect(*_args: Any) -> None:
    pass


def _no_number(_events: ConsumerEvents, topic: str, queues: int) -> None:
    raise TypeError(f"{queues} queues of {topic}")


async def _no_rewind(*_args: Any) -> None:
    pass


async def _first_queue_only(service: ScheduledPull, queue: MessageQueue) -> bool:
    return await _gain(service, queue) if queue.queue_id == 0 else False


async def _nothing_stored(_store: FileOffsets, _queue: MessageQueue) -> int | None:
    return None


async def _one_behind(offsets: Offsets, queue: MessageQueue) -> int | None:
    known = await _load(offsets, queue)
    return known - 1 if known else known


async def _one_ahead(offsets: Offsets, queue: MessageQueue) -> int | None:
    known = await _load(offsets, queue)
    return known + 1 if known else known


async def _back_too(
    calls: GroupRequests,
    queue: MessageQueue,
    offset: int,
    *,
    only_forward: bool = False,  # noqa: ARG001
) -> None:
    await _commit(calls, queue, offset)


def _to_any_queue(client: BlockingClient, messages: Any, _queue: object = None) -> Any:
    return _send_batch(client, messages)


def _whole_batch(dispatcher: TraceDispatcher) -> tuple[list[TraceRecord], bytes]:
    batch = list(dispatcher._waiting)
    dispatcher._waiting.clear()
    return batch, "".join(map(encode, batch)).encode()


async def _not_uploaded(*_args: Any) -> None:
    pass


def _also_moved(consumer: LitePullConsumer) -> None:
    if consumer._polled is not None:
        held, messages = consumer._polled
        consumer._polled = None
        consumer._offsets.advance(held.queue, held.remove(messages))


async def _none_lost(_locks: object) -> list[MessageQueue]:
    return []


async def nothing_is_no_share(rebalancer: Rebalancer, topic: str) -> set[MessageQueue]:
    """Keeps the queues of a member that should have none."""
    owned = {queue for queue in rebalancer._owner.owned() if queue.topic == topic}
    return await _queues_of_member(rebalancer, topic) or owned


def _one_less(**fields: Any) -> PullRequest:
    return PullRequest(**{**fields, "max_msg_nums": fields["max_msg_nums"] - 1})


def _held_longer(**fields: Any) -> PullRequest:
    return PullRequest(**{**fields, "suspend_timeout_millis": fields["suspend_timeout_millis"] + 1000})


def _never_subscribed(**fields: Any) -> PullRequest:
    return PullRequest(**{**fields, "sys_flag": fields["sys_flag"] & ~PULL_HAS_SUBSCRIPTION})


def _without_retries(*values: Any, **named: Any) -> ConsumerData:
    data = ConsumerData(*values, **named)
    own = [each for each in data.subscription_data_set if not each.topic.startswith(RETRY_PREFIX)]
    return msgspec.structs.replace(data, subscription_data_set=own)


def _behind(**fields: Any) -> HeldQueue:
    return HeldQueue(**{**fields, "commit_offset": max(0, fields["commit_offset"] - 1)})


MUTANTS: Final[dict[str, Mutant]] = {
    each.name: each
    for each in (
        Mutant(
            "seek-ignored", "a lite pull consumer does not go back to the beginning", "SPEC-1",
            "mqproof.impl.client.consuming.lite_pull_consumer:LitePullConsumer.seek_to_begin", _no_rewind,
        ),
        Mutant(
            "one-queue-scheduled", "a scheduled pull service calls its task for queue 0 only", "SPEC-1",
            "mqproof.impl.client.consuming.scheduled_pull:ScheduledPull.gain", _first_queue_only,
        ),
        Mutant(
            "broadcast-begins-again", "a restarted broadcast member does not read its offsets", "SPEC-1",
            "mqproof.impl.client.consuming.offset_store:FileOffsets.load", _nothing_stored,
        ),
        Mutant(
            "pulls-one-less", "a push consumer pulls up to 31 messages", "SPEC-1",
            "mqproof.impl.client.consuming.group_requests:PullRequest", _one_less,
        ),
        Mutant(
            "held-longer", "a pull of a push consumer is held for up to 16 s", "SPEC-1",
            "mqproof.impl.client.consuming.group_requests:PullRequest", _held_longer,
        ),
        Mutant(
            "never-subscribed", "a pull has no subscription of its own", "SPEC-1",
            "mqproof.impl.client.consuming.group_requests:PullRequest", _never_subscribed,
        ),
        Mutant(
            "retries-not-subscribed", "a member does not subscribe to its retry topic", "SPEC-1",
            "mqproof.impl.client.consuming.push_consumer:ConsumerData", _without_retries,
        ),
        Mutant(
            "shown-behind", "a member reports offsets that are one behind", "SPEC-1",
            "mqproof.impl.client.consuming.running_info:HeldQueue", _behind,
        ),
        Mutant(
            "reset-not-notified", "members are not notified that their offsets were reset", "SPEC-1",
            "mqproof.impl.broker.processors.offset_admin:_notify_members", _no_effect,
        ),
        Mutant(
            "reset-not-obeyed", "a push consumer ignores a reset and continues at its position", "SPEC-1",
            "mqproof.impl.client.consuming.push_consumer:PushConsumer.reset_offsets", _no_effect,
        ),
        Mutant(
            "taken-over-too-low", "a push consumer that takes over a queue reads its last message again",
            "SPEC-1", "mqproof.impl.client.consuming.offset_store:Offsets.load", _one_behind,
        ),
        Mutant(
            "taken-over-too-high", "a push consumer that takes a queue over skips a message", "SPEC-1",
            "mqproof.impl.client.consuming.offset_store:Offsets.load", _one_ahead,
        ),
        Mutant(
            "empty-share-kept", "a member that should have no queue keeps its queues", "SPEC-1",
            "mqproof.impl.client.consuming.rebalance:Rebalancer._queues_of_member", nothing_is_no_share,
        ),
        Mutant(
            "commit-of-slow-member-stored",
            "a member that lost its queue and is behind commits a lower offset than the new owner's",
            "DELIV-5",
            "mqproof.impl.client.consuming.group_requests:GroupRequests.commit", _back_too,
        ),
    )
}  # fmt: skip
"""The mutants by name."""

OF_CALLS: Final[dict[str, Mutant]] = {
    each.name: each
    for each in (
        Mutant(
            "numbers-not-checked", "the numbers of a push consumer's configuration are not checked", "SPEC-1",
            "mqproof.impl.client.consuming.push_consumer:require_whole", _no_effect,
        ),
        Mutant(
            "locks-not-renewed", "an orderly consumer does not renew its locks", "SPEC-1",
            "mqproof.impl.client.consuming.locks:QueueLocks.renew", _none_lost,
        ),
        Mutant(
            "batch-to-any-queue", "the blocking client ignores the queue of a batch", "SPEC-1",
            "mqproof.impl.client.blocking:BlockingClient.send_batch", _to_any_queue,
        ),
        Mutant(
            "rebalance-fails-at-its-end", "a rebalance fails after its last step, which only the log shows",
            "SPEC-1", "mqproof.impl.client.consuming.consumer_events:ConsumerEvents.rebalanced", _no_number,
        ),
        Mutant(
            "traces-in-one-message", "all trace records that wait are sent in one message", "SPEC-1",
            "mqproof.impl.client.tracing.trace_dispatcher:TraceDispatcher._next_batch", _whole_batch,
        ),
        Mutant(
            "function-not-uploaded", "a consumer does not upload its function when a filter server lacks it",
            "SPEC-1", "mqproof.impl.client.consuming.group_requests:GroupRequests._upload", _not_uploaded,
        ),
        Mutant(
            "polled-before-the-move-counts", "messages polled before their queue moved count as consumed",
            "SPEC-1", "mqproof.impl.client.consuming.lite_pull_consumer:LitePullConsumer._done", _also_moved,
        ),
    )
}  # fmt: skip
"""The mutants that every call of the client detects, by name."""
