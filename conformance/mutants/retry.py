"""Mutants of a broker's retries and delays, used to judge the suite.

Each replaces one rule by a wrong one. Those of a consumer are detected by behaviours of Retry (`STEPPED`).
"""

import contextlib
from typing import Any, Final

from msgspec.structs import replace as with_members

from mqproof.conformance.mutants.mutant import Mutant, by_name
from mqproof.impl.broker.delayed import DelayedDelivery, DelayOffsets
from mqproof.impl.broker.processors import retries
from mqproof.impl.broker.services import Services
from mqproof.impl.client.consuming.redelivery import Redelivery
from mqproof.impl.client.model import ClientError, ReceivedMessage
from mqproof.impl.remoting.bodies import SubscriptionGroup, TopicConfig
from mqproof.impl.remoting.codes import ResponseCode
from mqproof.impl.remoting.message import ORIGIN_MESSAGE_ID, RETRY_TOPIC, Message, StoredMessage
from mqproof.impl.remoting.request_handler import RefusedError
from mqproof.impl.store.base import Store
from mqproof.impl.store.delay import SCHEDULE_TOPIC, unit_code
from mqproof.impl.store.files.consume_queue import Unit
from mqproof.impl.store.results import PutStatus

_again, _is_given_up, _find = retries._again, retries.is_given_up, retries._find
_message, _entry = DelayedDelivery._message, Store.entry
_deliver, _run_level, _cut = DelayedDelivery._put, DelayedDelivery._deliver, DelayedDelivery.cut
_LATE_MS: Final = 500


def _count_stays(services: Services, original: StoredMessage, topic: TopicConfig, level: int) -> Message:
    """Does not increase the count of retries, so that the message is retried forever."""
    again = _again(services, original, topic, level)
    return with_members(again, reconsume_times=original.message.reconsume_times)


def _copy_of_the_copy(services: Services, original: StoredMessage, topic: TopicConfig, level: int) -> Message:
    again = _again(services, original, topic, level)
    return with_members(again, properties={**again.properties, ORIGIN_MESSAGE_ID: original.offset_message_id})


def _topic_forgotten(services: Services, original: StoredMessage, topic: TopicConfig, level: int) -> Message:
    again = _again(services, original, topic, level)
    return with_members(again, properties={**again.properties, RETRY_TOPIC: original.message.topic})


def _level_stays_one(services: Services, original: StoredMessage, topic: TopicConfig, level: int) -> Message:
    return _again(services, original, topic, 1 if level else 0)


def _next_level(services: Services, original: StoredMessage, topic: TopicConfig, level: int) -> Message:
    return _again(services, original, topic, level and level + 1)


def _one_too_few(times: int, request_max: int | None, group: SubscriptionGroup) -> bool:
    return _is_given_up(times + 1, request_max, group)


def _one_too_many(times: int, request_max: int | None, group: SubscriptionGroup) -> bool:
    return times > 0 and _is_given_up(times - 1, request_max, group)


def _request_ignored(times: int, _request_max: int | None, group: SubscriptionGroup) -> bool:
    return _is_given_up(times, None, group)


def _half_a_second_early(
    store: Store, topic: str, queue_id: int, offset: int
) -> tuple[Unit, StoredMessage] | None:
    """Changes the due time after the store has compared it with the record."""
    found = _entry(store, topic, queue_id, offset)
    return found and (found[0]._replace(tags_code=found[0].tags_code - 500), found[1])


def _passed_over(delivery: DelayedDelivery, stored: StoredMessage, address: Any, done: Any) -> None:
    """Treats every third message of a level as delivered."""
    if delivery._store.now_ms() % 3 == 0:
        done(None, PutStatus.PUT_OK)
    else:
        _deliver(delivery, stored, address, done)


def _put_twice(delivery: DelayedDelivery, stored: StoredMessage, address: Any, done: Any) -> None:
    """Stores the message twice, as if the first attempt had failed."""
    _deliver(delivery, stored, address, lambda *_: None)
    _deliver(delivery, stored, address, done)


def _nearest_message(services: Services, commit_offset: int) -> StoredMessage:
    """Treats an offset without a message as the oldest message."""
    there = services.store.record_at(commit_offset) is not None
    return _find(services, commit_offset if there else services.store.log_begin)


def _first_copies_only(services: Services, commit_offset: int) -> StoredMessage:
    found = _find(services, commit_offset)
    if found.message.reconsume_times:
        raise RefusedError(ResponseCode.SYSTEM_ERROR, "it is a copy")
    return found


def _body_of_none(delivery: DelayedDelivery, stored: StoredMessage) -> Message | None:
    message = _message(delivery, stored)
    return message and with_members(message, body=b"unsent")


async def _what_waits_is_passed_over(delivery: DelayedDelivery, level: int, address: Any) -> None:
    delivery._next[level] = delivery._store.max_offset(SCHEDULE_TOPIC, level - 1)
    await _run_level(delivery, level, address)


def _recorded_by_message(delivery: DelayedDelivery, stored: StoredMessage, address: Any, done: Any) -> None:
    """Treats a later copy of a message as already delivered.

    Messages that arrive late, as all repeated ones do after a crash, are recorded by message instead of by
    copy.
    """
    message, known = stored.message, delivery.__dict__.setdefault("known", set())
    key = message.body, message.reconsume_times
    due_ms = unit_code(message, stored.store_timestamp_ms, delivery._store.config.delay_levels_ms)
    if due_ms + _LATE_MS <= delivery._store.now_ms():
        known.add(key)
    elif key in known:
        done(None, PutStatus.PUT_OK)
        return
    _deliver(delivery, stored, address, done)


