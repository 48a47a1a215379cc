"""Released servers have the known issues that the page lists, and ours few of them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from mqproof.conformance.adapters.apache import servers
from mqproof.conformance.adapters.apache.servers import running
from mqproof.conformance.hosts.processes import Cluster
from mqproof.impl.runtime.network import Address
from tests.interop.known_issues import ISSUES, OURS, Issue, Servers

pytestmark = pytest.mark.apache


@pytest.fixture(scope="module")
def released(release: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    """Start servers of their own, because some scripts change their configuration."""
    folder: Path = tmp_path_factory.mktemp("known-issues")
    names = servers.name_server(release, folder)
    broker = servers.broker(release, folder, names.address)
    with running(names, broker):
        yield Servers(names.address, broker.address, folder)


@pytest.mark.parametrize("issue", ISSUES, ids=lambda issue: issue.number)
def test_the_release_has_the_issue_if_the_page_says_so(issue: Issue, released: Servers, release: str) -> None:
    observed = issue.script(released)
    assert bool(observed) == (release in issue.releases), observed or "not observed"


@pytest.mark.parametrize("issue", ISSUES, ids=lambda issue: issue.number)
def test_our_servers_have_it_only_if_tools_rely_on_it(issue: Issue, ours: Cluster, tmp_path: Path) -> None:
    broker = Address("127.0.0.1", ours.broker_port)
    observed = issue.script(Servers(Address.parse(ours.name_server), broker, tmp_path))
    assert bool(observed) == (issue.number in OURS), observed or "not observed"
