"""A part of a topic's messages by their store time, and the part that follows it.

Many messages can have the same store time, so the next part begins at a time and skips those it has shown.
"""

from dataclasses import dataclass, replace
from typing import Final, Self

from mqproof.impl.admin import messages
from mqproof.impl.admin.admin import Admin
from mqproof.impl.console.form_values import FormValues
from mqproof.impl.remoting.message import StoredMessage

SKIP_MAX: Final = 100_000
WINDOW_BYTES_MAX: Final = 16 << 20
"""A window ends when its messages have this size, whatever their number."""


@dataclass(frozen=True, slots=True)
class MessageWindow:
    begin_ms: int
    end_ms: int
    skip: int = 0
    """How many of the first messages are left out."""

    @classmethod
    def of(cls, values: FormValues, begin_ms: int, end_ms: int) -> Self:
        """Return the window that a query names, in its fields begin, end and skip."""
        begin, end = values.time_ms("begin"), values.time_ms("end")
        return cls(
            begin_ms if begin is None else begin,
            end_ms if end is None else end,
            values.number("skip", 0, 0, SKIP_MAX),
        )


async def read_window(
    admin: Admin, topic: str, window: MessageWindow, count: int
) -> tuple[list[StoredMessage], MessageWindow | None]:
    """Return the first messages of a window, and the window of those that follow; None if none does."""
    shown: list[StoredMessage] = []
    skipped = size = 0
    async for _, stored in messages.in_time_order(
        admin, topic, begin_ms=window.begin_ms, end_ms=window.end_ms
    ):
        if skipped < window.skip:
            skipped += 1
        elif len(shown) == count or size > WINDOW_BYTES_MAX:
            return shown, _after(window, shown)
        else:
            shown.append(stored)
            size += len(stored.message.body)
    return shown, None


def _after(window: MessageWindow, shown: list[StoredMessage]) -> MessageWindow:
    last_ms = shown[-1].store_timestamp_ms
    if last_ms == window.begin_ms:
        return replace(window, skip=window.skip + len(shown))
    alike = sum(stored.store_timestamp_ms == last_ms for stored in shown)
    return replace(window, begin_ms=last_ms, skip=alike)
