"""Tests the blocking client over real sockets; it only adds threads."""

import os
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from mqproof.impl.client.blocking import BlockingClient
from mqproof.impl.client.consuming.lite_pull_consumer import LitePullConfig
from mqproof.impl.client.consuming.push_consumer import PushConsumerConfig
from mqproof.impl.client.consuming.start_offset import ConsumeFrom
from mqproof.impl.client.messages.compose import new_message
from mqproof.impl.client.model import ClientError, MessageError, ReceivedMessage, Refused, Sent
from mqproof.impl.client.producing.producer import ProducerConfig
from mqproof.impl.client.producing.transaction_producer import TransactionState
from mqproof.impl.remoting.message import Message, StoredMessage
from mqproof.impl.remoting.signing import Credentials
from tests.impl.client.test_client_page import cluster


def test_listeners_run_in_their_own_threads_and_may_send(tmp_path: Path) -> None:
    names: set[str] = set()
    done = threading.Event()
    with cluster(tmp_path / "store") as namesrv, BlockingClient(namesrv) as client:
        for number in range(4):
            assert isinstance(client.send(new_message("T", b"%d" % number)), Sent)

        def listener(messages: Sequence[ReceivedMessage]) -> None:
            names.add(threading.current_thread().name)
            outcome = client.send(new_message("Copies", messages[0].body))
            assert isinstance(outcome, Sent)
            if (
                outcome.queue_offset >= 0
                and sum(client.pull(q, 0).max_offset for q in client.queues("Copies")) == 4
            ):
                done.set()

        with client.consuming("G", {"T": "*"}, listener):
            assert done.wait(30)
    assert all(name.startswith("mqproof-listener") for name in names)


def test_every_kind_of_send_uses_the_chosen_queue(tmp_path: Path) -> None:
    with cluster(tmp_path / "store") as namesrv, BlockingClient(namesrv) as client:
        client.send(new_message("T", b"x"))  # this send creates the topic
        message = new_message("T", b"x")
        outcomes = [
            *(client.send(message, select=lambda queues: queues[-1]) for _ in range(2)),
            *(client.send_later(message, select=lambda queues: queues[-1]).result(60) for _ in range(2)),
            client.send_later(message, client.queues("T")[-1]).result(60),
            *client.send_batch([message], client.queues("T")[-1]),
        ]
        last = client.queues("T")[-1]
        many = client.send_many([new_message("T", b"x") for _ in range(100)], outstanding=8)
        assert len({outcome.message_id for outcome in many if isinstance(outcome, Sent)}) == 100
    assert {outcome.queue for outcome in outcomes if isinstance(outcome, Sent)} == {last}
    assert all(isinstance(outcome, Sent) for outcome in outcomes)


def test_a_hanging_listener_does_not_block_the_end_of_the_client(tmp_path: Path) -> None:
    begun, release = threading.Event(), threading.Event()

    def listener(messages: Sequence[ReceivedMessage]) -> None:
        begun.set()
        release.wait(60)

    with cluster(tmp_path / "store") as namesrv:
        with BlockingClient(namesrv) as client:
            client.send(new_message("T", b"x"))
            with client.consuming("G", {"T": "*"}, listener, PushConsumerConfig(stop_timeout_ms=100)):
                assert begun.wait(30)
            began_s = time.monotonic()
        assert time.monotonic() - began_s < 120
        release.set()


def test_messages_polled_in_a_block_that_failed_are_redelivered(tmp_path: Path) -> None:
    begin = LitePullConfig(consume_from=ConsumeFrom.FIRST_OFFSET)
    with cluster(tmp_path / "store") as namesrv, BlockingClient(namesrv) as client:
        client.send(new_message("T", b"x"))

        def fail() -> None:
            with client.polling("G", {"T": "*"}, begin) as poller:
                assert len(poller.poll(60_000)) == 1
                raise RuntimeError("injected")

        with pytest.raises(RuntimeError, match="injected"):
            fail()
        with client.polling("G", {"T": "*"}, begin) as poller:
            assert len(poller.poll(60_000)) == 1
        with client.polling("G", {"T": "*"}, begin) as poller:
            client.send(new_message("T", b"y"))
            assert [message.body for message in poller.poll(60_000)] == [b"y"]


