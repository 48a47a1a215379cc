"""Mutates bytes the way faulty peers, bit rot and attackers do.

All randomness comes from the given Random.
"""

import itertools
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Final

_INTERESTING: Final = (0, 1, 2, 3, 4, 7, 8, 15, 16, 31, 32, 63, 64, 127, 128, 255, 256, 1000, 1024, 4096)
_EDGES: Final = tuple((1 << bits) - 1 for bits in (7, 8, 15, 16, 24, 31, 32, 63)) + tuple(
    1 << bits for bits in (7, 15, 16, 24, 31, 63)
)
_WIDTHS: Final = (1, 2, 4, 8)
_STACKED_MAX: Final = 6
_FRONT_BYTES: Final = 48
_HEADER_BYTES: Final = 16
"""The number of leading bytes that are searched for length fields."""


class Mutator:
    """Makes new inputs from existing ones."""

    def __init__(self, random: Random, dictionary: Sequence[bytes], input_bytes_max: int) -> None:
        self._random = random
        self._dictionary = dictionary
        self._input_bytes_max = input_bytes_max

    def mutate(self, data: bytes, other: bytes) -> bytes:
        """Return a changed copy of `data`; ranges of `other`, another input, may be copied into it.

        Half of the time, length fields that were right before are corrected afterwards. Otherwise hardly any
        input of another size would pass the first check.
        """
        buffer = bytearray(data)
        fields = length_fields(data) if self._random.random() < 0.5 else []
        for _ in range(self._random.randint(1, self._random.randint(1, _STACKED_MAX))):
            self._random.choice(_MUTATIONS)(self, buffer, other)
        del buffer[self._input_bytes_max :]
        for at, width, slack in fields:
            if at + width <= len(buffer):
                value = max(0, len(buffer) - at - width + slack)
                buffer[at : at + width] = (value % (1 << 8 * width)).to_bytes(width, "big")
        return bytes(buffer)

    def _flip_bit(self, buffer: bytearray, _other: bytes) -> None:
        if buffer:
            buffer[self._at(buffer)] ^= 1 << self._random.randrange(8)

    def _set_byte(self, buffer: bytearray, _other: bytes) -> None:
        if buffer:
            buffer[self._at(buffer)] = self._random.randrange(256)

    def _set_number(self, buffer: bytearray, _other: bytes) -> None:
        """Write an interesting number, or one near the length of the rest, in some width and byte order."""
        width = self._random.choice(_WIDTHS)
        if len(buffer) < width:
            return
        at = self._random.randrange(len(buffer) - width + 1)
        rest = len(buffer) - at - width
        value = self._random.choice((self._interesting(), rest + self._random.randint(-2, 2), -1))
        self._write(buffer, at, width, value)

    def _add_number(self, buffer: bytearray, _other: bytes) -> None:
        width = self._random.choice(_WIDTHS)
        if len(buffer) < width:
            return
        at = self._random.randrange(len(buffer) - width + 1)
        value = int.from_bytes(buffer[at : at + width], "big")
        self._write(buffer, at, width, value + self._random.choice((-1, 1)) * self._random.randint(1, 35))

    def _insert(self, buffer: bytearray, _other: bytes) -> None:
        at = self._random.randrange(len(buffer) + 1)
        if self._random.random() < 0.5:
            buffer[at:at] = self._random.randbytes(self._size(64))
        else:
            buffer[at:at] = bytes([self._random.choice((0, 0xFF, self._random.randrange(256)))]) * self._size(
                64
            )

    def _delete(self, buffer: bytearray, _other: bytes) -> None:
        if buffer:
            at = self._at(buffer)
            del buffer[at : at + self._size(len(buffer) - at)]

    def _truncate(self, buffer: bytearray, _other: bytes) -> None:
        del buffer[self._random.randrange(len(buffer) + 1) :]

    def _repeat(self, buffer: bytearray, _other: bytes) -> None:
        if buffer:
            at = self._at(buffer)
            chunk = buffer[at : at + self._size(len(buffer) - at)]
            to = self._random.randrange(len(buffer) + 1)
            buffer[to:to] = chunk * self._random.choice((1, 1, 2, 8))

    def _move(self, buffer: bytearray, _other: bytes) -> None:
        if buffer:
            at = self._at(buffer)
            chunk = buffer[at : at + self._size(len(buffer) - at)]
            to = self._at(buffer)
            buffer[to : to + len(chunk)] = chunk

    def _use_word(self, buffer: bytearray, _other: bytes) -> None:
        """Write a constant of the watched code over the input, or insert it."""
        if self._dictionary:
            word = self._random.choice(self._dictionary)
            at = self._random.randrange(len(buffer) + 1)
            buffer[at : at + (len(word) if self._random.random() < 0.5 else 0)] = word

    def _splice(self, buffer: bytearray, other: bytes) -> None:
        """Join the front of this input and the back of another, or insert a range of the other."""
        at = self._random.randrange(len(buffer) + 1)
        start = self._random.randrange(len(other) + 1)
        if self._random.random() < 0.5:
            buffer[at:] = other[start:]
        else:
            buffer[at:at] = (
                other[start : start + self._size(len(other) - start)] if start < len(other) else b""
            )

    def _resize_field(self, buffer: bytearray, other: bytes) -> None:
        """Lengthen or shorten the bytes after a number that may be their length, and update the number."""
        width = self._random.choice((4, 4, 2, 1))
        starts = range(len(buffer) - width + 1)
        fields = [at for at in starts if self._number(buffer, at, width) <= len(buffer) - at - width]
        if not fields:
            return
        at = self._random.choice(fields)
        size = self._number(buffer, at, width)
        content = buffer[at + width : at + width + size]
        self._random.choice((Mutator._insert, Mutator._delete, Mutator._use_word))(self, content, other)
        buffer[at + width : at + width + size] = content
        buffer[at : at + width] = (len(content) % (1 << 8 * width)).to_bytes(width, "big")

    def _number(self, buffer: bytearray, at: int, width: int) -> int:
        return int.from_bytes(buffer[at : at + width], "big")

    def _at(self, buffer: bytearray) -> int:
        return self._random.randrange(len(buffer))

    def _size(self, most: int) -> int:
        """Return a number from 1 to `most`, usually a small one."""
        return self._random.randint(1, self._random.randint(1, max(1, most)))

    def _interesting(self) -> int:
        return self._random.choice(self._random.choice((_INTERESTING, _EDGES)))

    def _write(self, buffer: bytearray, at: int, width: int, value: int) -> None:
        order = "big" if self._random.random() < 0.75 else "little"
        buffer[at : at + width] = (value % (1 << 8 * width)).to_bytes(width, order)  # type: ignore[arg-type]


