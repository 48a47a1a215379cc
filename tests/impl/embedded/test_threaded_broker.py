"""A broker in a thread serves tests without an event loop, and those with one."""

import asyncio
from pathlib import Path

import pytest

from mqproof import Producer, new_message
from mqproof.impl.embedded.stored_messages import ExpectationError
from mqproof.impl.embedded.threaded_broker import ThreadedBroker
from mqproof.impl.store.errors import StoreError


def test_a_test_without_an_event_loop_sends_and_looks_at_messages() -> None:
    with ThreadedBroker() as broker, broker.client() as client:
        broker.fail_next("send", executed=True)
        client.send(new_message("T", b"x"))
        assert [message.body for message in broker.expect("T", 2)] == [b"x", b"x"]
        assert len(broker.messages("T")) == 2
        with pytest.raises(ExpectationError):
            broker.expect("Other", within_s=0.01)


def test_a_test_with_an_event_loop_connects_by_a_session() -> None:
    async def run(broker: ThreadedBroker) -> None:
        async with broker.session() as session:
            await Producer(session).send_or_raise(new_message("T", b"x"))

    with ThreadedBroker() as broker:
        asyncio.run(run(broker))
        broker.expect("T")


def test_its_clock_delivers_a_delay_of_two_hours() -> None:
    with ThreadedBroker() as broker, broker.client() as client:
        client.send_or_raise(new_message("Later", b"x", delay_level=18))
        broker.clock.advance(hours=1, minutes=59)
        assert broker.messages("Later") == []
        broker.clock.advance(minutes=1, seconds=1)
        broker.expect("Later")


def test_a_broker_that_cannot_start_raises_and_leaves_no_thread(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    broker = ThreadedBroker(store=tmp_path / "file")
    with pytest.raises(StoreError, match="Not a directory"), broker:
        pass
    assert not broker._thread.is_alive
