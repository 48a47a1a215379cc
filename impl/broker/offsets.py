"""How far each group has consumed each queue: a table in memory, and consumerOffset.json.

The file has RocketMQ's shape and is replaced atomically; a crash loses the commits since it was last written,
which means redelivery, never loss. See docs/protocol.md, "Consumer offsets".
"""

from typing import Final

import msgspec

from impl.remoting.java_json import BodyError, read, write
from impl.runtime.disk import read_whole, write_durably
from impl.runtime.runtime import Runtime
from impl.store.errors import StoreError

_SEPARATOR: Final = "@"
"""Between topic and group; no topic's name may have it."""


class _File(msgspec.Struct, rename="camel"):
    offset_table: dict[str, dict[int, int]] = {}


class OffsetTable:
    """Committed offsets by topic, group and queue. The last commit counts, greater or smaller."""

    def __init__(self, path: str, runtime: Runtime) -> None:
        self._path = path
        self._runtime = runtime
        self._table: dict[str, dict[int, int]] = {}
        self._is_dirty = False

    def load(self) -> None:
        """Read consumerOffset.json, if there is one.

        Raises:
            StoreError: the file is not an offset table. OSError: it cannot be read.
        """
        if self._runtime.disk.exists(self._path):
            try:
                self._table = read(_File, read_whole(self._runtime.disk, self._path)).offset_table
            except BodyError as error:
                raise StoreError(f"{self._path}: {error}") from None

    def commit(self, group: str, topic: str, queue_id: int, offset: int) -> None:
        self._table.setdefault(topic + _SEPARATOR + group, {})[queue_id] = offset
        self._is_dirty = True

    def query(self, group: str, topic: str, queue_id: int) -> int | None:
        """The committed offset, or None when the group never committed one for that queue."""
        return self._table.get(topic + _SEPARATOR + group, {}).get(queue_id)

    async def persist(self) -> None:
        """Write the file if anything changed since the last time. OSError when that fails."""
        if not self._is_dirty:
            return
        data = write(_File(self._table))
        self._is_dirty = False
        try:
            await self._runtime.offload(lambda: write_durably(self._runtime.disk, self._path, data))
        except OSError:
            self._is_dirty = True
            raise
