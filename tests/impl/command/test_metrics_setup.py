"""Tests that a process serves its metrics only if configured; their server starts first and stops last."""

import urllib.request
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from mqproof.impl.command.metrics_setup import with_metrics
from mqproof.impl.metrics.config import Exporter, MetricsConfig
from mqproof.impl.metrics.metrics_server import MetricsServer
from mqproof.impl.runtime.network import SimulatedNetwork
from mqproof.impl.runtime.runtime import Runtime, simulated
from mqproof.impl.runtime.simulated_loop import SimulatedLoop
from tests.impl.command.test_cli import SERVE, server, stop
from tests.impl.metrics.scrapes import value


@pytest.fixture
def runtime() -> Iterator[Runtime]:
    with closing(SimulatedLoop()) as loop:
        yield simulated(loop, SimulatedNetwork())


def test_without_configuration_nothing_is_added(runtime: Runtime) -> None:
    servers: dict[str, Any] = {"broker": object}
    assert with_metrics(servers, MetricsConfig(), runtime) is servers


def test_a_server_is_watched_when_it_is_made(runtime: Runtime) -> None:
    servers = with_metrics({"namesrv": lambda _: object()}, MetricsConfig(Exporter.PROM), runtime)
    assert list(servers) == ["metrics", "namesrv"]
    metrics = servers["metrics"]({})
    assert isinstance(metrics, MetricsServer)
    assert metrics.unready() == ["namesrv: not started"]
    servers["namesrv"]({})
    assert metrics.sources["namesrv"] is not None


def test_a_process_serves_its_metrics_and_is_ready(tmp_path: Path) -> None:
    with server(*SERVE, "--store", str(tmp_path), "--metrics-port", "0") as (process, at):
        pages = {}
        for path in ("metrics", "healthz", "readyz"):
            with urllib.request.urlopen(f"http://{at['metrics']}/{path}", timeout=60) as answer:
                pages[path] = answer.read().decode()
        assert stop(process) == 0
    assert (pages["healthz"], pages["readyz"]) == ("ok\n", "ok\n")
    assert value(pages["metrics"], "mqproof_ready", server="broker") == 1
    assert value(pages["metrics"], "mqproof_namesrv_brokers") == 1
    assert value(pages["metrics"], "process_resident_memory_bytes") > 1 << 20
