"""Mutants of a broker's pulls and offsets, used to judge the suite. Each replaces one rule by a wrong one."""

from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any, Final

from mqproof.conformance.mutants.mutant import Mutant, by_name
from mqproof.impl.broker.broker import Broker
from mqproof.impl.broker.processors import pull, queries
from mqproof.impl.broker.requests import offset_commits
from mqproof.impl.broker.services import Services
from mqproof.impl.broker.state.offsets import OffsetTable
from mqproof.impl.filtering.predicates import EvaluationError, Properties
from mqproof.impl.filtering.sql import Filter
from mqproof.impl.remoting.headers import PullRequest, UpdateOffsetRequest
from mqproof.impl.store import reader, recovery
from mqproof.impl.store.message_store import MessageStore
from mqproof.impl.store.recovery import Parts
from mqproof.impl.store.results import GetResult, GetStatus

_get, _refusal, _read_messages = MessageStore.get, reader._refusal, reader.read_messages
_tags, _commit = pull._tags, OffsetTable.commit
_commit_offset, _query = offset_commits.commit_offset, OffsetTable.query
_offset_at_time = queries.offset_at_time
_stop, _every, _recover_queues = Broker.stop, Broker._every, recovery.recover_queues


def _too_small_goes_to_the_end(offset: int, begin: int, end: int) -> tuple[GetStatus, int] | None:
    """Moves the consumer to the end, as for a new group with CONSUME_FROM_LAST_OFFSET."""
    if end and offset < begin:
        return GetStatus.OFFSET_TOO_SMALL, end
    return _refusal(offset, begin, end)


def _beyond_goes_to_zero(offset: int, begin: int, end: int) -> tuple[GetStatus, int] | None:
    """Moves the consumer to offset 0, as releases did before issue 2181 was fixed."""
    if end and offset > end and begin == 0:
        return GetStatus.OFFSET_OVERFLOW_BADLY, 0
    return _refusal(offset, begin, end)


def _other_queue(store: MessageStore, topic: str, queue_id: int, *args: Any, **options: Any) -> GetResult:
    other = queue_id ^ 1
    return _get(store, topic, other if store.max_offset(topic, other) else queue_id, *args, **options)


def _newest_first(*args: Any) -> GetResult:
    found = _read_messages(*args)
    return replace(found, records=found.records[::-1])


def _one_too_many(log: Any, queue: Any, offset: int, max_count: int, *args: Any) -> GetResult:
    return _read_messages(log, queue, offset, max_count + 1, *args)


def _unmatched_stays(*args: Any) -> GetResult:
    found = _read_messages(*args)
    if found.status is GetStatus.NO_MATCHED_MESSAGE:
        return replace(found, next_offset=args[2])
    return found


def _tail_is_passed_over(*args: Any) -> GetResult:
    """Skips the messages that did not fit into a full answer."""
    found = _read_messages(*args)
    return replace(found, next_offset=found.max_offset) if found.records else found


def _every_tag(*_args: Any) -> Collection[int]:
    return frozenset()


def _first_tag_only(expression: str | None, is_class_filter: bool) -> Collection[int]:
    return _tags(expression.split("||")[0] if expression else expression, is_class_filter)


def _every_record(*_args: Any) -> None:
    pass


def _unless_false(compiled: Filter, properties: Properties) -> bool:
    try:
        return compiled.result(properties) is not False
    except EvaluationError:
        return False


def _no_wake_up(*_args: Any) -> None:
    pass


def _smaller_is_not_taken(table: OffsetTable, group: str, topic: str, queue_id: int, offset: int) -> None:
    if offset >= (table.query(group, topic, queue_id) or 0):
        _commit(table, group, topic, queue_id, offset)


def _larger_is_not_taken(table: OffsetTable, group: str, topic: str, queue_id: int, offset: int) -> None:
    if offset <= (table.query(group, topic, queue_id) or offset):
        _commit(table, group, topic, queue_id, offset)


def _not_with_a_pull(services: Services, header: UpdateOffsetRequest | PullRequest) -> None:
    if not isinstance(header, PullRequest):
        _commit_offset(services, header)


def _nothing_is_zero(table: OffsetTable, group: str, topic: str, queue_id: int) -> int:
    return _query(table, group, topic, queue_id) or 0


def _one_later(services: Services, topic: str, queue_id: int, timestamp_ms: int) -> int:
    return _offset_at_time(services, topic, queue_id, timestamp_ms) + 1


async def _offsets_stay_unwritten(broker: Broker) -> None:
    async def nothing() -> None:
        pass

    broker._persist_offsets = nothing  # type: ignore[method-assign]
    await _stop(broker)


