"""Communication with the Java process, replaced here by a program with fixed answers."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mqproof.conformance.adapters.clients.driver_client import DriverClient, DriverError

_STAND_IN = """
import sys
for line in sys.stdin:
    word = line.split()[0]
    print("a library says something")
    if word == "send":
        print('{"event":"sent","status":"SEND_OK"}')
        if line.split()[2] == "Full":
            print('{"event":"not-sent","message":"no room"}')
    if word == "pull":
        print('{"event":"message","consumer":"pull","body":"0"}')
        print('{"event":"queue-end","next":1}')
    if word == "close":
        print('{"event":"error","message":"no such consumer"}')
    print('{"event":"done"}', flush=True)
"""


@contextmanager
def _client(tmp_path: Path) -> Iterator[DriverClient]:
    command = [sys.executable, "-c", _STAND_IN]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        client = DriverClient(process, tmp_path / "log")
        try:
            yield client
        finally:
            client.end()


def test_events_are_parsed_by_kind(tmp_path: Path) -> None:
    with _client(tmp_path) as client:
        assert client.send("T", 1) == [{"event": "sent", "status": "SEND_OK"}]
        assert client.pull("T", "G") == [{"event": "queue-end", "next": 1}]
        assert [message["body"] for message in client.wait_for(1, "pull")] == ["0"]


def test_failed_sends_and_missing_messages_are_reported(tmp_path: Path) -> None:
    with _client(tmp_path) as client:
        with pytest.raises(DriverError, match="1 of 2 sends failed: no room"):
            client.send("Full", 2)
        with pytest.raises(DriverError, match="no such consumer"):
            client.close("unknown")
        with pytest.raises(DriverError, match=r"unknown received 0 of 1 messages; see .*log"):
            client.wait_for(1, "unknown", seconds_max=0.05)
