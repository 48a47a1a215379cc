"""Tests that windows of messages show every message once, even if many have one store time."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from mqproof.impl.admin import messages
from mqproof.impl.admin.admin import Admin
from mqproof.impl.client.model import MessageQueue
from mqproof.impl.console import message_window
from mqproof.impl.console.form_values import FormError, FormValues
from mqproof.impl.console.message_window import MessageWindow, read_window
from mqproof.impl.remoting.message import Message, StoredMessage
from mqproof.impl.runtime.network import Address
from tests.impl.console.desk import console_of

QUEUE = MessageQueue("T", "b", 0)


def stored(offset: int, time_ms: int) -> StoredMessage:
    return StoredMessage(Message("T", b"m"), offset, 100 * offset, time_ms, 90, 0)


@pytest.mark.parametrize("count", [1, 2, 3, 4, 7, 100])
@pytest.mark.parametrize(
    "times", [[], [5], [1, 2, 3, 4, 5, 6], [5] * 9, [1, 5, 5, 5, 5, 5, 9], [1, 1, 1, 2, 2, 2, 3, 3, 3]]
)
def test_windows_show_every_message_once(
    times: list[int], count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = [stored(offset, time_ms) for offset, time_ms in enumerate(times)]

    async def in_time_order(
        _: Admin, topic: str, *, begin_ms: int, end_ms: int
    ) -> AsyncIterator[tuple[MessageQueue, StoredMessage]]:
        assert (topic, end_ms) == ("T", 9)
        for each in kept:
            if each.store_timestamp_ms >= begin_ms:
                yield QUEUE, each

    monkeypatch.setattr(messages, "in_time_order", in_time_order)

    async def run() -> list[int]:
        shown: list[int] = []
        window: MessageWindow | None = MessageWindow(0, 9)
        async with console_of([Address("127.0.0.1", 1)]).admin_of(None) as admin:
            while window is not None:
                found, window = await read_window(admin, "T", window, count)
                assert 1 <= len(found) <= count or window is None
                assert sum(len(each.message.body) for each in found) <= message_window.WINDOW_BYTES_MAX + 1
                shown += [each.queue_offset for each in found]
        return shown

    assert asyncio.run(run()) == list(range(len(times)))


def test_large_messages_make_a_window_shorter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(message_window, "WINDOW_BYTES_MAX", 3)
    test_windows_show_every_message_once([1, 2, 3, 4, 5, 6, 7, 8, 9], 100, monkeypatch)


def test_a_window_is_read_from_a_query() -> None:
    assert MessageWindow.of(FormValues(), 1, 2) == MessageWindow(1, 2, 0)
    assert MessageWindow.of(FormValues([("skip", "3")]), 1, 2) == MessageWindow(1, 2, 3)
    with pytest.raises(FormError, match="skip is '-1'"):
        MessageWindow.of(FormValues([("skip", "-1")]), 1, 2)
