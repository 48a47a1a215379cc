"""What a filter server makes of a function's decisions about messages. It needs no sandbox.

A failure of a function is no decision: a response ends before the message at which it occurs. See
docs/reference/protocol/filters.md, "Filter servers".
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

from mqproof.impl.client.connection.records import read_each
from mqproof.impl.client.messages.compression import inflated
from mqproof.impl.remoting.message import StoredMessage, encode_properties

_BODIES_BYTES_MAX: Final = 64 << 20
"""The most bytes that the bodies of one response may have together after decompression."""


class RunError(Exception):
    """A function failed at a message: a trap, too many instructions, or an invalid address."""


class Text(NamedTuple):
    """What a function sees of a message."""

    properties: bytes
    """Name, U+0001, value, U+0002, and so on, in UTF-8."""
    body: bytes


def decided(messages: Iterable[Text], matches: Callable[[Text], bool]) -> list[bool]:
    """Return for each message whether it is selected.

    The list ends before a message at which `matches` raises RunError; if that is the first one, it is raised.
    """
    found: list[bool] = []
    for message in messages:
        try:
            found.append(matches(message))
        except RunError:
            if found:
                return found
            raise
    return found


def selected(body: bytes, select: Callable[[Iterable[Text]], list[bool]]) -> tuple[list[bytes], int | None]:
    """Return the selected records of a response, and the queue offset of a message that was not examined.

    The function failed at that message, but not at the ones before it.

    Raises:
        RunError: it failed at the first message.
        ValueError: the body of the response is malformed or too large.
    """
    records = list(_records(body))
    found = select(Text(_properties(stored), stored.message.body) for _, stored in records)
    kept = [data for (data, _), is_wanted in zip(records, found, strict=False) if is_wanted]
    rest = records[len(found) :]
    return kept, rest[0][1].queue_offset if rest else None


def _records(body: bytes) -> Iterator[tuple[bytes, StoredMessage]]:
    """Yield each record with its message, whose body is decompressed."""
    size = 0
    for data, stored in read_each(body):
        message = inflated(stored)
        size += len(message.message.body)
        if size > _BODIES_BYTES_MAX:
            raise ValueError(f"more than {_BODIES_BYTES_MAX} bytes when decompressed")
        yield data, message


def _properties(stored: StoredMessage) -> bytes:
    return encode_properties(stored.message.properties).encode()
