"""Tests the client of one thread: each request ends with its response or with the error that fits."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from mqproof.impl.remoting.blocking_client import BlockingRemotingClient
from mqproof.impl.remoting.channel import ConnectError, ConnectionLostError, RequestTimeoutError
from mqproof.impl.remoting.command import Command, decode, encode, new_request
from mqproof.impl.remoting.frame import read_frame
from mqproof.impl.runtime.network import Address

Serve = Callable[[socket.socket], None]


@contextmanager
def server(*connections: Serve) -> Iterator[Address]:
    """Accept connections one after the other; each function serves one, which is then closed."""

    def run() -> None:
        for serve in connections:
            peer, _ = listener.accept()
            with peer:
                serve(peer)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=run)
        thread.start()
        yield Address(*listener.getsockname())
        thread.join(30)
        assert not thread.is_alive()


def received(peer: socket.socket) -> Command:
    buffer = bytearray()
    while (frame := read_frame(buffer)) is None:
        data = peer.recv(4096)
        assert data
        buffer += data
    return decode(frame)


def answers(peer: socket.socket) -> None:
    peer.sendall(encode(received(peer).answer(0, remark="good")))


def invoke(client: BlockingRemotingClient, address: Address, timeout_s: float = 30.0) -> str | None:
    return client.invoke(address, new_request(1, body=b"x"), timeout_s).remark


def test_only_the_response_with_the_number_of_the_request_is_returned() -> None:
    def serve(peer: socket.socket) -> None:
        request = received(peer)
        other = Command(0, request.opaque + 1, flag=1, remark="of another request")
        asked = Command(2, request.opaque, remark="a request of the server")
        own = encode(asked) + encode(other) + encode(request.answer(0, remark="good"))
        peer.sendall(own[:-3])
        peer.sendall(own[-3:])
        answers(peer)

    with server(serve) as address:
        client = BlockingRemotingClient()
        assert [invoke(client, address) for _ in range(2)] == ["good", "good"]
        client.close()


def test_a_connection_that_the_server_closed_is_opened_again_before_a_request() -> None:
    closed = threading.Event()

    def second(peer: socket.socket) -> None:
        closed.set()
        answers(peer)

    with server(answers, second) as address:
        client = BlockingRemotingClient()
        assert invoke(client, address) == "good"
        connection = client._connections[address]
        while connection.is_quiet:
            pass
        assert invoke(client, address) == "good"
        assert closed.is_set()
        client.close()


def test_silence_is_a_time_out_and_the_next_request_has_a_new_connection() -> None:
    released = threading.Event()

    def silent(peer: socket.socket) -> None:
        received(peer)
        released.wait(30)

    with server(silent, answers) as address:
        client = BlockingRemotingClient()
        with pytest.raises(RequestTimeoutError, match=r"no answer from .* within 30 ms"):
            invoke(client, address, 0.03)
        released.set()
        assert invoke(client, address) == "good"
        client.close()


@pytest.mark.parametrize("last_bytes", [b"", b"\0\0", b"\xff\xff\xff\xff", b"\0\0\0\4\0\0\0\0"])
def test_a_connection_that_ends_or_breaks_the_protocol_is_lost(last_bytes: bytes) -> None:
    def serve(peer: socket.socket) -> None:
        received(peer)
        peer.sendall(last_bytes)

    with server(serve, answers) as address:
        client = BlockingRemotingClient()
        with pytest.raises(ConnectionLostError, match=f"the connection to {address} was lost"):
            invoke(client, address)
        assert invoke(client, address) == "good"
        client.close()


def test_without_a_connection_nothing_was_sent() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = Address(*listener.getsockname())
        client = BlockingRemotingClient()
        with pytest.raises(ConnectError, match=r"no connection to .* within 0 ms"):
            invoke(client, address, 0.0)
    with pytest.raises(ConnectError, match=f"no connection to {address}: Connection refused"):
        invoke(client, address)
    with pytest.raises(ValueError, match="a header of"):
        client.invoke(address, new_request(1, {"a": "x" * (2 << 20)}), 1.0)
    client.close()
    with pytest.raises(ConnectError, match="the client is closed"):
        invoke(client, address)


def test_an_interrupt_loses_the_request_in_progress_and_refuses_the_next() -> None:
    client = BlockingRemotingClient()

    def serve(peer: socket.socket) -> None:
        received(peer)
        client.interrupt()
        assert peer.recv(1) == b""

    with server(serve) as address:
        with pytest.raises(ConnectionLostError):
            invoke(client, address)
        with pytest.raises(ConnectError, match="the client is closed"):
            invoke(client, address)
    client.close()
