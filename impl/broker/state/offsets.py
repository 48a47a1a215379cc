"""The consumer offsets: a table in memory, and consumerOffset.json.

The file has RocketMQ's format and is replaced atomically. A crash loses the commits since the last write,
which causes redelivery but never loss. See docs/reference/protocol/offsets.md, "Consumer offsets".
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from mqproof.impl.broker.state.durable_table import read_config
from mqproof.impl.broker.state.unwritten import Unwritten
from mqproof.impl.remoting.bodies import DataVersion
from mqproof.impl.remoting.codes import ResponseCode
from mqproof.impl.remoting.java_json import write
from mqproof.impl.remoting.request_handler import RefusedError
from mqproof.impl.replication import rules
from mqproof.impl.runtime.clock import now_ms
from mqproof.impl.runtime.runtime import Runtime
from mqproof.impl.store.damage import DamageReport
from mqproof.impl.store.files.sealed_file import write_sealed

_SEPARATOR: Final = "@"
"""Separates topic and group; a topic's name cannot contain it."""


class _File(msgspec.Struct, rename="camel"):
    offset_table: dict[str, dict[int, int]] = {}


class _SlavesFile(_File):
    untold: dict[str, list[int]] = {}
    """The queues whose offset the slave has not sent to its master yet, by `TOPIC@GROUP`.

    Only mqproof writes this field, and only if it is not empty.
    """


class _Answer(_File):
    """The answer to a slave; a slave of 5.x rejects a table without a version."""

    data_version: DataVersion = DataVersion()


