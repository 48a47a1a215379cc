"""A connection that sends frames of the wire suite's own codec, and keeps what arrives."""

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from mqproof.conformance.engine.targets import TargetError
from mqproof.conformance.wire.frames import ONEWAY, RESPONSE, Frame, MalformedError, encode, take
from mqproof.impl.runtime.network import Address, Connection, Network

_TIMEOUT_S: Final = 60.0


class RawClient:
    """One connection. Its calls raise TargetError if the connection ends, or no answer arrives."""

    def __init__(self, server: Address) -> None:
        self.server = server
        self.pushed: list[Frame] = []
        """The requests of the server, in their order."""
        self.is_closed = False
        self._connection: Connection | None = None
        self._waiting: dict[int, asyncio.Future[Frame]] = {}
        self._opaque = 100
        self._buffer = bytearray()

    async def open(self, network: Network) -> "RawClient":
        self._connection = await network.connect(self.server, self._accept)
        return self

    def _accept(self, connection: Connection) -> "RawClient":
        self._connection = connection
        return self

    @property
    def address(self) -> str:
        """The address of this end."""
        assert self._connection is not None, "call open first"
        return str(self._connection.local)

    def put(self, code: int, fields: Mapping[str, str], body: bytes = b"", **of_frame: Any) -> "Answer":
        """Send a request; return its answer as a future."""
        self._opaque += 1
        answer: Answer = asyncio.get_running_loop().create_future()
        self._waiting[self._opaque] = answer
        self.write(encode(Frame(code, self._opaque, fields=fields, body=body, **of_frame)))
        return answer

    async def request(
        self, code: int, fields: Mapping[str, str], body: bytes = b"", **of_frame: Any
    ) -> Frame:
        """Send a request and wait for its answer. `of_frame`: other members of the frame."""
        answer = self.put(code, fields, body, **of_frame)
        try:
            async with asyncio.timeout(_TIMEOUT_S):
                return await answer
        except TimeoutError:
            text = f"{self.server}: request {code} is not answered in {_TIMEOUT_S:.0f} s"
            raise TargetError(text) from None

    def oneway(self, code: int, fields: Mapping[str, str], body: bytes = b"") -> None:
        self._opaque += 1
        self.write(encode(Frame(code, self._opaque, ONEWAY, fields, body)))

    def reply(self, request: Frame, code: int = 0, body: bytes = b"") -> None:
        """Answer a request of the server."""
        self.write(encode(Frame(code, request.opaque, RESPONSE, body=body)))

    def write(self, data: bytes) -> None:
        assert self._connection is not None, "call open first"
        self._connection.write(data)

    def expect(self, opaque: int) -> "Answer":
        """Return the answer to a request that the caller writes itself."""
        answer: Answer = asyncio.get_running_loop().create_future()
        self._waiting[opaque] = answer
        return answer

    def stop_taking(self, unsent_bytes: int) -> None:
        """Behave as a peer that does not read: the server has so many bytes that it could not send."""
        end: Any = self._connection
        end.peer.unsent_bytes = unsent_bytes
        end.peer.process_hears(end.peer.receiver.write_paused)

    def take_again(self) -> None:
        """Read everything."""
        end: Any = self._connection
        end.peer.unsent_bytes = 0
        end.peer.process_hears(end.peer.receiver.write_resumed)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()

    # The receiver of the connection

    def received(self, data: bytes) -> None:
        self._buffer += data
        try:
            while frame := take(self._buffer):
                if not frame.is_response:
                    self.pushed.append(frame)
                elif waiting := self._waiting.pop(frame.opaque, None):
                    waiting.set_result(frame)
        except MalformedError as error:
            self._fail(str(error))

    def write_paused(self) -> None:
        pass

    def write_resumed(self) -> None:
        pass

    def closed(self) -> None:
        self.is_closed = True
        self._fail("the connection is closed")

    def _fail(self, why: str) -> None:
        waiting, self._waiting = self._waiting, {}
        for each in waiting.values():
            if not each.done():
                each.set_exception(TargetError(f"{self.server}: {why}"))


Answer = asyncio.Future[Frame]
