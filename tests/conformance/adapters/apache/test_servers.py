"""Apache's servers as processes: they start, stop in either way, and restart with their data."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from mqproof.conformance.adapters.apache import servers
from mqproof.conformance.adapters.apache.servers import ApacheServer, ApacheServerError, running
from mqproof.impl.runtime.network import Address


def _server(folder: Path, script: str, is_ready: Callable[[], bool]) -> ApacheServer:
    return ApacheServer(
        "stand-in", [sys.executable, "-c", script], {}, folder, Address("127.0.0.1", 1), is_ready
    )


def test_a_server_that_exits_at_once_is_reported_with_its_log(tmp_path: Path) -> None:
    server = _server(tmp_path, "print('no such class')", lambda: False)
    with pytest.raises(ApacheServerError, match=r"stand-in did not start; see .*stand-in\.log"):
        server.start()
    assert server.log.read_text() == "no such class\n"


def test_servers_are_stopped_even_after_an_error(tmp_path: Path) -> None:
    server = _server(tmp_path, "import time; time.sleep(600)", lambda: True)
    pid = 0

    def work() -> None:
        nonlocal pid
        with running(server):
            pid = server.pid
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        work()
    assert pid > 0
    assert subprocess.run(["ps", "-p", str(pid)], capture_output=True, check=False).returncode == 1


@pytest.mark.apache
def test_a_broker_restarts_after_a_clean_exit_and_after_a_kill(release: str, tmp_path: Path) -> None:
    names = servers.name_server(release, tmp_path)
    broker = servers.broker(release, tmp_path, names.address)
    with running(names, broker):
        assert (broker.store / "abort").exists()
        broker.stop()
        assert not (broker.store / "abort").exists(), "the clean end failed: are module flags missing?"
        broker.start()
        broker.kill()
        assert (broker.store / "abort").exists()
        broker.start()
