"""Tests that traces are sent in batches, and never delay or fail what is traced."""

import asyncio
import logging
from dataclasses import replace

import pytest

from mqproof.impl.client.model import MessageQueue, Outcome, Refused, Sent
from mqproof.impl.client.tracing.trace_dispatcher import TraceDispatcher
from mqproof.impl.client.tracing.trace_records import CallBegan, MessageType, Published, decode, encode
from mqproof.impl.remoting.message import KEYS, Message
from mqproof.impl.runtime.simulated_loop import SimulatedLoop, run_simulated

PUBLISHED = Published(1, None, "G", "T", ("A",), None, None, "h:1", 9, 2, MessageType.NORMAL, "X", True)
SENT = Sent("SEND_OK", "id", MessageQueue("T", "b", 0), 0, "", 1)


def began(number: int, keys: str | None = None) -> CallBegan:
    return CallBegan(number, "R", "G", "call", f"m{number}", 0, keys)


class EndlessError(BaseException):
    """More messages were sent than any test needs. A dispatcher catches every other error."""


class Broker:
    def __init__(self, outcome: Outcome | Exception | None = SENT) -> None:
        self.got: list[Message] = []
        self._outcome = outcome

    async def send(self, message: Message) -> Outcome:
        self.got.append(message)
        if len(self.got) > 100:
            raise EndlessError
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
            traces.add(began(number) for number in range(1024 + 5))
        assert traces.dropped == 5
        assert len(caplog.records) == 1
        begun_s = asyncio.get_running_loop().time()
        await traces.stop()
        assert asyncio.get_running_loop().time() - begun_s < 2
        traces.add([began(1)])  # after the stop, nothing is taken
        assert traces.dropped == 1024 + 6

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


@pytest.mark.parametrize(("more", "messages"), [(0, 1), (1, 2)])
def test_one_message_has_records_up_to_the_limit_of_its_body(more: int, messages: int) -> None:
    async def scenario() -> None:
        broker = Broker()
        traces = TraceDispatcher("TT", broker.send)
        empty = len(encode(replace(began(1), group="")).replace("null", "", 1))
        records = [replace(began(number), group="g" * (64_000 - empty)) for number in (1, 2)]
        records[1] = replace(records[1], group=records[1].group + "g" * more)
        traces.add(records)
        await traces.stop()
        assert sum(len(message.body) for message in broker.got) == 128_000 + more
        assert len(broker.got) == messages
        assert broker.ids == ["m1", "m2"]

    run_simulated(scenario(), SimulatedLoop())


@pytest.mark.parametrize(("more", "messages"), [(0, 1), (1, 2)])
def test_one_message_has_records_up_to_the_limit_of_its_keys(more: int, messages: int) -> None:
    async def scenario() -> None:
        broker = Broker()
        traces = TraceDispatcher("TT", broker.send)
        key = "k" * (8000 - len("m1  "))  # an id and a key, each followed by a space
        traces.add([began(1, key), began(2, key.upper() + "k" * more)])
        await traces.stop()
        assert len(broker.got) == messages
        assert sum(len(message.properties[KEYS]) + 1 for message in broker.got) == 16_000 + more

    run_simulated(scenario(), SimulatedLoop())


def test_a_record_above_the_limits_is_sent_alone() -> None:
    async def scenario() -> None:
        broker = Broker()
        traces = TraceDispatcher("TT", broker.send)
        traces.add([replace(began(1), group="g" * 130_000), began(2)])
        await traces.stop()
        assert [len(decode(message.body)) for message in broker.got] == [1, 1]

    run_simulated(scenario(), SimulatedLoop())


@pytest.mark.parametrize(("records", "wait_s"), [(99, 0.5), (100, 0.0)])
def test_a_full_batch_does_not_wait_for_more_records(records: int, wait_s: float) -> None:
    async def scenario() -> None:
        sent_s: list[float] = []

        async def send(_: Message) -> Outcome:
            sent_s.append(asyncio.get_running_loop().time())
            return SENT

        traces = TraceDispatcher("TT", send)
        await asyncio.sleep(7)
        begun_s = asyncio.get_running_loop().time()
        traces.add(began(number) for number in range(records))
        await asyncio.sleep(1)
        assert [round(each - begun_s, 3) for each in sent_s] == [wait_s]
        await traces.stop()

    run_simulated(scenario(), SimulatedLoop())


def test_records_without_ids_and_keys_have_no_keys() -> None:
    async def scenario() -> None:
        broker = Broker()
        traces = TraceDispatcher("TT", broker.send)
        traces.add([replace(PUBLISHED, message_ids=())])
        await traces.stop()
        (message,) = broker.got
        assert message.properties == {}

    run_simulated(scenario(), SimulatedLoop())


def test_lost_records_are_logged_again_after_30_seconds(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        traces = TraceDispatcher("TT", Broker(None).send, waiting_max=1)
        traces.add([began(1), began(2)])
        await asyncio.sleep(29.9)
        traces.add([began(3), began(4)])  # the first is on its way, so one has room
        assert len(caplog.records) == 1
        await asyncio.sleep(0.1)
        traces.add([began(5)])
        await traces.stop()

    run_simulated(scenario(), SimulatedLoop())
    assert caplog.messages == [
        "1 trace records are lost so far: too many wait",
        "3 trace records are lost so far: too many wait",
    ]


@pytest.mark.parametrize("collect_s", [0.0, 1.0])
def test_records_that_a_stop_leaves_are_logged_with_the_reason(
    collect_s: float, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        traces = TraceDispatcher("TT", Broker(None).send)
        traces.add(began(number) for number in range(150))
        await asyncio.sleep(collect_s)
        await traces.stop()
        assert traces.dropped == 150

    run_simulated(scenario(), SimulatedLoop())
    assert caplog.messages == ["100 trace records are lost so far: the client stops"]


@pytest.mark.parametrize(
    ("outcome", "reason"),
    [
        (Refused("id", "NO_PERMISSION", "no writing", 1), "no writing"),
        (RuntimeError("bad"), "RuntimeError: bad"),
    ],
)
def test_the_log_says_why_records_are_lost(
    outcome: Outcome | Exception, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        traces = TraceDispatcher("TT", Broker(outcome).send)
        traces.add([began(1), began(2)])
        await traces.stop()

    run_simulated(scenario(), SimulatedLoop())
    assert caplog.messages == [f"2 trace records are lost so far: {reason}"]


def test_one_task_sends_and_none_is_left_after_the_stop(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        traces = TraceDispatcher("TT", Broker().send)
        traces.add([])
        assert len(asyncio.all_tasks()) == 1  # nothing to send
        traces.add([began(1)])
        traces.add([began(2)])
        assert len(asyncio.all_tasks()) == 2
        await traces.stop()
        assert len(asyncio.all_tasks()) == 1
        assert traces.dropped == 0

    run_simulated(scenario(), SimulatedLoop())
    assert caplog.messages == []
