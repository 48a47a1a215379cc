"""Half messages that were stored a moment ago, in memory, so that their ends read no record.

Most transactions end within milliseconds. The log has all half messages, so this table may forget any. Pure.
"""

from typing import Final

from mqproof.impl.remoting.message import StoredMessage

BYTES_MAX: Final = 16 << 20
"""The memory that half messages may occupy together; beyond it the oldest are forgotten."""
PROPERTY_BYTES: Final = 200
"""The memory of a property, besides its text."""


class KeptHalves:
    """Half messages by their commit offsets, the oldest first."""

    def __init__(self, bytes_max: int = BYTES_MAX) -> None:
        self._bytes_max = bytes_max
        self._bytes = 0
        self._halves: dict[int, StoredMessage] = {}

    def __len__(self) -> int:
        return len(self._halves)

    def keep(self, half: StoredMessage) -> None:
        """Keep a half message that is in the log."""
        self.drop(half.commit_offset)
        self._halves[half.commit_offset] = half
        self._bytes += _bytes_of(half)
        while self._bytes > self._bytes_max:
            self.drop(next(iter(self._halves)))

    def find(self, commit_offset: int) -> StoredMessage | None:
        """Return the half message at a commit offset, unless it was forgotten."""
        return self._halves.get(commit_offset)

    def drop(self, commit_offset: int) -> None:
        """Forget a half message, because its transaction has ended or has a newer copy."""
        half = self._halves.pop(commit_offset, None)
        if half is not None:
            self._bytes -= _bytes_of(half)


def _bytes_of(half: StoredMessage) -> int:
    return half.size + PROPERTY_BYTES * len(half.message.properties)
