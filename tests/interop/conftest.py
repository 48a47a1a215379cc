"""Fixtures of the tests: a release of Apache's, its servers and clients, and our servers."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from mqproof.conformance.adapters.apache import servers
from mqproof.conformance.adapters.apache.java_clients import java_client
from mqproof.conformance.adapters.apache.servers import ApacheServer, running
from mqproof.conformance.adapters.clients.driver_client import DriverClient
from mqproof.conformance.hosts.processes import Cluster, cluster
from mqproof.impl.runtime.network import Address
from tests.conformance.adapters.apache.conftest import release

__all__ = ["release"]


@pytest.fixture(scope="session")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Start our name server and broker."""
    with cluster(tmp_path_factory.mktemp("ours"), "ASYNC_FLUSH") as made:
        made.start_name_server()
        made.start_broker()
        yield made


@pytest.fixture(scope="session")
def our_names(ours: Cluster) -> Address:
    return Address.parse(ours.name_server)


@pytest.fixture(scope="session")
def java_at_ours(
    release: str, our_names: Address, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[DriverClient]:
    """Start Apache's clients with our servers."""
    with java_client(release, tmp_path_factory.mktemp("java"), our_names) as client:
        yield client


@pytest.fixture(scope="session")
def apache(
    release: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[ApacheServer, ApacheServer]]:
    """Start Apache's name server and broker."""
    folder: Path = tmp_path_factory.mktemp("apache")
    names = servers.name_server(release, folder)
    broker = servers.broker(release, folder, names.address)
    with running(names, broker):
        yield names, broker
