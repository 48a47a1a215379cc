"""Requests of a thread without an event loop, to a peer that answers wrongly, in part, or not at all.

See docs/explanation/client-speed.md. The peer is a socket of its own thread, so this part needs real time.
"""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from msgspec.structs import replace

from mqproof.conformance.adapters.client_calls.expectations import Expectations
from mqproof.impl.remoting.blocking_client import BlockingRemotingClient
from mqproof.impl.remoting.channel import ConnectError, ConnectionLostError, RequestTimeoutError
from mqproof.impl.remoting.command import Command, decode, encode, new_request
from mqproof.impl.remoting.frame import read_frame
from mqproof.impl.runtime.network import Address

_WAIT_S: Final = 5.0
_SHORT_S: Final = 0.1
_CODE: Final = 10

Answer = Callable[[Command], bytes]
"""Returns the bytes of the answer to a request."""


class Peer:
    """A server whose every connection answers all requests in one way, which can be changed."""

    def __init__(self) -> None:
        self.answer: Answer = _right
        self.opened = 0
        self.ended = threading.Semaphore(0)
        """Released once for each connection that ended."""
        self.received = threading.Semaphore(0)
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.address = Address("127.0.0.1", self._listening.getsockname()[1])
        self._last: socket.socket | None = None
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()

    def hang_up(self) -> None:
        """Close the last connection, and wait until that is done."""
        assert self._last is not None
        self._last.shutdown(socket.SHUT_RDWR)
        self.ended.acquire(timeout=_WAIT_S)

    def _accept(self) -> None:
        while True:
            try:
                self._last, _ = self._listening.accept()
            except OSError:  # closed
                return
            self.opened += 1
            threading.Thread(target=self._serve, args=(self._last,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        buffer = bytearray()
        with connection:
            try:
                while data := connection.recv(1 << 16):
                    buffer += data
                    while (frame := read_frame(buffer)) is not None:
                        self.received.release()
                        connection.sendall(self.answer(decode(frame)))
            except OSError:
                pass
        self.ended.release()


def _right(request: Command) -> bytes:
    return encode(request.answer(0, {"own": request.fields["own"]}, b"body", "remark"))


def _late(request: Command) -> bytes:
    """Return a request with the number of the pending one, the answer to an older one, and the answer."""
    asked = new_request(_CODE, {"own": "a request"})
    older = request.answer(0, {"own": "older"})
    others = encode(_numbered(asked, request.opaque)) + encode(_numbered(older, request.opaque - 1))
    return others + _right(request)


def _numbered(command: Command, opaque: int) -> Command:
    return replace(command, opaque=opaque)


def judge(expect: Expectations) -> None:
    with listening_peer() as peer:
        client = BlockingRemotingClient()
        _answers(expect, peer, client)
        _failures(expect, peer, client)
        client.close()
        expect.equal("a close ends the connection", True, peer.ended.acquire(timeout=_WAIT_S))
        opened = peer.opened
        expect.refused("a request after the close", ConnectError, lambda: _ask(peer, client))
        expect.equal("the connections after the close", opened, peer.opened)
        _interrupted(expect, peer)
        address = peer.address
    closed = BlockingRemotingClient()
    expect.refused(
        "a request to no server", ConnectError, lambda: closed.invoke(address, new_request(_CODE), _WAIT_S)
    )


@contextmanager
def listening_peer() -> Iterator[Peer]:
    peer = Peer()
    try:
        yield peer
    finally:
        peer.close()


def _ask(peer: Peer, client: BlockingRemotingClient, timeout_s: float = _WAIT_S) -> tuple[object, ...]:
    answer = client.invoke(peer.address, new_request(_CODE, {"own": "x"}), timeout_s)
    return answer.code, answer.fields["own"], answer.body, answer.remark


def _answers(expect: Expectations, peer: Peer, client: BlockingRemotingClient) -> None:
    right = (0, "x", b"body", "remark")
    for what, answer in (("an answer", _right), ("an answer after other frames", _late)):
        peer.answer = answer
        expect.equal(what, right, expect.accepted(what, lambda: _ask(peer, client)))
    expect.equal("the connections of two requests", 1, peer.opened)
    peer.answer = _right
    peer.hang_up()
    again = expect.accepted("a request after a lost connection", lambda: _ask(peer, client))
    expect.equal("its answer", right, again)
    expect.equal("the connections after a lost one", 2, peer.opened)


def _failures(expect: Expectations, peer: Peer, client: BlockingRemotingClient) -> None:
    """After each failure the connection is closed, and the next request has a new one."""
    failures: tuple[tuple[str, Answer, type[Exception]], ...] = (
        ("half an answer", lambda request: _right(request)[:-3], RequestTimeoutError),
        ("no answer", lambda _: b"", RequestTimeoutError),
        ("a frame that is too long", lambda _: b"\x7f\xff\xff\xff1234", ConnectionLostError),
        ("a header that is damaged", lambda _: b"\0\0\0\x08\0\0\0\x04{{{{", ConnectionLostError),
    )
    for what, answer, kind in failures:
        peer.answer = answer
        opened, began_s = peer.opened, time.monotonic()
        limit_s = _SHORT_S if kind is RequestTimeoutError else _WAIT_S
        expect.refused(what, kind, lambda limit_s=limit_s: _ask(peer, client, limit_s))  # type: ignore[misc]
        expect.equal(f"{what}: its time", True, time.monotonic() - began_s < _WAIT_S)
        expect.equal(f"{what}: the connection ends", True, peer.ended.acquire(timeout=_WAIT_S))
        peer.answer = _right
        expect.accepted(f"a request after {what}", lambda: _ask(peer, client))
        expect.equal(f"{what}: a new connection", opened + 1, peer.opened)


def _interrupted(expect: Expectations, peer: Peer) -> None:
    """An interruption from another thread ends the request that waits; later ones send nothing."""
    client = BlockingRemotingClient()
    peer.answer = lambda _: b""
    while peer.received.acquire(blocking=False):
        pass

    def interrupt() -> None:
        peer.received.acquire(timeout=_WAIT_S)
        client.interrupt()

    interrupting = threading.Thread(target=interrupt)
    interrupting.start()
    began_s = time.monotonic()
    expect.refused("a request that is interrupted", ConnectionLostError, lambda: _ask(peer, client))
    expect.equal("the time of an interrupted request", True, time.monotonic() - began_s < _WAIT_S)
    interrupting.join()
    expect.equal("its connection ends", True, peer.ended.acquire(timeout=_WAIT_S))
    opened = peer.opened
    expect.refused("a request after the interruption", ConnectError, lambda: _ask(peer, client))
    expect.equal("the connections after the interruption", opened, peer.opened)
