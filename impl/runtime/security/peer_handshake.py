"""The handshake of two peers that share a secret: each proves that it has it, and neither sends it.

See docs/reference/protocol/replication.md, "Authentication of peers". Both classes take bytes and return
bytes; the owner of the connection transfers them. The nonces are arguments, and must never repeat.
"""

import hmac
from typing import Final

MAGIC: Final = b"MQPEER\x00\x01"
"""The first bytes of either end: the protocol and its version."""
NONCE_BYTES: Final = 32
PROOF_BYTES: Final = 32
NAME_BYTES_MAX: Final = 255
_FRONT_BYTES: Final = len(MAGIC) + NONCE_BYTES + 1


class HandshakeError(ConnectionError):
    """The peer did not prove that it has the secret. The message is one line."""


class _End:
    """The common part of both ends."""

    def __init__(self, secret: bytes, purpose: str, name: str, nonce: bytes) -> None:
        raw = name.encode()[:NAME_BYTES_MAX].decode(errors="ignore").encode()  # whole characters
        self.peer = ""
        """The peer's name, known when `is_done`."""
        self.is_done = False
        """Whether the peer has proved that it has the secret."""
        self._secret = secret
        self._purpose = purpose.encode()
        self._hello = MAGIC + nonce + bytes([len(raw)]) + raw
        self._buffer = bytearray()

    def rest(self) -> bytes:
        """Return the bytes received after the handshake."""
        rest = bytes(self._buffer)
        self._buffer.clear()
        return rest

    def _take_hello(self) -> bytes | None:
        """Remove the peer's hello from the buffer, and return it; None when more bytes are needed."""
        buffer = self._buffer
        if bytes(buffer[: len(MAGIC)]) != MAGIC[: len(buffer)]:
            raise HandshakeError("it sent no proof of the peer secret")
        if len(buffer) < _FRONT_BYTES or len(buffer) < (size := _FRONT_BYTES + buffer[_FRONT_BYTES - 1]):
            return None
        hello = bytes(buffer[:size])
        del buffer[:size]
        try:
            self.peer = hello[_FRONT_BYTES:].decode()
        except UnicodeDecodeError:
            raise HandshakeError("its name is not UTF-8 text") from None
        return hello

    def _take_proof(self, expected: bytes) -> bool:
        """Remove the peer's proof from the buffer, and compare it; False when more bytes are needed."""
        if len(self._buffer) < PROOF_BYTES:
            return False
        proof = bytes(self._buffer[:PROOF_BYTES])
        del self._buffer[:PROOF_BYTES]
        if not hmac.compare_digest(proof, expected):
            raise HandshakeError("it has another peer secret, or another broker name or group")
        return True

    def _proof(self, role: bytes, first: bytes, second: bytes) -> bytes:
        """Return the proof of one end. The role prevents that a proof is sent back to its sender."""
        parts = (role, self._purpose, first, second)
        said = b"".join(len(part).to_bytes(4, "big") + part for part in parts)
        return hmac.digest(self._secret, said, "sha256")


class Connecting(_End):
    """The end that opened the connection. It proves first."""

    _theirs: bytes | None = None

    def begin(self) -> bytes:
        """Return the first bytes to send."""
        return self._hello

    def received(self, data: bytes) -> bytes:
        """Process bytes of the peer, and return those to send. Raises HandshakeError."""
        self._buffer += data
        answer = b""
        if self._theirs is None and (hello := self._take_hello()) is not None:
            self._theirs = hello
            answer = self._proof(b"connecting", self._hello, hello)
        if self._theirs is not None:
            self.is_done = self._take_proof(self._proof(b"accepting", self._hello, self._theirs))
        return answer


class Accepting(_End):
    """The end that accepted the connection. It sends its proof only to a peer that has proved itself."""

    _theirs: bytes | None = None

    def received(self, data: bytes) -> bytes:
        """Process bytes of the peer, and return those to send. Raises HandshakeError."""
        self._buffer += data
        answer = b""
        if self._theirs is None and (hello := self._take_hello()) is not None:
            self._theirs = hello
            answer = self._hello
        if self._theirs is not None and self._take_proof(
            self._proof(b"connecting", self._theirs, self._hello)
        ):
            self.is_done = True
            answer += self._proof(b"accepting", self._theirs, self._hello)
        return answer
