"""Segments written by hand, and the released brokers' directories."""

import tarfile
from pathlib import Path

from impl.message import Message
from impl.store import record

GOLDEN = Path(__file__).parents[2] / "impl" / "store" / "golden"
BASE = 16384
"""Commit offset of the segment's first byte."""


def golden(name: str, folder: Path) -> Path:
    with tarfile.open(GOLDEN / f"{name}.tar.xz") as archive:
        archive.extractall(folder / name, filter="data")
    return folder / name


def message(number: int, **properties: str) -> Message:
    return Message(
        "T" * (1 + number % 200),  # some too long for version 1
        b"b" * (number * 7 % 90),
        {"UNIQ_KEY": f"m_{number}", "KEYS": "k", "TAGS": "TagA", **properties},
        number % 3,
        born_host=("::1", 5) if number % 5 == 0 else ("10.0.0.1", 6),
        store_host=("fe80::2", 7) if number % 7 == 0 else ("10.0.0.2", 8),
        born_timestamp_ms=1_700_000_000_000 + number,
    )


def placed(one: Message, position: int, queue_offset: int = 0) -> bytes:
    draft = record.encode(one)
    record.place(draft, queue_offset, position, 1_700_000_000_500)
    return bytes(draft)


def segment(messages: list[Message], size: int | None = None, *, full: bool = False) -> bytes:
    """The records one after the other, then a filler or preallocated zeros up to `size`."""
    data = b""
    for number, one in enumerate(messages):
        data += placed(one, BASE + len(data), number)
    if size is None:
        return data
    return (data + record.filler(size - len(data)) if full else data).ljust(size, b"\0")