class OffsetTable:
    """Committed offsets by topic, group and queue. The last commit wins, whether greater or smaller."""

    def __init__(self, path: str, runtime: Runtime, pairs_max: int = 1_000_000) -> None:
        self._path = path
        self._pairs_max = pairs_max
        self._runtime = runtime
        self._table: dict[str, dict[int, int]] = {}
        self._unwritten = Unwritten()
        self._version = DataVersion(0, now_ms(runtime.clock))
        """Changes each time the file is written."""
        self.unsent: set[tuple[str, int]] | None = None
        """On a slave, the offsets committed here that the master has not received. None on a master."""

    def load(self, damage: DamageReport | None = None, *, required: bool = False) -> None:
        """Read consumerOffset.json, if it exists. If it does not, `persist` writes it.

        Raises:
            StoreError: the file is not an offset table, or is required and missing.
            OSError: it cannot be read.
        """
        stored = read_config(self._runtime.disk, self._path, _SlavesFile, damage, required=required)
        self._unwritten.is_any = stored is None
        if stored is not None:
            self._table = stored.offset_table
            self.unsent = {(key, queue_id) for key, queues in stored.untold.items() for queue_id in queues}

    def follow(self) -> None:
        """Become a slave: offsets committed here override the master's until the master has received them."""
        self.unsent = self.unsent or set()

    def lead(self) -> None:
        """Become a master."""
        self.unsent = None

    def commit(self, group: str, topic: str, queue_id: int, offset: int) -> None:
        """Set a group's offset in a queue.

        Raises:
            RefusedError: the table has the most pairs of topic and group already.
        """
        key = topic + _SEPARATOR + group
        offsets = self._table.get(key)
        if offsets is None:
            if len(self._table) >= self._pairs_max:
                remark = f"{len(self._table)} pairs of topic and group have offsets, which is the limit"
                raise RefusedError(ResponseCode.SYSTEM_ERROR, remark)
            offsets = self._table[key] = {}
        offsets[queue_id] = offset
        self._unwritten.is_any = True
        if self.unsent is not None:
            self.unsent.add((key, queue_id))

    def clone(self, source: str, destination: str, topic: str) -> None:
        """Copy one group's offsets in a topic to another group, if the first group has any there.

        Where the source has no offset, the destination has none afterwards, as in released brokers. Raises as
        `commit`.
        """
        if offsets := self.of_group(source, topic):
            self._table.get(topic + _SEPARATOR + destination, {}).clear()
            for queue_id, offset in offsets.items():
                self.commit(destination, topic, queue_id, offset)

    def merge(self, table: Mapping[str, Mapping[int, int]]) -> None:
        """Apply a master's offsets, except where this broker has a higher one that the master lacks.

        Offsets that the master does not have are kept: it may have restarted with an older file.
        """
        assert self.unsent is not None, "a master has no master to merge from"
        for key, masters in table.items():
            if key not in self._table and len(self._table) >= self._pairs_max:
                continue
            own = self._table.setdefault(key, {})
            merged = {
                queue_id: rules.merged_offset(
                    own.get(queue_id), offset, unsent=(key, queue_id) in self.unsent
                )
                for queue_id, offset in masters.items()
            }
            self.unsent -= {(key, queue_id) for queue_id in merged if merged[queue_id] == masters[queue_id]}
            if any(own.get(queue_id) != offset for queue_id, offset in merged.items()):
                own.update(merged)
                self._unwritten.is_any = True

    def newer_than(self, table: Mapping[str, Mapping[int, int]]) -> list[tuple[str, str, int, int]]:
        """Return the commits made here that are ahead of a master's offsets: topic, group, queue, offset."""
        newer = []
        for key, queue_id in sorted(self.unsent or ()):
            offset = self._table[key].get(queue_id, -1)
            if offset > table.get(key, {}).get(queue_id, -1):
                topic, _, group = _split(key)
                newer.append((topic, group, queue_id, offset))
        return newer

    def mark_sent(self, topic: str, group: str, queue_id: int, offset: int) -> None:
        """Record that the master has received the offset, if it is still the current one."""
        if self.unsent is not None and self.query(group, topic, queue_id) == offset:
            self.unsent.discard((topic + _SEPARATOR + group, queue_id))
            self._unwritten.is_any = True

    def query(self, group: str, topic: str, queue_id: int) -> int | None:
        """Return the committed offset, or None when the group never committed one for that queue."""
        return self._table.get(topic + _SEPARATOR + group, {}).get(queue_id)

    def of_group(self, group: str, topic: str) -> dict[int, int]:
        """Return a copy of the offsets that the group committed in the topic, by queue."""
        return dict(self._table.get(topic + _SEPARATOR + group, {}))

    def pairs(self) -> list[tuple[str, str]]:
        """Return the pairs of topic and group with committed offsets."""
        return [(topic, group) for topic, _, group in map(_split, self._table)]

    def topics_of(self, group: str) -> list[str]:
        """Return the topics in which the group committed offsets."""
        return [topic for topic, _, of in map(_split, self._table) if of == group]

    def groups_of(self, topic: str) -> list[str]:
        """Return the groups that committed offsets in the topic."""
        return [group for of, _, group in map(_split, self._table) if of == topic]

    def remove_topic(self, topic: str) -> None:
        """Remove all offsets in a topic."""
        self._remove([topic + _SEPARATOR + group for group in self.groups_of(topic)])

    def remove_group(self, group: str) -> None:
        """Remove all offsets of a group."""
        self._remove([topic + _SEPARATOR + group for topic in self.topics_of(group)])

    def answer(self) -> bytes:
        """Return the whole table as a response body for a slave."""
        return write(_Answer(self._table, self._version), standard=True)

    def _remove(self, keys: list[str]) -> None:
        for key in keys:
            del self._table[key]
            self._unwritten.is_any = True
        if self.unsent:
            self.unsent = {pair for pair in self.unsent if pair[0] in self._table}

    async def persist(self) -> None:
        """Write the file if anything changed since the last write. Raises OSError when that fails.

        After a failure or a cancellation, the next call writes again.
        """
        if not self._unwritten.is_any:
            return
        data = write(self._content(), standard=True)
        self._version = DataVersion(self._version.counter + 1, now_ms(self._runtime.clock))
        with self._unwritten.writing():
            await self._runtime.offload(lambda: write_sealed(self._runtime.disk, self._path, data))

    def _content(self) -> _File:
        if not self.unsent:
            return _File(self._table)
        unsent: dict[str, list[int]] = {}
        for key, queue_id in sorted(self.unsent):
            unsent.setdefault(key, []).append(queue_id)
        return _SlavesFile(self._table, unsent)


def _split(key: str) -> tuple[str, str, str]:
    return key.partition(_SEPARATOR)
