"""Tests the handshake of two peers: without a network, byte by byte, and against every change of a byte."""

import hashlib
import hmac
from contextlib import suppress

import pytest

from mqproof.impl.runtime.security.peer_handshake import MAGIC, Accepting, Connecting, HandshakeError

SECRET = b"0123456789abcdef"
ONE, TWO = b"\x01" * 32, b"\x02" * 32


def _ends(secret: bytes = SECRET, purpose: str = "group g", name: str = "n1") -> tuple[Connecting, Accepting]:
    return Connecting(secret, purpose, name, ONE), Accepting(SECRET, "group g", "n0", TWO)


def _talk(connecting: Connecting, accepting: Accepting) -> None:
    """Exchange bytes until neither end sends any."""
    to_accepting, to_connecting = connecting.begin(), b""
    while to_accepting or to_connecting:
        to_connecting += accepting.received(to_accepting)
        to_accepting = connecting.received(to_connecting)
        to_connecting = b""


def test_two_ends_with_one_secret_prove_themselves_and_report_their_names() -> None:
    connecting, accepting = _ends()
    _talk(connecting, accepting)
    assert (connecting.is_done, accepting.is_done) == (True, True)
    assert (connecting.peer, accepting.peer) == ("n0", "n1")


def test_the_bytes_are_those_of_the_protocol_chapter() -> None:
    connecting, accepting = _ends()
    hello, answer = MAGIC + ONE + b"\x02n1", MAGIC + TWO + b"\x02n0"
    assert connecting.begin() == hello
    assert accepting.received(hello) == answer
    parts = [b"group g", hello, answer]

    def proof(role: bytes) -> bytes:
        text = b"".join(len(part).to_bytes(4, "big") + part for part in [role, *parts])
        return hmac.new(SECRET, text, hashlib.sha256).digest()

    assert connecting.received(answer) == proof(b"connecting")
    assert accepting.received(proof(b"connecting")) == proof(b"accepting")
    assert connecting.received(proof(b"accepting")) == b""


def test_single_bytes_and_bytes_after_the_handshake_are_accepted() -> None:
    connecting, accepting = _ends()
    answers = b"".join(accepting.received(bytes([byte])) for byte in connecting.begin())
    proof = b"".join(connecting.received(bytes([byte])) for byte in answers)
    answer = accepting.received(proof + b"more")
    assert accepting.rest() == b"more"
    connecting.received(answer + b"and more")
    assert connecting.rest() == b"and more"


@pytest.mark.parametrize(
    ("secret", "purpose"),
    [(b"another secret 16", "group g"), (SECRET, "group h"), (SECRET, "replication of g")],
)
def test_another_secret_or_purpose_is_refused(secret: bytes, purpose: str) -> None:
    connecting, accepting = _ends(secret, purpose)
    with pytest.raises(HandshakeError, match="another peer secret"):
        _talk(connecting, accepting)
    assert not accepting.is_done
    assert not connecting.is_done


def test_an_accepting_end_that_does_not_know_the_secret_proves_nothing() -> None:
    connecting = Connecting(SECRET, "group g", "n1", ONE)
    connecting.begin()
    with pytest.raises(HandshakeError, match="another peer secret"):
        connecting.received(MAGIC + TWO + b"\x02n0" + bytes(32))


def test_a_proof_cannot_be_sent_back_or_used_again() -> None:
    connecting, accepting = _ends()
    answer = accepting.received(connecting.begin())
    proof = connecting.received(answer)
    with pytest.raises(HandshakeError):
        connecting.received(proof)  # its own proof, sent back
    later = Accepting(SECRET, "group g", "n0", b"\x03" * 32)
    later.received(connecting.begin())
    with pytest.raises(HandshakeError):
        later.received(proof)  # the proof of an earlier connection


@pytest.mark.parametrize("place", range(len(MAGIC) + 32 + 3 + 32))
def test_a_changed_byte_is_never_accepted(place: int) -> None:
    connecting, accepting = _ends()
    hello = connecting.begin()
    said = hello + connecting.received(_ends()[1].received(hello))
    spoilt = bytearray(said)
    spoilt[place] ^= 1
    with suppress(HandshakeError):
        accepting.received(bytes(spoilt))
    assert not accepting.is_done


@pytest.mark.parametrize("said", [b"\0" * 8, b"\0\0\0\x10{}", b"GET / HTTP/1.1", MAGIC[:-1] + b"\x02"])
def test_other_protocols_are_refused_at_their_first_bytes(said: bytes) -> None:
    _, accepting = _ends()
    with pytest.raises(HandshakeError, match="no proof"):
        accepting.received(said)


def test_a_name_that_is_not_text_is_refused() -> None:
    _, accepting = _ends()
    with pytest.raises(HandshakeError, match="UTF-8"):
        accepting.received(MAGIC + ONE + b"\x01\xff")


def test_a_long_name_is_cut_between_characters() -> None:
    connecting, accepting = _ends(name="n" + "é" * 200)
    _talk(connecting, accepting)
    assert accepting.peer == "n" + "é" * 127
