"""Packs parts of files into tasks."""

from collections.abc import Iterable
from typing import Protocol, TypeVar


class Part(Protocol):
    @property
    def bytes(self) -> int: ...


P = TypeVar("P", bound=Part)


def pack(parts: Iterable[P], task_bytes: int) -> list[tuple[P, ...]]:
    """Pack neighbouring parts together, so that a thousand small files do not become a thousand tasks."""
    packed: list[list[P]] = []
    room = 0
    for each in parts:
        if not packed or each.bytes > room:
            packed.append([])
            room = task_bytes
        packed[-1].append(each)
        room -= each.bytes
    return [tuple(group) for group in packed]
