"""The time of a loop is advanced without waiting; brokers and clients act as if it had passed."""

import asyncio
import gc
import weakref
from collections.abc import Sequence
from typing import Any

import pytest

from mqproof import Producer, PushConsumer, ReceivedMessage, new_message
from mqproof.client import LitePullConsumer, PushConsumerConfig, TransactionProducer, TransactionState
from mqproof.impl.client.connection.session import Session
from mqproof.impl.embedded.embedded_broker import EmbeddedBroker
from mqproof.impl.embedded.testing_speed import announce, members
from mqproof.impl.embedded.virtual_time import TimeError, of_loop
from mqproof.impl.remoting import bodies, java_json
from mqproof.impl.remoting.channel import RequestTimeoutError
from mqproof.impl.remoting.codes import RequestCode
from mqproof.impl.remoting.command import new_request
from mqproof.impl.remoting.message import Message, StoredMessage
from mqproof.impl.runtime import upkeep


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


def test_a_message_is_stored_at_the_moment_it_is_due() -> None:
    async def run() -> None:
        async with EmbeddedBroker() as broker, broker.client() as session:
            before_ms = broker.clock.now_us() // 1000
            await Producer(session).send_or_raise(new_message("Later", b"x", delay_level=18))
            await broker.clock.advance(hours=9)
            (delivered,) = broker.messages("Later")
            assert 0 <= delivered.stored.store_timestamp_ms - before_ms - 2 * 3_600_000 < 1_000

    asyncio.run(run())


def test_upkeep_between_two_timers_notices_what_the_first_has_changed() -> None:
    """A consumer of a topic that does not exist yet finds it by its upkeep, an hour into the advance."""
    consumed: list[tuple[str, float]] = []

    async def run() -> None:
        loop = asyncio.get_running_loop()
        begun_s = loop.time()

        async def note(messages: Sequence[ReceivedMessage]) -> None:
            consumed.extend((message.body.decode(), loop.time() - begun_s) for message in messages)

        async with EmbeddedBroker() as broker, broker.client() as session, broker.client() as other:
            producer = Producer(other)

            async def send_later() -> None:
                await asyncio.sleep(3600)
                await producer.send_or_raise(new_message("New", b"first"))
                await asyncio.sleep(600)
                await producer.send_or_raise(new_message("New", b"second"))

            async with PushConsumer(session, "Bar", note) as consumer:
                await consumer.subscribe("New")
                sending = asyncio.create_task(send_later())
                await broker.clock.advance(hours=3)
                await sending

    asyncio.run(run())
    (first, first_s), (second, second_s) = consumed
    assert (first, second) == ("first", "second")
    assert 3600 <= first_s < 3660
    assert 4200 <= second_s < 4205


def test_a_silent_client_expires_in_time_within_a_long_advance() -> None:
    found: list[list[str]] = []

    async def run() -> None:
        async with EmbeddedBroker() as broker, broker.client() as silent, broker.client() as session:
            await Producer(session).send_or_raise(new_message("Orders", b"x"))

            async def look() -> None:
                await asyncio.sleep(3600)
                await announce(silent, session, "Orders", "Bar")
                for seconds in (100, 60):
                    await asyncio.sleep(seconds)
                    found.append(await members(session, "Orders", "Bar"))

            looking = asyncio.create_task(look())
            await broker.clock.advance(hours=3)
            await looking

    asyncio.run(run())
    assert found == [["silent"], []]


def test_a_message_is_given_back_when_its_listener_takes_too_long_within_a_long_advance() -> None:
    attempts: list[int] = []

    async def run() -> None:
        over = asyncio.Event()

        async def hang(messages: Sequence[ReceivedMessage]) -> None:
            attempts.append(messages[0].reconsume_times)
            if len(attempts) == 1:
                await over.wait()

        async with EmbeddedBroker() as broker, broker.client() as session:
            await Producer(session).send_or_raise(new_message("Orders", b"x"))
            async with PushConsumer(session, "Bar", hang) as consumer:
                await consumer.subscribe("Orders")
                await broker.clock.advance(minutes=35)  # the limit is 15 minutes, and checked as often
                over.set()

    asyncio.run(run())
    assert attempts == [0, 1]


@pytest.mark.parametrize("orderly", [False, True])
def test_locks_and_pulls_last_over_hours(orderly: bool, caplog: pytest.LogCaptureFixture) -> None:
    """A message is consumed when it is due: no pull has timed out meanwhile, and no lock has expired."""
    consumed: dict[bytes, float] = {}
    caplog.set_level("INFO", logger="mqproof.impl.client")

    async def run() -> None:
        loop = asyncio.get_running_loop()
        begun_s = loop.time()

        async def note(messages: Sequence[ReceivedMessage]) -> None:
            consumed.update((message.body, loop.time() - begun_s) for message in messages)

        async with EmbeddedBroker() as broker, broker.client() as session:
            producer = Producer(session)
            await producer.send_or_raise(new_message("Orders", b"now"))
            await producer.send_or_raise(new_message("Orders", b"later", delay_level=18))
            config = PushConsumerConfig(orderly=orderly)
            async with PushConsumer(session, "Bar", note, config) as consumer:
                await consumer.subscribe("Orders")
                await broker.clock.advance(hours=5)

    asyncio.run(run())
    assert consumed.keys() == {b"now", b"later"}
    assert 7200 <= consumed[b"later"] < 7202
    assert "no answer" not in caplog.text


class Silent:
    """A server that reads and never answers."""

    def received(self, data: bytes) -> None: ...
    def write_paused(self) -> None: ...
    def write_resumed(self) -> None: ...
    def closed(self) -> None: ...