def _all_but_offsets(broker: Broker, seconds: float, work: Callable[[], Any], *args: Any) -> None:
    if work != broker._persist_offsets:
        _every(broker, seconds, work, *args)


def _expired_is_back(parts: Parts, start: int) -> tuple[int, int]:
    found = _recover_queues(parts, start)
    for queue in parts.queues:
        queue.first = queue.begin
    return found


_READ: Final = "mqproof.impl.store.base:read_messages"
_REFUSAL: Final = "mqproof.impl.store.reader:_refusal"
_COMMIT: Final = "mqproof.impl.broker.state.offsets:OffsetTable.commit"

MUTANTS: Final = by_name(
    Mutant(
        "expired-goes-to-the-end", "a pull from an expired offset is moved to the end of the queue",
        "DELIV-1",
        _REFUSAL, _too_small_goes_to_the_end,
    ),
    Mutant(
        "pull-of-the-other-queue", "a pull reads another queue of the topic", "DELIV-2",
        "mqproof.impl.store.message_store:MessageStore.get", _other_queue,
    ),
    Mutant(
        "answer-upside-down", "a response has the newest message first", "DELIV-4", _READ, _newest_first,
    ),
    Mutant(
        "larger-commit-ignored", "a commit that is greater than the last one is not stored", "DELIV-5",
        _COMMIT, _larger_is_not_taken,
    ),
    Mutant(
        "pull-commits-nothing", "the commit offset of a pull request is not stored", "DELIV-5",
        "mqproof.impl.broker.processors.pull:commit_offset", _not_with_a_pull,
    ),
    Mutant("tags-ignored", "a pull returns messages of every tag", "DELIV-10",
            "mqproof.impl.broker.processors.pull:_tags", _every_tag),
    Mutant(
        "sql-ignored", "a pull by SQL92 returns every message", "DELIV-10",
        "mqproof.impl.broker.processors.pull:selection", _every_record,
    ),
    Mutant(
        "sql-unknown-matches", "a message for which an SQL92 expression is unknown is returned",
        "DELIV-10",
        "mqproof.impl.filtering.sql:Filter.matches", _unless_false,
    ),
    Mutant(
        "first-tag-only", "a pull with `A || B` returns messages of A only", "DELIV-10",
        "mqproof.impl.broker.processors.pull:_tags", _first_tag_only,
    ),
    Mutant(
        "rest-passed-over", "the next offset of a response skips messages that did not fit",
        "DELIV-10", _READ,
        _tail_is_passed_over,
    ),
    Mutant(
        "beyond-goes-to-zero", "a pull beyond the end is moved to offset 0 (issue 2181)", "SPEC-1",
        _REFUSAL, _beyond_goes_to_zero,
    ),
    Mutant(
        "unmatched-asked-again", "if no message matches, the next offset is the same as before", "SPEC-1",
        _READ, _unmatched_stays,
    ),
    Mutant("one-too-many", "a response has one message more than requested", "SPEC-1", _READ,
            _one_too_many),
    Mutant(
        "held-pull-not-woken", "a new message does not complete the pull that waits for it", "SPEC-1",
        "mqproof.impl.broker.long_polling:PullHolds.arrived", _no_wake_up,
    ),
    Mutant(
        "reset-ignored", "a commit that goes back is answered with success and not stored", "SPEC-1",
        _COMMIT, _smaller_is_not_taken,
    ),
    Mutant(
        "nothing-is-zero", "a group without an offset is at 0 although the first message has expired",
        "SPEC-1", "mqproof.impl.broker.state.offsets:OffsetTable.query", _nothing_is_zero,
    ),
    Mutant(
        "time-of-the-next", "a search by time returns the message after the correct one", "SPEC-1",
        "mqproof.impl.broker.processors.queries:offset_at_time", _one_later,
    ),
    Mutant(
        "offsets-not-written-at-exit", "a stopping broker does not write the latest offsets",
        "DELIV-5", "mqproof.impl.broker.broker:Broker.stop", _offsets_stay_unwritten,
    ),
    Mutant(
        "offsets-written-at-exit-only", "a broker writes offsets only at a clean exit",
        "DELIV-5", "mqproof.impl.broker.broker:Broker._every", _all_but_offsets,
    ),
    Mutant(
        "expired-is-back-after-start", "after a restart a broker reports messages that it has deleted",
        "SPEC-1", "mqproof.impl.store.recovery:recover_queues", _expired_is_back,
    ),
)  # fmt: skip
"""The mutants by name."""
