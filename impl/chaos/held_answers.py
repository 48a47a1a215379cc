"""The frames of one connection that the proxy passes on later."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

HELD_BYTES_MAX: Final = 64 << 20
"""The most bytes that a connection holds. Further frames are not delayed."""


@dataclass(slots=True)
class _Held:
    frame: bytes
    left: int
    """How many other answers have to pass before it; 0: only its time counts."""
    timer: asyncio.TimerHandle


@dataclass(slots=True)
class HeldAnswers:
    """Passes frames on when their time has come, or when enough other answers have passed."""

    send: Callable[[bytes], None]
    _held: dict[int, _Held] = field(default_factory=dict)
    _bytes: int = 0
    _next: int = 0

    def has_room(self, size: int) -> bool:
        return self._bytes + size <= HELD_BYTES_MAX

    def hold(self, frame: bytes, delay_ms: int, after_answers: int) -> None:
        """Pass the frame on after the delay, or sooner after that many others if `after_answers` is not 0."""
        self._next += 1
        timer = asyncio.get_running_loop().call_later(delay_ms / 1000, self._release, self._next)
        self._held[self._next] = _Held(frame, after_answers, timer)
        self._bytes += len(frame)

    def passed(self) -> None:
        """Count an answer that was not held."""
        for key, held in list(self._held.items()) if self._held else ():
            if held.left:
                held.left -= 1
                if not held.left:
                    self._release(key)

    def drop(self) -> None:
        """Discard all frames, because the connection is closed."""
        for held in self._held.values():
            held.timer.cancel()
        self._held.clear()
        self._bytes = 0

    def _release(self, key: int) -> None:
        held = self._held.pop(key)
        held.timer.cancel()
        self._bytes -= len(held.frame)
        self.send(held.frame)
