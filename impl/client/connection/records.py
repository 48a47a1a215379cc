"""Stored messages as brokers send them. See docs/reference/protocol/storing.md, "Commit log record"."""

from collections.abc import Iterator

from mqproof.impl.client.messages.compression import inflated
from mqproof.impl.remoting.message import StoredMessage
from mqproof.impl.store.files import record


def read_records(body: bytes) -> Iterator[StoredMessage]:
    """Yield the consecutive messages in the body of a pull response. Raises ValueError for a bad record."""
    at = 0
    while at < len(body):
        size, _ = record.peek(body[at : at + record.FILLER_BYTES])
        if not record.SIZE_MIN <= size <= len(body) - at:
            raise ValueError(f"a record of {size} bytes in a body with {len(body) - at} left")
        yield inflated(record.decode(body[at : at + size]))
        at += size
