"""The SQL92 expressions of the groups, by topic, and consumerFilter.json.

A pull that names no expression uses the one of its group's heartbeats. See
docs/reference/protocol/filters.md, "Filter data".
"""

import logging
from collections.abc import Iterable
from typing import Final

import msgspec

from mqproof.impl.broker.state.durable_table import DurableTable, read_config
from mqproof.impl.filtering.sql import compiled
from mqproof.impl.filtering.tokens import ExpressionError
from mqproof.impl.remoting.bodies import FILTERS_MAX, DataVersion, GroupFilter, Subscription
from mqproof.impl.runtime.runtime import Runtime
from mqproof.impl.store.damage import DamageReport

_log = logging.getLogger(__name__)

SQL92: Final = "SQL92"
_KEPT_MS: Final = 24 * 3_600_000
"""How long the expression of a group without members is kept."""
_DEAD_BEFORE_START_MS: Final = 30_000
"""An expression that is read from the file counts as that of a group that left this long ago."""
_RENEWED_MS: Final = _KEPT_MS // 2
"""How old the end of a group without members here may be while it has members at the master."""
_SHARED_BYTES_MAX: Final = 4 << 20
"""About the most bytes of the expressions that a master sends to its slave."""
_FIELDS_BYTES: Final = 150


class FilterData(msgspec.Struct, frozen=True, rename="camel"):
    """The expression of a group for a topic."""

    topic: str
    consumer_group: str
    expression: str
    expression_type: str = SQL92
    born_time: int = 0
    """When it was first received, in milliseconds."""
    client_version: int = 0
    """The version of the subscription, which is a time in milliseconds."""
    dead_time: int = 0
    """When the group lost its last member, in milliseconds; 0 while it has one."""


class _OfTopic(msgspec.Struct, rename="camel"):
    topic: str = ""
    group_filter_data: dict[str, FilterData] = {}


class _File(msgspec.Struct, rename="camel"):
    filter_data_by_topic: dict[str, _OfTopic] = {}


