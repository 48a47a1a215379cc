"""Tests replies that a handler sets later: once, and not after the answer is no longer awaited."""

import asyncio

import pytest

from mqproof.impl.remoting.command import Command, new_request
from mqproof.impl.remoting.later import Later
from mqproof.impl.runtime.simulated_loop import run_simulated

REPLY = new_request(1).answer(0)


def test_the_first_reply_is_passed_on_once() -> None:
    seen: list[Command | None] = []
    later = Later()
    later.when_ended(lambda it: seen.append(it.reply))
    assert not later.is_ended
    later.set(REPLY)
    later.set(None)
    later.cancel()
    assert (later.is_ended, later.reply, seen) == (True, REPLY, [REPLY])


def test_a_cancelled_reply_ends_without_an_answer() -> None:
    seen: list[Command | None] = []
    later = Later()
    later.when_ended(lambda it: seen.append(it.reply))
    later.cancel()
    later.set(REPLY)
    assert (later.is_ended, later.reply, seen) == (True, None, [None])


@pytest.mark.parametrize("is_cancelled", [False, True])
def test_a_reply_can_be_awaited_before_and_after_it_is_set(is_cancelled: bool) -> None:
    async def main() -> None:
        later = Later()

        async def wait() -> Command | None:
            return await later

        waiting = asyncio.create_task(wait())
        await asyncio.sleep(0)
        if is_cancelled:
            waiting.cancel()
            await asyncio.sleep(0)
        later.set(REPLY)
        assert await later is REPLY
        if not is_cancelled:
            assert await waiting is REPLY

    run_simulated(main())
