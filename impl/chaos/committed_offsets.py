"""The offsets that groups committed at a broker, and what a crash of the broker leaves of them.

A broker writes its offsets to disk every 5 s (docs/reference/protocol/offsets.md, "Consumer offsets"). The
proxy lets a broker "crash" by answering queries with an offset that may have been the last one on disk.
"""

from collections import deque
from dataclasses import dataclass, field
from typing import Final, NamedTuple

PERSISTED_EVERY_S: Final = 5.0
KEYS_MAX: Final = 100_000
_COMMITS_MAX: Final = 1000


class OffsetKey(NamedTuple):
    group: str
    topic: str
    queue: str


@dataclass(slots=True)
class _Commits:
    recent: deque[tuple[float, int]] = field(default_factory=lambda: deque(maxlen=_COMMITS_MAX))
    """Time and offset of the last commits: those of the last 5 s, and the one before."""


@dataclass(slots=True)
class CommittedOffsets:
    """The offsets of one broker."""

    _commits: dict[OffsetKey, _Commits] = field(default_factory=dict)
    _replaced: dict[OffsetKey, tuple[int, int]] = field(default_factory=dict)
    """The offset that the clients are to see, and the one that the real broker has."""

    def commit(self, key: OffsetKey, offset: int, now_s: float, *, only_forward: bool = False) -> None:
        """Note a commit that the broker receives."""
        if key in self._replaced:
            seen, real = self._replaced[key]
            seen = max(seen, offset) if only_forward else offset
            real = max(real, offset) if only_forward else offset
            if seen == real:
                del self._replaced[key]
            else:
                self._replaced[key] = seen, real
        commits = self._commits.get(key)
        if commits is None:
            if len(self._commits) >= KEYS_MAX:
                return
            commits = self._commits[key] = _Commits()
        recent = commits.recent
        if only_forward and recent and recent[-1][1] > offset:
            return
        recent.append((now_s, offset))
        while len(recent) > 1 and recent[1][0] <= now_s - PERSISTED_EVERY_S:
            recent.popleft()

    def crash(self, now_s: float) -> int:
        """Go back to what may be on disk. Returns the number of queues whose offset is lower now."""
        changed = 0
        for key, commits in self._commits.items():
            _, real = self._replaced.get(key, (0, commits.recent[-1][1]))
            current = self._replaced.get(key, (real, real))[0]
            on_disk = self._on_disk(commits, now_s)
            if on_disk < current:
                self._replaced[key] = on_disk, real
                changed += 1
            commits.recent.clear()
            commits.recent.append((now_s - PERSISTED_EVERY_S, min(on_disk, current)))
        return changed

    def seen(self, key: OffsetKey) -> int | None:
        """Return the offset with which to answer a query, or None for the real one."""
        replaced = self._replaced.get(key)
        return None if replaced is None else replaced[0]

    @staticmethod
    def _on_disk(commits: _Commits, now_s: float) -> int:
        """Return the lowest offset that may have been the last one written."""
        before = [offset for at, offset in commits.recent if at <= now_s - PERSISTED_EVERY_S]
        since = [offset for at, offset in commits.recent if at > now_s - PERSISTED_EVERY_S]
        return min([*before[-1:], *since])
