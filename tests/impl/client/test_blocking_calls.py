"""Tests that each call of the blocking client passes all its arguments on, with the same defaults."""

import asyncio
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from types import SimpleNamespace
from typing import Any, cast

import pytest

from mqproof.impl.client.blocking import BlockingClient, BlockingPoller, BlockingTransactions
from mqproof.impl.client.consuming.push_consumer import PushConsumerConfig
from mqproof.impl.client.model import ClientError, MessageQueue
from mqproof.impl.remoting.message import Message

QUEUE = MessageQueue("T", "b", 0)
MESSAGE = Message("T", b"x")
SELECT: Any = max
Call = tuple[str, tuple[object, ...], dict[str, object]]


class Recorder:
    """Has every method as a coroutine function; records each call, and returns its name."""

    def __init__(self) -> None:
        self.calls: list[Call] = []

    def __getattr__(self, name: str) -> Any:
        async def method(*arguments: object, **named: object) -> str:
            self.calls.append((name, arguments, named))
            return name

        return method


@contextmanager
def running() -> Iterator[asyncio.AbstractEventLoop]:
    """Run an event loop in another thread."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield loop
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


@contextmanager
def client_of(recorder: Recorder) -> Iterator[BlockingClient]:
    """Return a client whose producer and consumer record the calls."""
    client = BlockingClient("n:1")
    client._loop.close()
    client._producer = client._consumer = cast(Any, recorder)
    client._sends = cast(Any, SimpleNamespace(run=lambda send: asyncio.run(send(recorder))))
    client._process = os.getpid()
    with running() as client._loop:
        yield client


def options(**named: object) -> dict[str, object]:
    return {"select": None, "timeout_ms": None, **named}


@pytest.mark.parametrize(
    ("call", "name", "arguments", "named"),
    [
        (lambda c: c.send(MESSAGE), "send", (MESSAGE, None), options()),
        (
            lambda c: c.send(MESSAGE, QUEUE, select=SELECT, timeout_ms=7), "send", (MESSAGE, QUEUE),
            options(select=SELECT, timeout_ms=7),
        ),
        (
            lambda c: c.send_or_raise(MESSAGE, QUEUE, select=SELECT, timeout_ms=7), "send_or_raise",
            (MESSAGE, QUEUE), options(select=SELECT, timeout_ms=7),
        ),
        (
            lambda c: c.send_later(MESSAGE, QUEUE, select=SELECT).result(9), "send", (MESSAGE, QUEUE),
            {"select": SELECT},
        ),
        (
            lambda c: c.send_many([MESSAGE]), "send_many", ([MESSAGE],),
            {"outstanding": 64, "timeout_ms": None},
        ),
        (
            lambda c: c.send_many([MESSAGE], outstanding=3, timeout_ms=7), "send_many", ([MESSAGE],),
            {"outstanding": 3, "timeout_ms": 7},
        ),
        (lambda c: c.send_batch([MESSAGE], QUEUE), "send_batch", ([MESSAGE], QUEUE), {}),
        (lambda c: c.send_oneway(MESSAGE), "send_oneway", (MESSAGE,), {}),
        (lambda c: c.recall("T", "handle"), "recall", ("T", "handle"), {}),
        (
            lambda c: c.request(MESSAGE, QUEUE, select=SELECT, timeout_ms=7), "request", (MESSAGE, QUEUE),
            options(select=SELECT, timeout_ms=7),
        ),
        (
            lambda c: c.reply(MESSAGE, b"y", properties={"a": "b"}, timeout_ms=7), "reply", (MESSAGE, b"y"),
            {"properties": {"a": "b"}, "timeout_ms": 7},
        ),
        (lambda c: c.queues("T"), "queues", ("T",), {}),
        (lambda c: c.pull(QUEUE, 7), "pull", (QUEUE, 7), {"max_count": 32, "tags": "*"}),
        (
            lambda c: c.pull(QUEUE, 7, max_count=3, tags="A"), "pull", (QUEUE, 7),
            {"max_count": 3, "tags": "A"},
        ),
        (lambda c: c.commit(QUEUE, 7), "commit", (QUEUE, 7), {}),
        (lambda c: c.committed(QUEUE), "committed", (QUEUE,), {}),
        (lambda c: c.min_offset(QUEUE), "min_offset", (QUEUE,), {}),
        (lambda c: c.max_offset(QUEUE), "max_offset", (QUEUE,), {}),
    ],
)  # fmt: skip
def test_a_call_of_the_client_passes_its_arguments_on(
    call: Callable[[BlockingClient], object],
    name: str,
    arguments: tuple[object, ...],
    named: dict[str, object],
) -> None:
    recorder = Recorder()
    with client_of(recorder) as client:
        assert call(client) in (name, None)
    assert recorder.calls == [(name, arguments, named)]


def test_a_poller_passes_its_arguments_on() -> None:
    recorder = Recorder()
    with running() as loop:
        poller = BlockingPoller(cast(Any, recorder), loop)
        assert cast(object, poller.poll()) == "poll"
        poller.poll(7, 8)
        poller.commit()
        poller.seek(QUEUE, 9)
    assert [(name, arguments) for name, arguments, _ in recorder.calls] == [
        ("poll", (5000, 10)), ("poll", (7, 8)), ("commit", ()), ("seek", (QUEUE, 9)),
    ]  # fmt: skip
    consumer = cast(Any, SimpleNamespace(assignment=lambda: [QUEUE]))
    assert BlockingPoller(consumer, cast(Any, None)).assignment() == [QUEUE]


def test_a_transaction_passes_its_arguments_on() -> None:
    recorder, local = Recorder(), cast(Any, print)
    with running() as loop:
        sent = BlockingTransactions(cast(Any, recorder), loop).send(MESSAGE, local, QUEUE, timeout_ms=7)
    assert cast(object, sent) == "send"
    assert recorder.calls == [("send", (MESSAGE, local, QUEUE), {"timeout_ms": 7})]


@pytest.mark.parametrize("fails", [False, True])
def test_what_a_block_starts_is_stopped_at_its_end(fails: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[tuple[tuple[object, ...], Recorder]] = []

    def make(*arguments: object) -> Recorder:
        made.append((arguments, Recorder()))
        return made[-1][1]

    for name in ("TransactionProducer", "PushConsumer", "LitePullConsumer"):
        monkeypatch.setattr(f"mqproof.impl.client.blocking.{name}", make)
    session, config, call = cast(Any, object()), cast(Any, object()), cast(Any, print)
    with client_of(Recorder()) as client:
        client._session = session
        blocks: list[tuple[AbstractContextManager[Any], Callable[[Any], object]]] = [
            (client.transactions(call, config), lambda it: it.send(MESSAGE, call)),
            (client.consuming("G", {"T": "A"}, call, config), lambda it: it),
            (client.polling("G", {"T": "A"}, config), lambda it: it.poll()),
        ]
        for block, use in blocks:
            with suppress(ZeroDivisionError), block as it:
                use(it)
                assert not fails or 1 / 0
    assert [arguments for arguments, _ in made] == [
        (session, call, config), (session, "G", call, config), (session, "G", config),
    ]  # fmt: skip
    assert [[name for name, *_ in each.calls] for _, each in made] == [
        ["send", "stop"], ["subscribe", "start", "stop"],
        ["start", "subscribe", "poll", "stop" if fails else "__aexit__"],
    ]  # fmt: skip
    assert made[2][1].calls[3][1] == (() if fails else (None, None, None))


@pytest.mark.parametrize("is_child", [False, True])
def test_a_client_ends_with_its_session_its_connections_and_its_thread(
    is_child: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, ended = Recorder(), list[str]()

    def sends(*arguments: object, has_hooks: bool) -> object:
        assert arguments == ("producer", session, client._loop)
        assert not has_hooks
        return SimpleNamespace(close=lambda: ended.append("sends"))

    monkeypatch.setattr("mqproof.impl.client.blocking.connect", lambda *_, **__: session)
    monkeypatch.setattr("mqproof.impl.client.blocking.Producer", lambda *_: "producer")
    monkeypatch.setattr("mqproof.impl.client.blocking.ThreadSends", sends)
    client = BlockingClient("n:1")
    with client:
        assert client._thread.is_alive()
        if is_child:
            client._process -= 1
    assert client._thread.is_alive() == is_child
    assert [name for name, *_ in session.calls] == ["start"] + ["stop"] * (not is_child)
    assert ended == ["sends"] * (not is_child)
    if is_child:  # the parent process ends the client
        client._process += 1
        client.__exit__(None, None, None)
    assert client._loop.is_closed()


def test_a_client_needs_a_listener_thread_and_has_20_for_a_consumer_without_a_configuration() -> None:
    with pytest.raises(ValueError, match="listener_threads is 0, at least 1 expected"):
        BlockingClient("n:1", listener_threads=0)
    for client, given, threads in (
        (BlockingClient("n:1"), None, 20),
        (BlockingClient("n:1", listener_threads=1), None, 1),
        (BlockingClient("n:1"), PushConsumerConfig(concurrency=3), 3),
    ):
        client._loop.close()
        created: list[PushConsumerConfig] = []

        class Consumer(Recorder):
            def __init__(self, _session: object, _group: str, _listener: object, config: Any) -> None:
                super().__init__()
                created.append(config)  # noqa: B023  # used within the iteration

        client._session = cast(Any, None)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("mqproof.impl.client.blocking.PushConsumer", Consumer)
            consumer = asyncio.run(client._push_consumer("G", {"T": "A", "U": "*"}, cast(Any, print), given))
        assert [config.concurrency for config in created] == [threads]
        assert [name for name, *_ in cast(Any, consumer).calls] == ["subscribe", "subscribe", "start"]
        assert cast(Any, consumer).calls[0][1] == ("T", "A")


def test_a_client_of_another_process_may_not_send() -> None:
    recorder = Recorder()
    with client_of(recorder) as client:
        client._process -= 1
        with pytest.raises(
            ClientError, match=f"the client belongs to process {client._process}: start another"
        ):
            client.send(MESSAGE)
    assert recorder.calls == []


def test_a_client_connects_with_all_that_it_was_given(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[tuple[object, ...], dict[str, object]]] = []

    class RefusedError(Exception):
        """Ends the start."""

    def connect(*arguments: object, **named: object) -> None:
        seen.append((arguments, named))
        raise RefusedError

    monkeypatch.setattr("mqproof.impl.client.blocking.connect", connect)
    given: dict[str, Any] = {
        each: object() for each in ("tls", "credentials", "instance", "settings", "hooks")
    }
    client = BlockingClient("n:1", client_id="me", **given)
    with pytest.raises(RefusedError):
        client.__enter__()
    assert seen == [(("n:1", "me"), given)]
    assert not client._thread.is_alive()
    assert client._loop.is_closed()


def test_a_consumer_that_cannot_subscribe_to_poll_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    class Consumer(Recorder):
        def __init__(self, *created: object) -> None:
            super().__init__()
            self.created = created
            consumers.append(self)

        async def subscribe(self, topic: str, tags: str) -> None:
            self.calls.append(("subscribe", (topic, tags), {}))
            if tags == "bad":
                raise ClientError("refused")

    consumers: list[Consumer] = []
    monkeypatch.setattr("mqproof.impl.client.blocking.LitePullConsumer", Consumer)
    client = BlockingClient("n:1")
    client._loop.close()
    client._session = session = cast(Any, object())
    config = cast(Any, object())
    asyncio.run(client._lite_pull_consumer("G", {"T": "A"}, config))
    with pytest.raises(ClientError, match="refused"):
        asyncio.run(client._lite_pull_consumer("G", {"T": "bad", "U": "*"}, None))
    assert [each.created for each in consumers] == [(session, "G", config), (session, "G", None)]
    assert [[name for name, *_ in each.calls] for each in consumers] == [
        ["start", "subscribe"],
        ["start", "subscribe", "stop"],
    ]


def test_the_pull_consumer_is_created_at_its_first_use(monkeypatch: pytest.MonkeyPatch) -> None:
    created: list[tuple[object, ...]] = []

    def consumer(*arguments: object) -> object:
        created.append(arguments)
        return object()

    monkeypatch.setattr("mqproof.impl.client.blocking.PullConsumer", consumer)
    for group, options_ in (("mqproof_consumer", {}), ("G", {"consumer_group": "G"})):
        client = BlockingClient("n:1", **cast(Any, options_))
        client._loop.close()
        client._session = session = cast(Any, object())
        assert client._pull_consumer() is client._pull_consumer()
        assert created.pop() == (session, group)
        assert created == []
