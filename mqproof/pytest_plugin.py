"""Fixtures for pytest: a broker or a cluster for each test. pytest loads this module by itself.

docs/how-to/test-applications.md has examples.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:  # imported late: most test runs with this plugin installed use no broker
    from mqproof.conformance.faults.chaos_session import ThreadedChaos
    from mqproof.impl.embedded.broker_process import BrokerProcess
    from mqproof.impl.embedded.threaded_broker import ThreadedBroker
    from mqproof.impl.embedded.threaded_cluster import ThreadedCluster

_MARKS = (
    "rocketmq(properties=None, store=False): configuration of the broker of the fixture rocketmq",
    "rocketmq_cluster(kind=None, properties=None): kind and configuration of the fixture rocketmq_cluster",
    "rocketmq_chaos(*faults, plan=None, seed=0, lawful=True): faults of the fixture rocketmq_chaos, each as "
    "NAME or NAME=PROBABILITY",
)
_KINDS = ("master-slave", "dledger")
"""As `mqproof.impl.embedded.cluster_members.ClusterKind`, which is not imported here."""


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("rocketmq", "RocketMQ brokers for tests")
    group.addoption(
        "--rocketmq-cluster",
        choices=_KINDS,
        default="master-slave",
        help="the fixture rocketmq_cluster: a master with a slave (default), or three members that elect"
        " their master",
    )


_CHAOS_OPTIONS = {"plan", "seed", "lawful"}


def pytest_configure(config: pytest.Config) -> None:
    for mark in _MARKS:
        config.addinivalue_line("markers", mark)


@pytest.fixture
def rocketmq(request: pytest.FixtureRequest) -> "Iterator[ThreadedBroker]":
    """A name server and a broker in a thread, with an empty store, on free ports of the loopback."""
    from mqproof.impl.embedded.threaded_broker import ThreadedBroker

    options = _options(request, "rocketmq", ("properties", "store"))
    on_disk = options.pop("store", False)
    store: Path | None = request.getfixturevalue("tmp_path") / "rocketmq" if on_disk else None
    with ThreadedBroker(store=store, **options) as broker:
        yield broker


@pytest.fixture
def rocketmq_process(tmp_path: Path) -> "Iterator[BrokerProcess]":
    """`mqproof serve` in a process of its own, which the test can kill and restart."""
    from mqproof.impl.embedded.broker_process import BrokerProcess

    folder = tmp_path / "rocketmq-process"
    folder.mkdir()
    with BrokerProcess(folder) as process:
        yield process


@pytest.fixture
def rocketmq_chaos(request: pytest.FixtureRequest, rocketmq: "ThreadedBroker") -> "Iterator[ThreadedChaos]":
    """A chaos proxy in front of the broker of the fixture `rocketmq`.

    The test fails if its clients saw something that the specification forbids. The marker rocketmq_chaos
    chooses the faults; by default all lawful ones happen.
    """
    from mqproof.conformance.faults.chaos_session import ThreadedChaos

    mark = request.node.get_closest_marker("rocketmq_chaos")
    faults, options = (mark.args, mark.kwargs) if mark is not None else ((), {})
    if unknown := sorted(options.keys() - _CHAOS_OPTIONS):
        raise pytest.UsageError(
            f"{request.node.nodeid}: marker rocketmq_chaos: unexpected {unknown[0]!r}, expected faults, or "
            f"{', '.join(sorted(_CHAOS_OPTIONS))}"
        )
    try:
        chaos = ThreadedChaos(rocketmq.name_server, *faults, **options)
    except ValueError as error:
        raise pytest.UsageError(f"{request.node.nodeid}: marker rocketmq_chaos: {error}") from None
    with chaos:
        yield chaos


@pytest.fixture
def rocketmq_cluster(request: pytest.FixtureRequest) -> "Iterator[ThreadedCluster]":
    """A name server and brokers with replicas in a thread, which the test can stop and start."""
    from mqproof.impl.embedded.threaded_cluster import ThreadedCluster

    options = _options(request, "rocketmq_cluster", ("kind", "properties"))
    kind = options.pop("kind", None) or request.config.getoption("--rocketmq-cluster")
    if kind not in _KINDS:
        node, known = request.node.nodeid, " or ".join(_KINDS)
        raise pytest.UsageError(f"{node}: marker rocketmq_cluster: kind is {kind!r}, expected {known}")
    with ThreadedCluster(kind, **options) as cluster:
        yield cluster


def _options(request: pytest.FixtureRequest, name: str, expected: tuple[str, ...]) -> dict[str, Any]:
    """Return the arguments of the marker of this name. Raises UsageError for others than expected."""
    mark = request.node.get_closest_marker(name)
    if mark is None:
        return {}
    if mark.args or (unknown := sorted(mark.kwargs.keys() - set(expected))):
        wrong = mark.args[0] if mark.args else unknown[0]
        node, known = request.node.nodeid, " or ".join(f"{each}=" for each in expected)
        raise pytest.UsageError(f"{node}: marker {name}: unexpected {wrong!r}, expected {known}")
    return dict(mark.kwargs)