class ConsumerFilterTable:
    """All expressions, in memory and in the file. A change is on disk after the next `persist`."""

    def __init__(self, path: str, runtime: Runtime) -> None:
        self._path = path
        self._disk = runtime.disk
        self._table: DurableTable[FilterData] = DurableTable(path, runtime, _file)
        self._topics_of: dict[str, dict[str, None]] = {}
        """The topics of each group. Each heartbeat asks for them, so the whole table must not be searched."""

    def load(self, now_ms: int, damage: DamageReport | None = None) -> None:
        """Read the file, if it exists. Its groups have no members yet.

        Raises:
            StoreError: the file is not a table of filters. OSError: it cannot be read.
        """
        stored = read_config(self._disk, self._path, _File, damage)
        if stored is not None:
            values = {
                _key(topic, group): msgspec.structs.replace(
                    data, dead_time=data.dead_time or now_ms - _DEAD_BEFORE_START_MS
                )
                for topic, of_topic in stored.filter_data_by_topic.items()
                for group, data in of_topic.group_filter_data.items()
            }
            self._table.load(self._table.version, values)
            for topic, of_topic in stored.filter_data_by_topic.items():
                for group in of_topic.group_filter_data:
                    self._topics_of.setdefault(group, {})[topic] = None

    def get(self, topic: str, group: str) -> FilterData | None:
        return self._table.get(_key(topic, group))

    def register(self, group: str, subscriptions: Iterable[Subscription], now_ms: int) -> None:
        """Record the expressions in a heartbeat of a member. A later version replaces an earlier one."""
        filtered = {each.topic: each for each in subscriptions if each.expression_type == SQL92}
        changed = {}
        for topic, subscription in filtered.items():
            known = self.get(topic, group)
            data = self._registered(group, subscription, known, now_ms)
            if data is not None and data != known:
                changed[_key(topic, group)] = data
                self._topics_of.setdefault(group, {})[topic] = None
        for key, known in self._of_group(group).items():
            if known.topic not in filtered and not known.dead_time:
                changed[key] = msgspec.structs.replace(known, dead_time=now_ms)
        self._table.add_now(changed)

    def _registered(
        self, group: str, subscription: Subscription, known: FilterData | None, now_ms: int
    ) -> FilterData | None:
        """Return the data that results from a subscription, or None if it cannot be recorded."""
        text = subscription.sub_string or ""
        if known is not None and subscription.sub_version <= known.client_version:
            return msgspec.structs.replace(known, dead_time=0)
        if known is not None and text == known.expression:
            return msgspec.structs.replace(known, client_version=subscription.sub_version, dead_time=0)
        try:
            compiled(text)
        except ExpressionError as error:
            _log.warning("the expression of group %s for %s: %s", group, subscription.topic, error)
            return None
        if known is None and len(self._table) >= FILTERS_MAX:
            _log.warning("the expression of group %s is not kept: there are %d", group, FILTERS_MAX)
            return None
        return FilterData(
            subscription.topic, group, text, born_time=now_ms, client_version=subscription.sub_version
        )

    def shared(self) -> list[GroupFilter]:
        """Return the expressions for a slave, the latest versions first, up to a few megabytes.

        The slave has the others from the heartbeats of the groups' members.
        """
        found: list[GroupFilter] = []
        size = 0
        for data in sorted(self._table.values().values(), key=lambda data: -data.client_version):
            size += len(data.expression) + len(data.topic) + len(data.consumer_group) + _FIELDS_BYTES
            if size > _SHARED_BYTES_MAX:
                break
            found.append(
                GroupFilter(
                    data.topic,
                    data.consumer_group,
                    data.expression,
                    data.born_time,
                    data.client_version,
                    data.dead_time,
                )
            )
        return found

    def adopt(self, filters: Iterable[GroupFilter], now_ms: int) -> None:
        """Record a master's expressions, but none of a group with members here, and no earlier version.

        A group without members here is kept as one that left now, so that it is forgotten when the master is
        gone and no member comes back.
        """
        changed: dict[str, FilterData] = {}
        for each in filters:
            known, dead_ms = self.get(each.topic, each.consumer_group), each.dead_time or now_ms
            if known is None:
                is_new = len(self._table) + len(changed) < FILTERS_MAX
            else:
                is_new = _is_newer(each, known, dead_ms)
            if is_new and _is_valid(each):
                changed[_key(each.topic, each.consumer_group)] = FilterData(
                    each.topic,
                    each.consumer_group,
                    each.expression,
                    born_time=each.born_time,
                    client_version=each.client_version,
                    dead_time=dead_ms,
                )
                self._topics_of.setdefault(each.consumer_group, {})[each.topic] = None
        self._table.add_now(changed)

    def group_left(self, group: str, now_ms: int) -> None:
        """Record that a group has no member any more."""
        alive = {key: data for key, data in self._of_group(group).items() if not data.dead_time}
        self._table.add_now(
            {key: msgspec.structs.replace(data, dead_time=now_ms) for key, data in alive.items()}
        )

    async def drop_expired(self, now_ms: int) -> None:
        """Forget the expressions of groups that left a day ago. Raises OSError."""
        expired = {
            _key(topic, group): (topic, group)
            for group, topics in self._topics_of.items()
            for topic in topics
            if (data := self.get(topic, group)) is not None
            and data.dead_time
            and now_ms - data.dead_time >= _KEPT_MS
        }
        if expired:
            await self._table.change(dict.fromkeys(expired))
        for topic, group in expired.values():
            del self._topics_of[group][topic]
            if not self._topics_of[group]:
                del self._topics_of[group]

    async def persist(self) -> None:
        """Write the file if memory has changes that it lacks. Raises OSError when that fails."""
        await self._table.persist()

    def _of_group(self, group: str) -> dict[str, FilterData]:
        found = {_key(topic, group): self.get(topic, group) for topic in self._topics_of.get(group, ())}
        return {key: data for key, data in found.items() if data is not None}


def _is_newer(received: GroupFilter, known: FilterData, dead_ms: int) -> bool:
    """Return whether a master's expression replaces the one of a group, which left at `dead_ms` at last."""
    if not known.dead_time or known.client_version > received.client_version:
        return False
    has_changed = (known.expression, known.client_version) != (received.expression, received.client_version)
    return has_changed or dead_ms - known.dead_time >= _RENEWED_MS


def _is_valid(received: GroupFilter) -> bool:
    try:
        compiled(received.expression)
    except ExpressionError as error:
        _log.warning("the expression of group %s for %s: %s", received.consumer_group, received.topic, error)
        return False
    return True


def _key(topic: str, group: str) -> str:
    return f"{topic}@{group}"


def _file(_version: DataVersion, values: dict[str, FilterData]) -> _File:
    by_topic: dict[str, _OfTopic] = {}
    for data in values.values():
        of_topic = by_topic.setdefault(data.topic, _OfTopic(data.topic, {}))
        of_topic.group_filter_data[data.consumer_group] = data
    return _File(by_topic)
