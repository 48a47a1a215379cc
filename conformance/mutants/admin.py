"""Mutants of a broker's administration, used to judge the suite. Each replaces one rule by a wrong one."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from msgspec.structs import replace

from mqproof.conformance.mutants.mutant import Mutant, by_name
from mqproof.impl.broker.requests import checks
from mqproof.impl.broker.services import Services
from mqproof.impl.broker.state.durable_table import DurableTable
from mqproof.impl.broker.state.offsets import OffsetTable
from mqproof.impl.broker.state.subscription_groups import SubscriptionGroupTable
from mqproof.impl.broker.state.topics import TopicTable
from mqproof.impl.remoting.bodies import SubscriptionGroup, TopicConfig
from mqproof.impl.remoting.budget import Peer
from mqproof.impl.remoting.channel import Channel
from mqproof.impl.remoting.message import KEYS, UNIQUE_KEY, Message
from mqproof.impl.store.files.index import Index
from mqproof.impl.store.message_store import MessageStore

_find, _record_at = MessageStore.find, MessageStore.record_at
_put_all, _groups_put_all = TopicTable.put_all, SubscriptionGroupTable.put_all
_remove_group, _find_offsets = OffsetTable.remove_group, Index.find


def _one_key_only(message: Message) -> tuple[str, ...]:
    """Treats KEYS as one key, including its spaces."""
    keys = (message.properties.get(UNIQUE_KEY), message.properties.get(KEYS))
    return tuple(key for key in keys if key)


def _any_topic(store: MessageStore, _topic: str, *args: Any, **options: Any) -> list[bytes]:
    return [data for topic in store.topics() for data in _find(store, topic, *args, **options)]


def _oldest_left_out(store: MessageStore, *args: Any, **options: Any) -> list[bytes]:
    found = _find(store, *args, **options)
    return found[1:] if len(found) > 1 else found


def _newest_file_only(index: Index, *args: Any) -> Iterator[int]:
    files = index._files
    index._files = files[-1:]
    try:
        yield from list(_find_offsets(index, *args))
    finally:
        index._files = files


def _newest_first(store: MessageStore, *args: Any, **options: Any) -> list[bytes]:
    return _find(store, *args, **options)[::-1]


def _always_the_first(store: MessageStore, _commit_offset: int) -> bytes | None:
    return _record_at(store, store.log_begin)


def _counts_stay(table: TopicTable, topics: Iterable[TopicConfig], by: Peer | None = None) -> Any:
    """Does not change the numbers of queues of an existing topic."""

    def kept(topic: TopicConfig) -> TopicConfig:
        known = table.get(topic.topic_name)
        if known is None:
            return topic
        return replace(topic, read_queue_nums=known.read_queue_nums, write_queue_nums=known.write_queue_nums)

    return _put_all(table, map(kept, topics), by)


async def _nothing_is_deleted(_table: TopicTable, _topics: Iterable[str]) -> None:
    pass


def _queues_stay(_store: MessageStore, _topic: str) -> None:
    pass


def _group_may_always(services: Services, group: str, channel: Channel) -> SubscriptionGroup:
    return checks.require_group(services, group, channel)


def _any_queue(_services: Services, topic_name: str, queue_id: int) -> None:
    checks.require_topic(_services, topic_name)
    assert queue_id >= 0


def _every_group_forgotten(table: OffsetTable, _group: str) -> None:
    for group in {key.partition("@")[2] for key in table._table}:
        _remove_group(table, group)


async def _known_groups_stay(
    table: SubscriptionGroupTable, groups: Iterable[SubscriptionGroup], by: Peer | None = None
) -> None:
    await _groups_put_all(table, [group for group in groups if table.get(group.group_name) is None], by)


async def _not_written_yet(table: DurableTable[Any], values: Mapping[str, Any]) -> None:
    """Answers before the change is written; the next change that is written includes it."""
    kept = {name: value for name, value in table.values().items() if name not in values}
    changed = {name: value for name, value in values.items() if value is not None}
    table.load(table.version, {**kept, **changed})
    table.renew_version()


def _cloned_offsets_added(table: OffsetTable, source: str, destination: str, topic: str) -> None:
    for queue_id, offset in table.of_group(source, topic).items():
        table.commit(destination, topic, queue_id, offset)


_STORE: Final = "mqproof.impl.store.message_store:MessageStore"
_TOPICS: Final = "mqproof.impl.broker.state.topics:TopicTable"

MUTANTS: Final = by_name(
    Mutant(
        "oldest-not-found", "of several messages with a key, the oldest is not found", "DELIV-1",
        f"{_STORE}.find", _oldest_left_out,
    ),
    Mutant(
        "keys-not-split", "a message is found only by all of its keys together", "DELIV-1",
        "mqproof.impl.store.appender:index_keys", _one_key_only,
    ),
    Mutant(
        "any-topic-searched", "a look-up by key also finds messages of other topics", "DELIV-2",
        f"{_STORE}.find", _any_topic,
    ),
    Mutant(
        "id-of-another", "a look-up by id returns the oldest message of the log", "DELIV-2",
        f"{_STORE}.record_at", _always_the_first,
    ),
    Mutant(
        "newest-found-first", "messages with a key are returned in reverse order",
        "SPEC-1", f"{_STORE}.find",
        _newest_first,
    ),
    Mutant(
        "queues-outlive-topic", "a topic that is created again has its old messages", "SPEC-1",
        f"{_STORE}.delete_topic", _queues_stay,
    ),
    Mutant(
        "queue-counts-stay", "the numbers of queues of a topic cannot be changed", "SPEC-1",
        f"{_TOPICS}.put_all", _counts_stay,
    ),
    Mutant(
        "topic-not-deleted", "a topic is not deleted on the broker", "SPEC-1", f"{_TOPICS}.delete",
        _nothing_is_deleted,
    ),
    Mutant(
        "group-not-changed", "an existing group cannot be changed", "SPEC-1",
        "mqproof.impl.broker.state.subscription_groups:SubscriptionGroupTable.put_all",
        _known_groups_stay,
    ),
    Mutant(
        "group-may-always", "a group without permission to consume consumes", "SPEC-1",
        "mqproof.impl.broker.processors.pull:require_consuming_group", _group_may_always,
    ),
    Mutant(
        "any-queue-is-read", "pulls ignore the permission and the number of queues", "SPEC-1",
        "mqproof.impl.broker.processors.pull:require_readable_queue", _any_queue,
    ),
    Mutant(
        "all-groups-forgotten", "deleting a group's offsets deletes those of all groups", "SPEC-1",
        "mqproof.impl.broker.state.offsets:OffsetTable.remove_group", _every_group_forgotten,
    ),
    Mutant(
        "cloned-offsets-added", "a clone keeps offsets in queues in which the source group has none",
        "SPEC-1", "mqproof.impl.broker.state.offsets:OffsetTable.clone", _cloned_offsets_added,
    ),
    Mutant(
        "newest-index-file-only", "a search by key ends with the newest index file", "DELIV-1",
        "mqproof.impl.store.files.index:Index.find", _newest_file_only,
    ),
    Mutant(
        "settings-written-later", "changes of topics and groups are answered before they are written",
        "SPEC-1",
        "mqproof.impl.broker.state.durable_table:DurableTable.change", _not_written_yet,
    ),
)  # fmt: skip
"""The mutants by name."""
