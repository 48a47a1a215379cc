"""A broker's memory under peers that ask for much and read nothing."""

import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from conformance.cluster import Cluster, cluster
from impl.remoting import headers
from impl.remoting.codes import RequestCode
from impl.remoting.command import decode, encode, new_request
from impl.remoting.frame import read_frame
from impl.remoting.headers import PullRequest, SendRequest

SEND = headers.write(SendRequest("PG", "T", "TBW102", 4, 0, 0, 1, 0))
MIB = 1 << 20


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Cluster]:
    with cluster(tmp_path, "ASYNC_FLUSH") as made:
        made.start_name_server()
        made.start_broker()
        yield made


def connected(made: Cluster) -> socket.socket:
    return socket.create_connection(("127.0.0.1", made.broker_port), timeout=10)


def memory_mib(made: Cluster) -> int:
    status = Path(f"/proc/{made.processes['broker'].pid}/status").read_text(encoding="ascii")
    (line,) = [line for line in status.splitlines() if line.startswith("VmRSS")]
    return int(line.split()[1]) // 1024


def pulls(offset: int, hold_ms: int, count: int) -> bytes:
    fields = headers.write(PullRequest("G", "T", 0, offset, 32, 6, 0, hold_ms, 0, "*"))
    return b"".join(encode(new_request(RequestCode.PULL_MESSAGE, fields)) for _ in range(count))


def send(peer: socket.socket, body: bytes) -> int:
    peer.sendall(encode(new_request(RequestCode.SEND_MESSAGE, SEND, body)))
    buffer = bytearray()
    while (frame := read_frame(buffer)) is None:
        buffer += peer.recv(1 << 16)
    return decode(frame).code


def highest_mib(made: Cluster, seconds: float) -> int:
    """Memory at its highest while that time passes."""
    found, deadline = 0, time.monotonic() + seconds
    while time.monotonic() < deadline:
        found = max(found, memory_mib(made))
        time.sleep(0.05)
    return found


def test_pulls_of_a_peer_that_reads_nothing_cost_no_answers(broker: Cluster) -> None:
    with connected(broker) as producer, connected(broker) as slow, connected(broker) as greedy:
        assert send(producer, b"x") == 0
        slow.sendall(pulls(1, 30_000, 400))
        time.sleep(0.5)
        before = memory_mib(broker)
        assert send(producer, bytes(MIB)) == 0  # wakes all of them
        greedy.sendall(pulls(1, 0, 400))
        # Each answer has a mebibyte, and there would be 800.
        assert highest_mib(broker, 1.5) - before < 100
        assert send(producer, b"x") == 0
