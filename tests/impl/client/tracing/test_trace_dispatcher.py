"""Tests that traces are sent in batches, and never delay or fail what is traced."""

import asyncio
import logging

import pytest

from mqproof.impl.client.model import MessageQueue, Outcome, Refused, Sent
from mqproof.impl.client.tracing.trace_dispatcher import WAITING_MAX, TraceDispatcher
from mqproof.impl.client.tracing.trace_records import CallBegan, decode
from mqproof.impl.remoting.message import KEYS, Message
from mqproof.impl.runtime.simulated_loop import SimulatedLoop, run_simulated

SENT = Sent("SEND_OK", "id", MessageQueue("T", "b", 0), 0, "", 1)


def began(number: int, keys: str | None = None) -> CallBegan:
    return CallBegan(number, "R", "G", "call", f"m{number}", 0, keys)


class Broker:
    def __init__(self, outcome: Outcome | Exception | None = SENT) -> None:
        self.got: list[Message] = []
        self._outcome = outcome

    async def send(self, message: Message) -> Outcome:
        self.got.append(message)
        if self._outcome is None:
            await asyncio.Event().wait()
        if isinstance(self._outcome, Exception):
            raise self._outcome
        assert self._outcome is not None
        return self._outcome

    @property
    def ids(self) -> list[str]:
        records = [record for message in self.got for record in decode(message.body)]
        return [record.message_id for record in records if isinstance(record, CallBegan)]


def test_records_are_sent_together_with_their_ids_as_keys() -> None:
    async def scenario() -> None:
        broker = Broker()
        traces = TraceDispatcher("TT", broker.send)
        traces.add([began(1, "k"), began(2)])
        assert broker.got == []
        await asyncio.sleep(1)
        (message,) = broker.got
        assert (message.topic, message.properties[KEYS]) == ("TT", "m1 k m2")
        traces.add(began(number) for number in range(3, 253))
        await asyncio.sleep(1)
        assert [len(decode(message.body)) for message in broker.got] == [2, 100, 100, 50]
        assert broker.ids == [f"m{number}" for number in range(1, 253)]
        await traces.stop()

    run_simulated(scenario(), SimulatedLoop())


def test_a_message_of_traces_is_not_too_large() -> None:
    async def scenario() -> None:
        broker = Broker()
        traces = TraceDispatcher("TT", broker.send)
        traces.add(began(number, "k" * 5000) for number in range(10))
        await traces.stop()
        assert len(broker.ids) == 10
        assert max(len(message.properties[KEYS]) for message in broker.got) < 17_000

    run_simulated(scenario(), SimulatedLoop())


def test_records_beyond_the_bound_are_dropped_and_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        broker = Broker(None)  # never answers
        traces = TraceDispatcher("TT", broker.send)
        with caplog.at_level(logging.WARNING):
            traces.add(began(number) for number in range(WAITING_MAX + 5))
        assert traces.dropped == 5
        assert len(caplog.records) == 1
        begun_s = asyncio.get_running_loop().time()
        await traces.stop()
        assert asyncio.get_running_loop().time() - begun_s < 2
        traces.add([began(1)])  # after the stop, nothing is taken
        assert traces.dropped == WAITING_MAX + 6

    run_simulated(scenario(), SimulatedLoop())


def test_a_stop_counts_the_batch_that_has_no_answer() -> None:
    async def scenario() -> None:
        traces = TraceDispatcher("TT", Broker(None).send)
        traces.add([began(1), began(2)])
        await asyncio.sleep(1)  # the two are on their way
        traces.add([began(3)])
        await traces.stop()
        assert traces.dropped == 3

    run_simulated(scenario(), SimulatedLoop())


def test_a_stop_waits_for_the_answer_to_the_batch_that_is_being_sent() -> None:
    async def scenario() -> None:
        async def send(message: Message) -> Outcome:
            await asyncio.sleep(0.4)
            got.append(message)
            return SENT

        got: list[Message] = []
        traces = TraceDispatcher("TT", send)
        traces.add([began(1)])
        await asyncio.sleep(0.6)
        traces.add([began(2)])
        await traces.stop()
        assert (len(got), traces.dropped) == (2, 0)

    run_simulated(scenario(), SimulatedLoop())


@pytest.mark.parametrize("outcome", [Refused("id", "NO_PERMISSION", "no", 1), RuntimeError("bad")])
def test_a_failed_send_of_traces_only_loses_them(
    outcome: Outcome | Exception, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        traces = TraceDispatcher("TT", Broker(outcome).send)
        with caplog.at_level(logging.WARNING):
            traces.add([began(1), began(2)])
            await asyncio.sleep(1)
            traces.add([began(3)])
            await asyncio.sleep(1)
        assert traces.dropped == 3
        assert len(caplog.records) == 1  # once in 30 s
        await traces.stop()

    run_simulated(scenario(), SimulatedLoop())


def test_the_trace_topic_itself_is_not_traced() -> None:
    async def scenario() -> None:
        traces = TraceDispatcher("TT", Broker().send)
        assert not traces.traces("TT")
        assert traces.traces("T")

    run_simulated(scenario(), SimulatedLoop())
