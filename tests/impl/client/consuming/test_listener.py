"""Tests how the application's listener is called, and what counts as its answer."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, cast

import pytest

from mqproof.impl.client.consuming.consume_rates import ConsumeRates
from mqproof.impl.client.consuming.listener import SafeListener
from mqproof.impl.client.model import MessageQueue, ReceivedMessage, RetryLater
from mqproof.impl.client.tracing.traced_calls import TracedCalls
from mqproof.impl.remoting.message import UNIQUE_KEY, Message, StoredMessage
from mqproof.impl.runtime.simulated_loop import run_simulated

MESSAGES = [
    ReceivedMessage(
        StoredMessage(Message("T", b"x", {UNIQUE_KEY: f"m{offset}"}), offset, 0, 0, 0, 0),
        MessageQueue("T", "b", 0),
        0,
    )
    for offset in range(3)
]


class Offload:
    """Counts the calls that run in a thread, and runs them at once."""

    def __init__(self) -> None:
        self.calls = 0

    async def __call__(self, function: Callable[[], Any]) -> Any:
        self.calls += 1
        return function()


class Traced:
    def __init__(self) -> None:
        self.seen: list[object] = []

    def began(self, messages: Sequence[ReceivedMessage]) -> str:
        self.seen.append(len(messages))
        return "call"

    def ended(
        self, call: str, messages: Sequence[ReceivedMessage], took_s: float, done: int, *, raised: bool
    ) -> None:
        self.seen.append((call, len(messages), took_s, done, raised))


class Rates(ConsumeRates):
    def __init__(self) -> None:
        self.seen: list[tuple[str, int, int, float, float]] = []

    def consumed(self, topic: str, ok: int, failed: int, took_s: float, now_s: float) -> None:
        self.seen.append((topic, ok, failed, took_s, now_s))


class Answering:
    """A listener that is an object."""

    def __init__(self, answer: object) -> None:
        self._answer = answer

    async def __call__(self, messages: Sequence[ReceivedMessage]) -> Any:
        assert messages == MESSAGES
        await asyncio.sleep(2)
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer


def consumed(listener: Any, *, is_traced: bool = True) -> tuple[RetryLater | None, Offload, Rates, Traced]:
    offload, rates, traced = Offload(), Rates(), Traced()
    safe = SafeListener(listener, offload, rates, cast(TracedCalls, traced) if is_traced else None)

    async def main() -> RetryLater | None:
        await asyncio.sleep(5)
        return await safe.consume(MESSAGES)

    return run_simulated(main()), offload, rates, traced


@pytest.mark.parametrize(
    ("answer", "ok", "raised"),
    [
        (None, 3, False),
        (RetryLater(4), 0, False),
        (RetryLater(done=2), 2, False),
        (RetryLater(done=7), 3, False),
        (RuntimeError("injected"), 0, True),
        (7, 0, True),
    ],
)
def test_the_answer_decides_how_many_messages_are_consumed(answer: object, ok: int, raised: bool) -> None:
    found, offload, rates, traced = consumed(Answering(answer))
    assert found == (RetryLater() if raised else answer)
    assert offload.calls == 0
    assert rates.seen == [("T", ok, 3 - ok, 2.0, 7.0)]
    assert traced.seen == [3, ("call", 3, 2.0, ok, raised)]
    assert consumed(Answering(answer), is_traced=False)[0] == found


@pytest.mark.parametrize(
    ("answer", "text"),
    [(RuntimeError("injected"), "injected"), (7, "a listener returned 7, None or RetryLater")],
)
def test_a_listener_that_fails_is_logged_with_the_ids_of_its_messages(
    answer: object, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    consumed(Answering(answer))
    (line,) = caplog.records
    assert (line.levelname, line.getMessage()) == ("ERROR", "the listener failed on m0, m1, m2")
    assert text in caplog.text


def test_a_coroutine_function_runs_in_the_loop_and_a_plain_function_in_a_thread() -> None:
    async def in_loop(_messages: Sequence[ReceivedMessage]) -> RetryLater:
        return RetryLater(1)

    def in_thread(_messages: Sequence[ReceivedMessage]) -> RetryLater:
        return RetryLater(2)

    found, offload, *_ = consumed(in_loop)
    assert (found, offload.calls) == (RetryLater(1), 0)
    found, offload, *_ = consumed(in_thread)
    assert (found, offload.calls) == (RetryLater(2), 1)
