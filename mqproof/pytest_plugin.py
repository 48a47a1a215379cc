"""Fixtures for pytest: a broker for each test. pytest loads this module by itself.

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

_MARK = "rocketmq(properties=None, store=False): configuration of the broker of the fixture rocketmq"

_CHAOS_MARK = (
    "rocketmq_chaos(*faults, plan=None, seed=0, lawful=True): faults of the fixture rocketmq_chaos, each as "
    "NAME or NAME=PROBABILITY"
)
_CHAOS_OPTIONS = {"plan", "seed", "lawful"}


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", _MARK)
    config.addinivalue_line("markers", _CHAOS_MARK)


@pytest.fixture
def rocketmq(request: pytest.FixtureRequest) -> "Iterator[ThreadedBroker]":
    """A name server and a broker in a thread, with an empty store, on free ports of the loopback."""
    from mqproof.impl.embedded.threaded_broker import ThreadedBroker

    options = _options(request)
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


def _options(request: pytest.FixtureRequest) -> dict[str, Any]:
    mark = request.node.get_closest_marker("rocketmq")
    if mark is None:
        return {}
    if mark.args or (unknown := sorted(mark.kwargs.keys() - {"properties", "store"})):
        wrong = mark.args[0] if mark.args else unknown[0]
        raise pytest.UsageError(
            f"{request.node.nodeid}: marker rocketmq: unexpected {wrong!r}, expected properties= or store="
        )
    return dict(mark.kwargs)
