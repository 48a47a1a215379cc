"""The tap forwards complete frames in order and records them."""

import socket
import threading

from mqproof.conformance.adapters.apache.single_request import send_request
from mqproof.conformance.adapters.apache.tap import Tap
from mqproof.impl.remoting.command import decode, encode, new_request
from mqproof.impl.remoting.frame import read_frame
from mqproof.impl.runtime.network import Address


def test_frames_are_forwarded_recorded_and_replaced() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=_answer_once, args=(server,))
        thread.start()
        with Tap(Address(*server.getsockname()), {b"here:1": b"tap:99"}) as tap:
            request = new_request(105, {"topic": "T"})
            answer = send_request(tap.address, request, 5.0)
        thread.join()
    assert answer is not None
    assert answer.body == b"it is at tap:99"
    assert [passed.command.code for passed in tap.passed] == [105, 0]
    assert tap.passed[0].frame == encode(request)
    assert tap.passed[1].command.body == b"it is at here:1"


def test_a_stopped_server_returns_no_answer() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        gone = Address(*server.getsockname())
    with Tap(gone) as tap:
        assert send_request(tap.address, new_request(105), 0.2) is None


def _answer_once(server: socket.socket) -> None:
    connection, _ = server.accept()
    with connection:
        buffer = bytearray()
        while (frame := read_frame(buffer)) is None:
            buffer += connection.recv(1 << 16)
        connection.sendall(encode(decode(frame).answer(0, body=b"it is at here:1")))
