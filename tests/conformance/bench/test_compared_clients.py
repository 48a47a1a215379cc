"""The loads of `bench client` run on our client, and what fails in a load is reported."""

import asyncio
import sys
from pathlib import Path

import pytest

from mqproof.conformance.bench import compared_clients, load
from mqproof.conformance.bench.broker import BenchError, ours
from mqproof.conformance.bench.compared_clients import Amount, measure, table
from mqproof.conformance.bench.load import Messages
from mqproof.conformance.hosts import client_load
from mqproof.conformance.hosts.processes import free_port

SMALL = Amount(sends=100, blocking_sends=20, consumed=100, latency_seconds=0.2)


def test_each_load_writes_its_figures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with ours(tmp_path, "ASYNC_FLUSH") as broker:
        for topic in ("many", "timed"):
            asyncio.run(load.create_topics(broker.address, Messages((topic,))))
        for kind, topic, number, figures in (
            ("send", "many", 8, 1),
            ("block", "many", 1, 1),
            ("consume", "many", 1, 1),
            ("latency", "timed", 200, 2),
        ):
            client_load.main([broker.name_server, kind, topic, "50", "16", str(number)])
            shown = capsys.readouterr().out.split()
            assert len(shown) == figures
            assert all(float(figure) > 0 for figure in shown)


def test_a_load_that_is_refused_ends() -> None:
    with pytest.raises(SystemExit, match="NO_ROUTE"):
        client_load.main([f"127.0.0.1:{free_port()}", "send", "many", "2", "16", "1"])


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("raise SystemExit('it is broken')", "it is broken"),
        ("import time; time.sleep(60)", "did not end within 0 s"),
    ],
)
def test_a_load_that_fails_or_does_not_end_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str, reason: str
) -> None:
    monkeypatch.setattr(compared_clients, "_SECONDS_MAX", 0.4 if "sleep" in program else 60.0)
    with pytest.raises(BenchError, match=reason):
        measure({"mqproof": (sys.executable, "-c", program)}, SMALL, 1, tmp_path, lambda _: None)


def test_the_cpp_client_is_named_where_it_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(compared_clients, "find_spec", lambda _: None)
    with pytest.raises(BenchError, match="pip install 'rocketmq"):
        compared_clients.cpp(tmp_path)


@pytest.mark.deep("twenty processes")
def test_every_row_is_measured(tmp_path: Path) -> None:
    stages: list[str] = []
    home = tmp_path / "home"
    home.mkdir()
    sides = {"mqproof": compared_clients.ours(), "C++": compared_clients.cpp(home)}
    result = measure(sides, SMALL, 1, tmp_path, stages.append)
    assert len(result["rows"]) == 6
    assert len(stages) == 10
    assert all(row["row"] in table(result) for row in result["rows"])
    assert list(tmp_path.iterdir()) == [home]
