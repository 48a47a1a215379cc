"""Tests that a send in the calling thread ends as the same send in the event loop does.

Scripted brokers listen on real sockets, in an event loop of their own.
"""

import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, cast

import pytest
from msgspec.structs import replace

from mqproof.impl.client.model import MessageError, MessageQueue, Outcome, Refused, SendError, Sent, Unknown
from mqproof.impl.client.producing.producer import Producer, ProducerConfig
from mqproof.impl.client.producing.thread_sends import ThreadSends
from mqproof.impl.client.producing.transport import ThreadTransport
from mqproof.impl.embedded.loop_thread import LoopThread
from mqproof.impl.remoting.channel import Channel
from mqproof.impl.remoting.message import Message
from mqproof.impl.remoting.signing import SIGNATURE, Credentials
from mqproof.impl.runtime.network import AsyncioNetwork
from mqproof.impl.runtime.runtime import production
from mqproof.impl.runtime.simulated_loop import SimulatedLoop
from tests.impl.client.producing.test_producer import MESSAGE, Script


class SocketScript(Script):
    """The scripted brokers at real sockets."""

    def __init__(self, answers: list[int | str | None]) -> None:
        loop = SimulatedLoop()
        super().__init__(loop, answers)
        loop.close()
        self.network = AsyncioNetwork()  # type: ignore[assignment]  # not simulated
        self.runtime = production(self.network)

    def _cut(self, name: str, channel: Channel) -> None:  # noqa: ARG002  # simulated brokers have names
        channel.abort()


class World:
    """The brokers, a producer of their clients, and its sends in threads."""

    def __init__(self, script: Script, thread: LoopThread, producer: Producer, *, has_hooks: bool) -> None:
        assert thread._loop is not None
        self.script = script
        self.thread = thread
        self.sends = ThreadSends(producer, script.session, thread._loop, has_hooks=has_hooks)

    def send(self, message: Message = MESSAGE, timeout_ms: int | None = None) -> Outcome:
        return self.sends.run(lambda to: to.send(message, timeout_ms=timeout_ms))


@contextmanager
def world(
    *answers: int | str | None, config: ProducerConfig | None = None, has_hooks: bool = False
) -> Iterator[World]:
    """Run the brokers; the producer knows the route of T, so that sends run in their threads."""
    thread = LoopThread("scripted")
    script = SocketScript(list(answers))

    async def begin() -> Producer:
        await script.__aenter__()
        await script.session.routes.get("T")
        return Producer(script.session, config)

    async def end() -> None:
        await script.__aexit__()

    thread.start()
    one = World(script, thread, thread.run(begin()), has_hooks=has_hooks)
    try:
        yield one
    finally:
        one.sends.close()
        thread.end_after(end())


def ended(outcome: Outcome, world: World) -> tuple[object, ...]:
    """Return how a send ended, without what differs between two sends: ids, ports and the first broker."""
    remark = "" if isinstance(outcome, Sent) else outcome.remark
    for address in world.script.addresses.values():
        remark = remark.replace(str(address), "BROKER")
    tried = [name == world.script.attempts[0] for name in world.script.attempts]
    remark = re.sub(r"within \d+ ms", "in time", remark)
    status = "" if isinstance(outcome, Unknown) else outcome.status
    return type(outcome), status, remark, outcome.attempts, tried


@pytest.mark.parametrize(
    ("answers", "config"),
    [
        ([0], None),
        ([12], None),
        ([14, 0], None),
        ([14, 17, 16], None),
        ([13], None),
        ([1, 1, 1], None),
        (["cut", 0], None),
        (["cut", 13], None),
        ([None], ProducerConfig(send_timeout_ms=60)),
        ([10, 0], ProducerConfig(retry_unconfirmed=True)),
        ([14, "cut", 0], ProducerConfig(retry_unknown=False)),
        ([14, 0], ProducerConfig(latency_fault_strategy=True)),
    ],
    ids=str,
)
def test_a_send_in_its_thread_ends_as_in_the_event_loop(
    answers: list[int | str | None], config: ProducerConfig | None
) -> None:
    found = []
    for in_loop in (False, True):
        with world(*answers, config=config, has_hooks=in_loop) as one:
            found.append(ended(one.send(), one))
            brokers = [one.script.addresses[name] for name in set(one.script.attempts)]
            assert len(one.sends._lanes) == (0 if in_loop else 1)
            if answers == [0]:
                assert one.script.session.remoting.is_connected(brokers[0]) is in_loop
    assert found[0] == found[1]


def test_a_broker_that_is_gone_is_doubted_and_the_send_goes_to_the_other_one() -> None:
    with world(0) as one:
        gone = one.script.addresses["a"]
        one.thread.run(one.script.servers[0].stop())
        while one.script.session.routes._asked_s["T"] > time.monotonic() - 0.6:
            time.sleep(0.02)  # a route that was just requested is not requested again
        outcome = one.sends.run(lambda to: to.send(MESSAGE, MessageQueue("T", "a", 0)))
        assert isinstance(outcome, Refused)
        assert outcome.status == "NOT_CONNECTED"
        assert outcome.remark.startswith(f"no connection to {gone}: ")
        assert isinstance(one.send(), Sent)
        until_s = time.monotonic() + 30
        while len(one.script.routes_asked) < 2 and time.monotonic() < until_s:
            time.sleep(0.01)
        assert one.script.routes_asked[:2] == ["T", "T"]


