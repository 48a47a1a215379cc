"""A port that forwards everything to a server, and records the frames in both directions."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from mqproof.conformance.faults.relay import Relay, Way
from mqproof.impl.remoting.command import Command, decode
from mqproof.impl.remoting.frame import read_frame, write_frame
from mqproof.impl.runtime.network import Address


@dataclass(frozen=True, slots=True)
class Passed:
    """One forwarded frame, as it was received."""

    frame: bytes
    """The bytes, including the length field."""
    command: Command
    from_server: bool


class Tap(Relay):
    """A relay that records all frames; it listens in a `with` block.

    Byte sequences in the server's frames can be replaced by others of the same length.
    """

    def __init__(self, server: Address, replace: Mapping[bytes, bytes] | None = None) -> None:
        super().__init__(server, lambda: (self._frames(False, {}), self._frames(True, self._replace)))
        self.passed: list[Passed] = []
        self._replace = dict(replace or {})
        assert all(len(old) == len(new) for old, new in self._replace.items()), (
            "a changed frame must keep its length"
        )

    def _frames(self, from_server: bool, replace: Mapping[bytes, bytes]) -> Way:
        buffer = bytearray()

        def way(received: bytes) -> Iterator[bytes]:
            buffer.extend(received)
            while (payload := read_frame(buffer)) is not None:
                frame = write_frame(payload)
                self.passed.append(Passed(frame, decode(payload), from_server))
                for old, new in replace.items():
                    frame = frame.replace(old, new)
                yield frame

        return way
