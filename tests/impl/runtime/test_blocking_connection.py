"""Tests a connection without an event loop: deadlines, the end of the peer, an interrupt."""

import socket
import threading
from collections.abc import Iterator

import pytest

from mqproof.impl.runtime.blocking_connection import BlockingConnection, is_ip_address, monotonic_s
from mqproof.impl.runtime.network import Address


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


def connected(listener: socket.socket) -> tuple[BlockingConnection, socket.socket]:
    connection = BlockingConnection(Address(*listener.getsockname()), monotonic_s() + 30)
    return connection, listener.accept()[0]


def test_bytes_go_both_ways_until_the_peer_closes(listener: socket.socket) -> None:
    connection, peer = connected(listener)
    connection.send(b"ab", monotonic_s() + 30)
    assert peer.recv(10) == b"ab"
    assert connection.is_quiet
    peer.sendall(b"cd")
    assert connection.receive(monotonic_s() + 30) == b"cd"
    peer.close()
    with pytest.raises(ConnectionResetError, match="the peer has closed"):
        connection.receive(monotonic_s() + 30)
    connection.close()


def test_bytes_to_receive_and_the_end_of_the_peer_are_noticed(listener: socket.socket) -> None:
    for last_bytes in (b"x", b""):
        connection, peer = connected(listener)
        with peer:
            peer.sendall(last_bytes)
        until_s = monotonic_s() + 30
        while connection.is_quiet:
            assert monotonic_s() < until_s
        connection.close()


def test_every_wait_ends_at_its_deadline(listener: socket.socket) -> None:
    connection, peer = connected(listener)
    with pytest.raises(TimeoutError):
        connection.receive(monotonic_s() + 0.02)
    with pytest.raises(TimeoutError, match="the time limit has passed"):
        connection.receive(monotonic_s())
    with pytest.raises(TimeoutError):
        connection.send(bytes(32 << 20), monotonic_s() + 0.05)
    with pytest.raises(TimeoutError):
        BlockingConnection(Address(*listener.getsockname()), monotonic_s())
    connection.close()
    peer.close()


def test_an_interrupt_ends_the_wait_of_another_thread(listener: socket.socket) -> None:
    connection, peer = connected(listener)
    threading.Timer(0.02, connection.interrupt).start()
    with pytest.raises(ConnectionResetError):
        connection.receive(monotonic_s() + 30)
    connection.close()
    connection.interrupt()  # does nothing
    peer.close()


@pytest.mark.parametrize(
    ("host", "expected"), [("127.0.0.1", True), ("::1", True), ("localhost", False), ("a\0b", False)]
)
def test_names_are_distinguished_from_addresses(host: str, *, expected: bool) -> None:
    assert is_ip_address(host) is expected