def test_errors_and_batches_are_those_of_the_producer() -> None:
    with world(0, 13) as one:
        with pytest.raises(MessageError, match="empty"):
            one.send(Message("T", b""))
        batch = one.sends.run(lambda to: to.send_batch([MESSAGE, MESSAGE]))
        assert [outcome.queue_offset for outcome in batch if isinstance(outcome, Sent)] == [7, 8]
        with pytest.raises(SendError):
            one.sends.run(lambda to: to.send_or_raise(MESSAGE))


def test_requests_are_signed() -> None:
    with world(0) as one:
        one.script.session.remoting.credentials = Credentials("key", "secret")
        assert isinstance(one.send(), Sent)
        assert SIGNATURE in one.script.requests[0].fields


def test_the_event_loop_asks_for_a_route_that_a_send_in_its_thread_lacks() -> None:
    with world(0) as one:
        assert isinstance(one.send(Message("New", b"x")), Sent)
        assert one.script.session.routes.known("New") is not None
        assert one.sends._lanes[0].transport.connections._connections


def test_a_send_with_a_known_route_leaves_the_event_loop_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(_transport: ThreadTransport, _work: object) -> None:
        raise AssertionError

    monkeypatch.setattr(ThreadTransport, "run", run)
    with world(0) as one:
        assert isinstance(one.send(), Sent)


def test_a_broker_with_a_host_name_is_asked_by_the_event_loop() -> None:
    with world(0) as one:
        named = [
            replace(broker, broker_addrs={0: broker.broker_addrs[0].replace("127.0.0.1", "localhost")})
            for broker in one.script.route.broker_datas
        ]
        one.script.route = replace(one.script.route, broker_datas=named)
        one.thread.run(one.script.session.routes.refresh("T"))
        assert isinstance(one.send(), Sent)
        assert not one.sends._lanes[0].transport.connections._connections


def test_more_threads_than_lanes_send_at_once_with_ids_of_their_own() -> None:
    threads = 20
    with world(*[0] * (threads * 5)) as one:
        one.script.delay_s = 0.01
        outcomes: list[Outcome] = []
        begin = threading.Barrier(threads)

        def send() -> None:
            begin.wait(30)
            outcomes.extend([one.send() for _ in range(5)])

        running = [threading.Thread(target=send) for _ in range(threads)]
        for thread in running:
            thread.start()
        for thread in running:
            thread.join(60)
        assert all(isinstance(outcome, Sent) for outcome in outcomes)
        assert len({outcome.message_id for outcome in outcomes}) == threads * 5
        assert 1 < len(one.sends._lanes) <= threads


def test_a_close_ends_the_send_of_another_thread_without_a_known_outcome() -> None:
    with world(None) as one:
        outcomes: list[Outcome] = []
        thread = threading.Thread(target=lambda: outcomes.append(one.send(timeout_ms=30_000)))
        thread.start()
        while not one.script.attempts:
            time.sleep(0.005)
        one.sends.close()
        thread.join(10)
        assert not thread.is_alive()
        assert isinstance(outcomes[0], Unknown)
        assert not one.sends._idle
        assert not one.sends._lanes[0].transport.connections._connections


@pytest.mark.parametrize(
    ("has_hooks", "tls", "is_usable"),
    [
        (False, None, True),
        (True, None, False),
        (False, SimpleNamespace(client=None), True),
        (False, SimpleNamespace(client=object()), False),
        (True, SimpleNamespace(client=None), False),
    ],
)
def test_sends_run_in_their_threads_without_hooks_and_tls_only(
    has_hooks: bool, tls: object, is_usable: bool
) -> None:
    session = cast(Any, SimpleNamespace(runtime=SimpleNamespace(tls=tls)))
    sends = ThreadSends(cast(Any, None), session, cast(Any, None), has_hooks=has_hooks)
    assert sends._is_usable is is_usable


def test_each_lane_has_message_ids_of_its_own() -> None:
    with world() as here:
        builders = {id(here.sends._new().producer._payloads) for _ in range(3)}
        assert len({id(here.sends._producer._payloads), *builders}) == 4


def test_at_most_16_sends_run_in_their_threads_at_once() -> None:
    with world() as here:
        lanes = [here.sends._take() for _ in range(18)]
        assert [lane is not None for lane in lanes] == [True] * 16 + [False] * 2


def test_an_idle_lane_is_used_again_and_none_after_the_close() -> None:
    with world(0, 0, 0) as here:
        for _ in range(2):
            assert isinstance(here.send(), Sent)
        assert (len(here.sends._lanes), len(here.sends._idle)) == (1, 1)
        here.sends.close()
        assert not here.sends._idle
        assert here.sends._take() is None
        assert isinstance(here.send(), Sent)  # in the event loop
        assert len(here.sends._lanes) == 1