def _advance_one_behind(delivery: DelayedDelivery, level: int, offset: int) -> int:
    """Records the delivered message itself as the next one."""
    delivery._next[level] = offset
    delivery._unwritten.is_any = True
    return offset + 1


def _beyond_the_queue(_delivery: DelayedDelivery) -> None:
    """Continues at the recorded offset, also if the queue ends before it."""


def _cut_in_memory(delivery: DelayedDelivery) -> None:
    was_dirty = delivery._unwritten.is_any
    _cut(delivery)
    delivery._unwritten.is_any = was_dirty


def _no_progress(_delivery: DelayedDelivery) -> DelayOffsets:
    """Leaves the file without offsets; a broker without the file would not start."""
    return DelayOffsets()


async def _done_without_a_copy(redelivery: Redelivery, message: ReceivedMessage, level: int = 0) -> bool:
    """Sends no copy when the broker does not answer."""
    with contextlib.suppress(ClientError):
        await redelivery._calls.send_back(message, level, redelivery._reconsume_max)
    return True


_AGAIN: Final = "mqproof.impl.broker.processors.retries:_again"
_GIVEN_UP: Final = "mqproof.impl.broker.processors.retries:is_given_up"

MUTANTS: Final = by_name(
    Mutant(
        "delayed-body-lost", "a delayed message is delivered with another body", "DELIV-2",
        "mqproof.impl.broker.delayed:DelayedDelivery._message", _body_of_none,
    ),
    Mutant(
        "origin-of-last-copy", "a redelivered message names its last copy as its origin, not its first",
        "DELIV-2", _AGAIN, _copy_of_the_copy,
    ),
    Mutant(
        "retry-topic-as-origin",
        "a message that is redelivered twice names the retry topic as its origin",
        "DELIV-2", _AGAIN, _topic_forgotten,
    ),
    Mutant(
        "delayed-put-twice", "a delayed message is delivered twice", "DELIV-3",
        "mqproof.impl.broker.delayed:DelayedDelivery._put", _put_twice,
    ),
    Mutant(
        "dead-too-early", "a message becomes a dead letter one retry too early", "DELIV-7", _GIVEN_UP,
        _one_too_few,
    ),
    Mutant(
        "dead-too-late", "a message is retried once too often", "DELIV-7", _GIVEN_UP, _one_too_many,
    ),
    Mutant(
        "asked-retries-ignored", "the maximum number of retries in the request is ignored",
        "DELIV-7", _GIVEN_UP,
        _request_ignored,
    ),
    Mutant(
        "delayed-passed-over", "some delayed messages count as delivered", "DELIV-7",
        "mqproof.impl.broker.delayed:DelayedDelivery._put", _passed_over,
    ),
    Mutant(
        "level-one-always", "every retry waits for level 1 only", "DELIV-8", _AGAIN, _level_stays_one,
    ),
    Mutant(
        "due-half-a-second-early", "a delayed message is delivered half a second early", "DELIV-8",
        "mqproof.impl.store.base:Store.entry", _half_a_second_early,
    ),
    Mutant(
        "retries-not-counted", "a message that is sent back does not increase its count of retries",
        "DELIV-7", _AGAIN,
        _count_stays,
    ),
    Mutant(
        "nothing-sent-back", "sending back a message that does not exist succeeds", "DELIV-3",
        "mqproof.impl.broker.processors.retries:_find", _nearest_message,
    ),
    Mutant(
        "retry-not-sent-back", "a redelivered message cannot be sent back", "SPEC-1",
        "mqproof.impl.broker.processors.retries:_find", _first_copies_only,
    ),
    Mutant(
        "delayed-lost-at-start", "messages that are delayed while a broker starts are never delivered",
        "DELIV-7",
        "mqproof.impl.broker.delayed:DelayedDelivery._deliver", _what_waits_is_passed_over,
    ),
    Mutant(
        "copy-identified-by-message",
        "after a crash, a repeated message makes its next copy count as delivered",
        "DELIV-7", "mqproof.impl.broker.delayed:DelayedDelivery._put", _recorded_by_message,
    ),
    Mutant(
        "delay-offsets-not-written", "the progress of delayed messages is not written: all are delivered"
        " again (issue 6881)", "DELIV-3", "mqproof.impl.broker.delayed:DelayedDelivery.offsets",
        _no_progress,
    ),
    Mutant(
        "retry-level-off-by-one", "a retry waits for one delay level more than it should", "DELIV-7",
        _AGAIN, _next_level,
    ),
    Mutant(
        "delayed-beyond-the-queue",
        "delayed messages continue at the recorded offset, although their queue ends before it",
        "DELIV-7",
        "mqproof.impl.broker.delayed:DelayedDelivery.cut", _beyond_the_queue,
    ),
    Mutant(
        "delayed-cut-not-written",
        "the offset of a queue that lost messages is lowered, but not written before new messages arrive",
        "DELIV-7", "mqproof.impl.broker.delayed:DelayedDelivery.cut", _cut_in_memory,
    ),
    Mutant(
        "delayed-put-for-ever", "the progress of delayed messages is written one behind, so that the"
        " last one is delivered for ever", "SPEC-1",
        "mqproof.impl.broker.delayed:DelayedDelivery._advance", _advance_one_behind,
    ),
)  # fmt: skip
"""The mutants by name."""

STEPPED: Final = by_name(
    Mutant(
        "done-without-a-copy", "a failed message that no broker took back counts as consumed", "DELIV-7",
        "mqproof.impl.client.consuming.redelivery:Redelivery.send_back", _done_without_a_copy,
    ),
)  # fmt: skip
"""The mutants by name; a stepped consumer detects them (`redelivered_messages`)."""
