"""Tests mixed clusters: our name server with Apache RocketMQ's broker and the reverse, with both clients."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from mqproof.conformance.adapters.apache import servers
from mqproof.conformance.adapters.apache.java_clients import java_client
from mqproof.conformance.adapters.apache.servers import running
from mqproof.conformance.hosts.processes import cluster
from mqproof.impl.client.blocking import BlockingClient
from mqproof.impl.client.messages.compose import new_message
from mqproof.impl.client.model import NoRouteError, Sent
from mqproof.impl.runtime.network import Address
from tests.interop.test_our_clients import FIRST, Gathering

pytestmark = pytest.mark.apache

Mixed = Callable[[str, Path], AbstractContextManager[Address]]
"""Runs a cluster with this release in a folder, and yields the address of its name server."""


@contextmanager
def our_names_apaches_broker(release: str, folder: Path) -> Iterator[Address]:
    with cluster(folder, "ASYNC_FLUSH") as ours:
        ours.start_name_server()
        names = Address.parse(ours.name_server)
        broker = servers.broker(release, folder, names)
        with running(broker):
            yield names
            broker.stop()
            _assert_unknown(names, "Mixed")


@contextmanager
def apaches_names_our_broker(release: str, folder: Path) -> Iterator[Address]:
    names = servers.name_server(release, folder)
    with running(names), cluster(folder, "ASYNC_FLUSH") as ours:
        ours.name_server = str(names.address)
        ours.start_broker()
        yield names.address
        ours.stop("broker")
        _assert_unknown(names.address, "Mixed")


def _assert_unknown(names: Address, topic: str) -> None:
    """A broker that stopped cleanly has removed its routes."""
    with BlockingClient(str(names)) as client, pytest.raises(NoRouteError):
        client.queues(topic)


@pytest.mark.parametrize("mixed", [our_names_apaches_broker, apaches_names_our_broker])
def test_clients_of_both_implementations_exchange_messages(
    mixed: Mixed, release: str, tmp_path: Path
) -> None:
    with (
        mixed(release, tmp_path) as names,
        java_client(release, tmp_path, names) as theirs,
        BlockingClient(str(names)) as ours,
    ):
        gathering = Gathering()
        theirs.send("Mixed", 4, tag="theirs")
        for number in range(4):
            assert isinstance(ours.send(new_message("Mixed", f"{number}".encode(), tag="ours")), Sent)
        theirs.subscribe("consumer", "Mixed", "Theirs")
        with ours.consuming("Ours", {"Mixed": "*"}, gathering, FIRST):
            gathering.wait_for(8)
        found = sorted((str(message.tag), message.body.decode()) for message in gathering.got)
        assert found == [(tag, str(number)) for tag in ("ours", "theirs") for number in range(4)]
        got = sorted((event["tag"], event["body"]) for event in theirs.wait_for(8, "consumer"))
        assert got == found
