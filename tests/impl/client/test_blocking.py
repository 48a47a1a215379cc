"""The synchronous face, over real sockets: what it adds is threads."""

import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from impl.client.blocking import BlockingClient
from impl.client.compose import new_message
from impl.client.model import MessageError, ReceivedMessage, Sent
from impl.client.push_consumer import PushConsumerConfig
from tests.impl.client.test_client_page import cluster


def test_listeners_run_in_threads_of_their_own_and_may_send(tmp_path: Path) -> None:
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


def test_a_listener_that_does_not_end_does_not_keep_the_client_from_ending(tmp_path: Path) -> None:
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


def test_errors_come_out_of_the_call_that_made_them(tmp_path: Path) -> None:
    with cluster(tmp_path / "store") as namesrv, BlockingClient(namesrv) as client:
        with pytest.raises(MessageError, match="empty"):
            client.send(new_message("T", b""))
        with pytest.raises(RuntimeError, match="planted"), client.polling("G", {"T": "*"}):
            raise RuntimeError("planted")
    threads = threading.active_count()
    with pytest.raises(ValueError, match="names no name server"):
        BlockingClient(";").__enter__()
    assert threading.active_count() == threads