def test_a_request_without_an_answer_times_out_in_its_time_after_hours() -> None:
    async def run() -> None:
        async with EmbeddedBroker() as broker, broker.client() as session:
            await broker.clock.advance(hours=2)
            listener = await broker.runtime.network.listen("127.0.0.1", 0, lambda _: Silent())
            request = new_request(RequestCode.HEART_BEAT)
            asking = asyncio.create_task(session.remoting.invoke(listener.address, request, 5.0))
            await broker.clock.advance(seconds=3)
            assert not asking.done()
            await broker.clock.advance(seconds=3)
            assert isinstance(asking.exception(), RequestTimeoutError)

    asyncio.run(run())


def test_a_transaction_that_begins_within_a_long_advance_is_checked_in_time() -> None:
    checked: list[float] = []

    async def run() -> None:
        loop = asyncio.get_running_loop()
        begun_s = loop.time()

        async def unknown(_: Message, __: str) -> TransactionState:
            return TransactionState.UNKNOWN

        async def commit(_: StoredMessage, __: str) -> TransactionState:
            checked.append(loop.time() - begun_s)
            return TransactionState.COMMIT if len(checked) == 5 else TransactionState.UNKNOWN

        async with EmbeddedBroker() as broker, broker.client() as session:
            producer = TransactionProducer(session, commit)

            async def begin() -> None:
                await asyncio.sleep(3600)
                await producer.send(new_message("Orders", b"x"), unknown)

            beginning = asyncio.create_task(begin())
            await broker.clock.advance(hours=3)
            await beginning
            await producer.stop()

    asyncio.run(run())
    assert len(checked) == 5
    for number, at_s in enumerate(checked, 1):  # once a minute, and not in the first seconds
        assert 3600 < at_s < 3600 + 60 * (number + 1)


async def committed_offset(session: Session) -> int:
    """Return the sum of the offsets that the group Bar has committed in Orders."""
    address = session.routes.address("Orders", "broker-a")
    assert address is not None
    request = new_request(RequestCode.GET_CONSUME_STATS, {"consumerGroup": "Bar", "topic": "Orders"})
    answer = await session.remoting.invoke(address, request, 5.0)
    table = java_json.read(bodies.ConsumeStats, answer.body).offset_table
    return sum(each.consumer_offset for each in table.values())


def test_offsets_are_committed_between_two_events() -> None:
    committed: list[int] = []

    async def ignore(messages: Sequence[ReceivedMessage]) -> None:
        pass

    async def run() -> None:
        async with EmbeddedBroker() as broker, broker.client() as session:
            producer = Producer(session)

            async def send_and_look() -> None:
                await asyncio.sleep(3600)
                await producer.send_or_raise(new_message("Orders", b"y"))
                await asyncio.sleep(3600)
                committed.append(await committed_offset(session))

            await producer.send_or_raise(new_message("Orders", b"x"))
            async with PushConsumer(session, "Bar", ignore) as consumer:
                await consumer.subscribe("Orders")
                looking = asyncio.create_task(send_and_look())
                await broker.clock.advance(hours=4)
                await looking

    asyncio.run(run())
    assert committed == [2]


def test_upkeep_runs_in_every_hour() -> None:
    """Old files are deleted at an hour of the day, which an advance of days must not miss."""
    hours: set[int] = set()

    async def run() -> None:
        loop = asyncio.get_running_loop()
        begun_s = loop.time()

        async def look() -> None:
            while True:
                await upkeep.sleep(5)
                hours.add(int((loop.time() - begun_s) // 3600))

        looking = asyncio.create_task(look())
        await of_loop(loop).advance(hours=30)
        looking.cancel()

    asyncio.run(run())
    assert hours >= set(range(29))


def test_upkeep_of_half_a_minute_has_run_at_the_end() -> None:
    looked: list[float] = []

    async def run() -> None:
        loop = asyncio.get_running_loop()

        async def look() -> None:
            while True:
                await upkeep.sleep(30)
                looked.append(loop.time())

        looking = asyncio.create_task(look())
        await of_loop(loop).advance(hours=3)
        assert loop.time() - looked[-1] < 30
        looking.cancel()

    asyncio.run(run())


def test_idle_servers_and_clients_have_no_timer_that_is_not_upkeep() -> None:
    """Such a timer would end each skip: periodic work must use `upkeep`."""

    async def ignore(messages: Sequence[ReceivedMessage]) -> None:
        pass

    async def run() -> None:
        async with EmbeddedBroker() as broker, broker.client() as session:
            await Producer(session).send_or_raise(new_message("Orders", b"x"))
            one = PushConsumer(session, "One", ignore)
            two = PushConsumer(session, "Two", ignore, PushConsumerConfig(orderly=True))
            async with one, two, LitePullConsumer(session, "Three") as three:
                for consumer in (one, two, three):
                    await consumer.subscribe("Orders")
                await broker.clock.advance(minutes=5)
                assert upkeep.next_due_s(asyncio.get_running_loop())[0] == float("inf")

    asyncio.run(run())


def test_little_runs_while_nothing_happens() -> None:
    """Two hours are as many heartbeats as four minutes: upkeep runs at the beginning and at the end."""
    beats: list[float] = []

    async def run() -> None:
        async with EmbeddedBroker() as broker, broker.client() as session:
            await Producer(session).send_or_raise(new_message("Orders", b"x"))
            beat = session.remoting.invoke

            async def counted(*args: Any) -> Any:
                beats.append(asyncio.get_running_loop().time())
                return await beat(*args)

            session.remoting.invoke = counted  # type: ignore[assignment, method-assign]
            await broker.clock.advance(hours=2)

    asyncio.run(run())
    assert 4 <= len(beats) <= 20


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