_MUTATIONS: Final[tuple[Callable[[Mutator, bytearray, bytes], None], ...]] = (
    Mutator._flip_bit,
    Mutator._set_byte,
    Mutator._set_byte,
    Mutator._set_number,
    Mutator._add_number,
    Mutator._insert,
    Mutator._delete,
    Mutator._truncate,
    Mutator._repeat,
    Mutator._move,
    Mutator._use_word,
    Mutator._splice,
    Mutator._resize_field,
    Mutator._resize_field,
)


def systematic(data: bytes, dictionary: Sequence[bytes]) -> Iterator[bytes]:
    """Yield the input with every word of the dictionary at every front position: written over, then inserted.

    If a number before the position may be the length of the bytes around it, it is increased by the word's
    size. Random mutation would need thousands of attempts to put the one right word in the one right place.
    """
    positions = range(min(len(data), _FRONT_BYTES) + 1)
    for at, word in itertools.product(positions, dictionary):
        yield data[:at] + word + data[at + len(word) :]
    for at, word in itertools.product(positions, dictionary):
        yield data[:at] + word + data[at:]
        for field in range(max(0, at - _FRONT_BYTES), at - 3):
            size = int.from_bytes(data[field : field + 4], "big")
            if at <= field + 4 + size <= len(data):
                grown = (size + len(word)).to_bytes(4, "big")
                yield data[:field] + grown + data[field + 4 : at] + word + data[at:]


def length_fields(data: bytes) -> list[tuple[int, int, int]]:
    """Return the big-endian numbers in the first 16 bytes that look like the length of the rest of the input.

    Each is (position, width in bytes, slack): the number equals the length of the bytes after it, plus slack.
    The slack is 0, or the width if the number counts itself.
    """
    fields = []
    for width in (4, 2):
        for at in range(min(len(data) - width + 1, _HEADER_BYTES)):
            value = int.from_bytes(data[at : at + width], "big")
            rest = len(data) - at - width
            if value == rest or (value and value == rest + width):
                fields.append((at, width, value - rest))
    return fields