def test_requests_are_signed_with_an_account(tmp_path: Path) -> None:
    rules = tmp_path / "config" / "plain_acl.yml"
    rules.parent.mkdir()
    rules.write_text("accounts: [{accessKey: the-client, secretKey: '87654321', defaultTopicPerm: PUB}]")
    account = Credentials("the-client", "87654321")
    with cluster(tmp_path, acl=True) as namesrv:
        with BlockingClient(namesrv, credentials=account) as client:
            assert isinstance(client.send(new_message("T", b"x")), Sent)
        with BlockingClient(namesrv) as client:
            refused = client.send(new_message("T", b"x"))
    assert isinstance(refused, Refused)
    assert refused.remark == "AclException: the request has no access key"


def test_errors_are_raised_by_the_call_that_caused_them(tmp_path: Path) -> None:
    with cluster(tmp_path / "store") as namesrv, BlockingClient(namesrv) as client:
        with pytest.raises(MessageError, match="empty"):
            client.send(new_message("T", b""))
        with pytest.raises(RuntimeError, match="injected"), client.polling("G", {"T": "*"}):
            raise RuntimeError("injected")
    threads = threading.active_count()
    with pytest.raises(ValueError, match="names no name server"):
        BlockingClient(";").__enter__()
    assert threading.active_count() == threads


def test_a_listener_that_is_a_plain_function_runs_as_often_at_once_as_the_configuration_says(
    tmp_path: Path,
) -> None:
    running, most, lock, enough = 0, 0, threading.Lock(), threading.Event()

    def listener(messages: Sequence[ReceivedMessage]) -> None:  # a Listener's signature
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
            if most == 40:
                enough.set()
        enough.wait(30)
        with lock:
            running -= 1

    with cluster(tmp_path / "store") as namesrv, BlockingClient(namesrv) as client:
        for number in range(60):
            client.send_or_raise(new_message("T", b"%d" % number))
        with client.consuming("G", {"T": "*"}, listener, PushConsumerConfig(concurrency=40)):
            assert enough.wait(30)
    assert most == 40


def test_a_transaction_runs_in_a_thread_and_makes_its_message_visible(tmp_path: Path) -> None:
    threads: list[str] = []

    def place(_message: Message, _transaction_id: str) -> TransactionState:
        threads.append(threading.current_thread().name)
        return TransactionState.COMMIT

    def check(_message: StoredMessage, _transaction_id: str) -> TransactionState:
        return TransactionState.UNKNOWN

    with (
        cluster(tmp_path / "store") as namesrv,
        BlockingClient(namesrv) as client,
        client.transactions(check, ProducerConfig("TG")) as producer,
    ):
        outcome = producer.send(new_message("T", b"x"), place)
        assert isinstance(outcome.sent, Sent)
        assert outcome.state is TransactionState.COMMIT
        assert threads[0] != threading.current_thread().name
        end_s = time.monotonic() + 30
        while sum(client.max_offset(queue) for queue in client.queues("T")) < 1:
            assert time.monotonic() < end_s
            time.sleep(0.05)


def test_a_child_process_may_not_send_and_leaves_the_connections_to_its_parent(tmp_path: Path) -> None:
    with cluster(tmp_path / "store") as namesrv, BlockingClient(namesrv) as client:
        for _ in range(2):  # the second one in this thread, on a connection of its own
            client.send_or_raise(new_message("T", b"x"))
        child = os.fork()
        if child == 0:
            try:
                client.send(new_message("T", b"of the child"))
            except ClientError as error:
                os._exit(0 if "start another one here" in str(error) else 2)
            finally:
                os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        client.send_or_raise(new_message("T", b"x"))
        assert sum(client.max_offset(queue) for queue in client.queues("T")) == 3


def test_sends_are_traced_and_compressed_in_the_calling_thread_too(tmp_path: Path) -> None:
    config = ProducerConfig(trace_topic="Traces")
    with cluster(tmp_path / "store") as namesrv:
        with BlockingClient(namesrv, producer=config) as client:
            client.send_or_raise(new_message("T", b"x"))
            sent = client.send_or_raise(new_message("T", bytes(10_000)))
            (stored,) = client.pull(sent.queue, sent.queue_offset).messages
            assert stored.message.body == bytes(10_000)
        with BlockingClient(namesrv) as client:
            pulled = [client.pull(queue, 0).messages for queue in client.queues("Traces")]
    assert sent.message_id.encode() in b"".join(trace.message.body for group in pulled for trace in group)
