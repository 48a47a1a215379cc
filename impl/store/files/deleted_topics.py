"""Deleted topics: the parts of the log whose records recovery must not dispatch again.

A recreated topic begins at offset 0, while the records of the old one stay in the log until they expire. See
docs/reference/protocol/recovery.md, "Deleted topics".
"""

from collections.abc import Mapping

import msgspec

from mqproof.impl.runtime.disk import Disk
from mqproof.impl.store.damage import DamageReport
from mqproof.impl.store.files.sealed_file import read_sealed, write_sealed


class DeletedTopics:
    """The deletions, stored in a file that only mqproof uses."""

    def __init__(self, disk: Disk, path: str) -> None:
        self._disk = disk
        self._path = path
        self._before: Mapping[str, int] = {}

    def load(self, damage: DamageReport | None = None) -> None:
        """Read the file, if it exists. Raises OSError, and StoreError if the content is invalid."""
        self._before = read_sealed(self._disk, self._path, _parse, damage) or {}

    @property
    def table(self) -> Mapping[str, int]:
        """Maps each topic to a commit offset; the topic's records before it were deleted with it."""
        return self._before

    def has(self, topic: str, commit_offset: int) -> bool:
        """Return whether the topic's record at that commit offset was deleted with it."""
        return commit_offset < self._before.get(topic, 0)

    def newer(self, table: Mapping[str, int]) -> dict[str, int]:
        """Return the deletions in a master's table that are not known here."""
        return {topic: before for topic, before in table.items() if before > self._before.get(topic, 0)}

    def taken_back(self, table: Mapping[str, int], log_end: int) -> dict[str, int]:
        """Return the deletions that the master now has at an earlier commit offset than this store.

        This concerns only offsets beyond this log's end, which are known only from the master. A crash took
        the end of the master's log, and the master uses those offsets again.
        """
        return {
            topic: table[topic]
            for topic, at in self._before.items()
            if at > log_end and table.get(topic, at) < at
        }

    def lies_beyond(self, log_end: int) -> bool:
        """Return whether records that were deleted are still to arrive."""
        return any(at > log_end for at in self._before.values())

    def add(self, deleted: Mapping[str, int], log_begin: int) -> None:
        """Record durably that all records of these topics before those commit offsets are deleted.

        Deletions whose records have expired are removed from the table.

        Raises OSError: nothing has changed then.
        """
        self._become({**{name: at for name, at in self._before.items() if at > log_begin}, **deleted})

    def clamp(self, log_end: int) -> None:
        """Limit the deletions to the end of the log.

        A crash took the records after it, and their commit offsets are used again. Raises OSError.
        """
        if self.lies_beyond(log_end):
            self._become({name: min(at, log_end) for name, at in self._before.items()})

    def _become(self, before: Mapping[str, int]) -> None:
        write_sealed(self._disk, self._path, msgspec.json.encode(before))
        self._before = before


def _parse(data: bytes) -> dict[str, int]:
    return msgspec.json.decode(data, type=dict[str, int])
