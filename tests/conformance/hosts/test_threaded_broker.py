"""Tests the broker in a thread: it serves, and its processor time grows with its work."""

from pathlib import Path

from mqproof.conformance.hosts.threaded_broker import threaded_broker
from mqproof.conformance.wire.server_connection import Address, connected


def test_it_serves_and_its_processor_time_grows(tmp_path: Path) -> None:
    with threaded_broker(tmp_path / "store") as broker:
        before = broker.cpu_s()
        with connected(Address(*broker.address), 20.0):
            assert broker.cpu_s() > before
