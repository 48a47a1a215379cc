"""Makes a failing input smaller and simpler while it still fails in the same way."""

from collections.abc import Callable, Iterator
from typing import Final

from mqproof.fuzz.engine.mutate import length_fields

_SMALL: Final = 8


def minimise(data: bytes, fails: Callable[[bytes], bool], executions_max: int) -> bytes:
    """Return the smallest input found that still fails.

    Args:
        data: a failing input.
        fails: whether an input fails in the same way; it is called at most `executions_max` times.
    """
    left = executions_max
    improved = True
    while improved and left > 0:
        improved = False
        for candidate in _simpler(data):
            if left <= 0:
                break
            left -= 1
            if fails(candidate):
                data, improved = candidate, True
                break
    return data


def _simpler(data: bytes) -> Iterator[bytes]:
    """Yield simpler inputs, largest changes first: with a range removed, or with a range set to zeros.

    A removal is tried with the length fields unchanged and with the length fields corrected.
    """
    for at, end in _ranges(len(data)):
        cut = data[:at] + data[end:]
        yield cut
        if (fixed := _with_lengths(data, cut)) != cut:
            yield fixed
    for at, end in _ranges(len(data)):
        zeros = data[:at] + bytes(end - at) + data[end:]
        if zeros != data:
            yield zeros


def _ranges(size: int) -> Iterator[tuple[int, int]]:
    """Yield ranges within an input of this size: halves, quarters, ..., then all small ranges."""
    length = size
    while length > _SMALL:
        for at in range(0, size, length):
            yield at, min(at + length, size)
        length //= 2
    for length in range(min(size, _SMALL), 0, -1):
        for at in range(size - length + 1):
            yield at, at + length


def _with_lengths(before: bytes, cut: bytes) -> bytes:
    """Return the cut input with its length fields corrected, if they were right before the cut."""
    fixed = bytearray(cut)
    for at, width, slack in length_fields(before):
        value = len(cut) - at - width + slack
        if value >= 0 and at + width <= len(cut):
            fixed[at : at + width] = value.to_bytes(width, "big")
    return bytes(fixed)
