"""The time of a loop is advanced without waiting; brokers and clients act as if it had passed."""

import asyncio
import gc
import weakref
from collections.abc import Sequence

import pytest

from mqproof import Producer, PushConsumer, ReceivedMessage, new_message
from mqproof.impl.embedded.embedded_broker import EmbeddedBroker
from mqproof.impl.embedded.testing_speed import announce, members
from mqproof.impl.embedded.virtual_time import TimeError, of_loop


def test_timers_run_when_their_time_has_been_added() -> None:
    async def passed() -> list[str]:
        done: list[str] = []
        clock = of_loop(asyncio.get_running_loop())
        before = clock.now_us()

        async def chain() -> None:
            await asyncio.sleep(3600)
            done.append("one")
            await asyncio.sleep(3500)
            done.append("two")

        task = asyncio.create_task(chain())
        await clock.advance(minutes=59)
        done.append("59 minutes")
        await clock.advance(hours=1)
        assert clock.now_us() - before >= 119 * 60_000_000
        await task
        return done

    assert asyncio.run(passed()) == ["59 minutes", "one", "two"]


def test_the_time_of_a_loop_does_not_keep_the_loop() -> None:
    loop = asyncio.new_event_loop()
    gone = weakref.ref(loop)
    loop.run_until_complete(of_loop(loop).advance(seconds=1))
    loop.close()
    del loop
    gc.collect()
    assert gone() is None


def test_a_two_hour_delay_is_delivered_when_two_hours_have_passed_and_not_before() -> None:
    async def run() -> None:
        async with EmbeddedBroker() as broker, broker.client() as session:
            message = new_message("Later", b"x", delay_level=18)
            await Producer(session).send_or_raise(message)
            await broker.clock.advance(hours=1, minutes=59)
            assert broker.messages("Later") == []
            await broker.clock.advance(minutes=2)
            (delivered,) = broker.messages("Later")
            assert delivered.body == b"x"

    asyncio.run(run())


def test_a_message_that_always_fails_reaches_the_dead_letters_after_sixteen_retries() -> None:
    attempts: list[int] = []

    async def fail(messages: Sequence[ReceivedMessage]) -> None:
        attempts.append(messages[0].reconsume_times)
        raise ValueError("no coffee left")

    async def run() -> None:
        async with EmbeddedBroker() as broker, broker.client() as session:
            await Producer(session).send_or_raise(new_message("Orders", b"x"))
            async with PushConsumer(session, "Bar", fail) as consumer:
                await consumer.subscribe("Orders")
                await broker.clock.advance(hours=4, minutes=50)
            (dead,) = broker.messages("%DLQ%Bar")
            assert dead.body == b"x"

    asyncio.run(run())
    assert attempts == list(range(17))


def test_a_client_that_is_silent_expires_and_one_that_is_not_stays() -> None:
    async def run() -> None:
        async with EmbeddedBroker() as broker, broker.client() as silent, broker.client() as session:
            await Producer(session).send_or_raise(new_message("Orders", b"x"))
            heard = session.remoting
            await announce(silent, session, "Orders", "Bar")
            await broker.clock.advance(minutes=1, seconds=50)
            assert await members(session, "Orders", "Bar") == ["silent"]
            await broker.clock.advance(minutes=1)
            assert await members(session, "Orders", "Bar") == []
            await broker.clock.advance(hours=1)
            assert session.remoting is heard
            assert (await Producer(session).send_or_raise(new_message("Orders", b"y"))).attempts == 1

    asyncio.run(run())


@pytest.mark.parametrize("seconds", [-1.0, float("inf"), float("nan")])
def test_a_duration_that_cannot_pass_is_refused(seconds: float) -> None:
    async def run() -> None:
        await of_loop(asyncio.get_running_loop()).advance(seconds=seconds)

    with pytest.raises(ValueError, match="expected a duration of 0 or more"):
        asyncio.run(run())


def test_callbacks_that_cause_each_other_are_not_run_for_ever() -> None:
    async def run() -> None:
        loop = asyncio.get_running_loop()

        def again() -> None:
            loop.call_soon(again)

        again()
        await of_loop(loop).advance(seconds=1)

    with pytest.raises(TimeError, match="still ready at the same time"):
        asyncio.run(run())


def test_the_time_of_another_loop_is_not_advanced() -> None:
    other = asyncio.new_event_loop()
    try:
        with pytest.raises(TimeError, match="another event loop"):
            asyncio.run(of_loop(other).advance(seconds=1))
    finally:
        other.close()


def test_a_loop_that_is_not_asyncios_own_is_refused() -> None:
    uvloop = pytest.importorskip("uvloop")
    loop = uvloop.new_event_loop()
    try:
        with pytest.raises(TimeError, match="use asyncio's loop"):
            loop.run_until_complete(of_loop(loop).advance(seconds=1))
    finally:
        loop.close()
