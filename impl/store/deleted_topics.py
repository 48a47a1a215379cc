"""Topics that were deleted: up to where the log has their records, which no recovery may dispatch again.

A topic made anew begins at offset 0 while the records of the old one stay in the log until they expire. See
docs/protocol.md, "Deleted topics".
"""

from collections.abc import Mapping

import msgspec

from mqproof.impl.runtime.disk import Disk, read_whole, write_durably
from mqproof.impl.store.errors import StoreError


class DeletedTopics:
    """Kept in a file of ours, beside RocketMQ's."""

    def __init__(self, disk: Disk, path: str) -> None:
        self._disk = disk
        self._path = path
        self._before: Mapping[str, int] = {}

    def load(self) -> None:
        """Read the file, if there is one. Raises StoreError when it is not ours, OSError."""
        if not self._disk.exists(self._path):
            return
        try:
            self._before = msgspec.json.decode(read_whole(self._disk, self._path), type=dict[str, int])
        except msgspec.MsgspecError as error:
            raise StoreError(f"{self._path}: {error}") from None

    @property
    def table(self) -> Mapping[str, int]:
        """Commit offset by topic: the records before it were deleted with it."""
        return self._before

    def has(self, topic: str, commit_offset: int) -> bool:
        """Whether the record of that topic at that place was deleted with it."""
        return commit_offset < self._before.get(topic, 0)

    def newer(self, table: Mapping[str, int]) -> dict[str, int]:
        """The deletions in a master's table that are not known here."""
        return {topic: before for topic, before in table.items() if before > self._before.get(topic, 0)}

    def taken_back(self, table: Mapping[str, int], log_end: int) -> dict[str, int]:
        """Beyond the log's end a place is the master's word alone: the deletions that it has earlier now,
        since a crash took the end of its log, and those places are used anew."""
        return {
            topic: table[topic]
            for topic, at in self._before.items()
            if at > log_end and table.get(topic, at) < at
        }

    def lies_beyond(self, log_end: int) -> bool:
        """Whether records that were deleted are still to come."""
        return any(at > log_end for at in self._before.values())

    def add(self, deleted: Mapping[str, int], log_begin: int) -> None:
        """All records of these topics before those places are deleted; durable when this returns. What
        expired is forgotten.

        Raises OSError: then nothing has changed.
        """
        self._become({**{name: at for name, at in self._before.items() if at > log_begin}, **deleted})

    def clamp(self, log_end: int) -> None:
        """The log ends here: what a crash took from it is not there to be deleted, and the places are used
        anew. Raises OSError."""
        if self.lies_beyond(log_end):
            self._become({name: min(at, log_end) for name, at in self._before.items()})

    def _become(self, before: Mapping[str, int]) -> None:
        write_durably(self._disk, self._path, msgspec.json.encode(before))
        self._before = before
