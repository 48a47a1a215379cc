"""Compiled building blocks for loops over the rows of a log: columns, texts, hashes.

In SQL and numpy, every step reads and writes whole columns in memory. In a loop, a row stays in the
processor's registers, at a fifth of the cost. Only tasks load this module: loading takes half a second.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, Literal, NamedTuple, TypeVar, cast

import numba
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from mqproof.spark_audit.scan.loop_cache import LOCATORS

_Loop = TypeVar("_Loop", bound=Callable[..., Any])

Ints = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int32]
"""Dictionary codes of texts."""
Hashes = npt.NDArray[np.uint64]
Flags = npt.NDArray[np.bool_]
Hash = np.uint64

NONE: Final = -1
"""Stands for a number that is missing."""
MOST: Final = np.iinfo(np.int64).max

SEED: Final = Hash(0x9E3779B97F4A7C15)
"""Initial state of a hash; with a state of 0, the hash of nothing would be 0."""
_BYTE: Final = Hash(8)
_ONE: Final = Hash(1)


def compiled(loop: _Loop, *, inline: Literal["never", "always"] = "never") -> _Loop:
    """Compile a loop when it is first called; numba caches the machine code for other processes."""
    try:
        with _locators(LOCATORS):
            result: Any = numba.njit(cache=True, nogil=True, inline=inline)(loop)
    except RuntimeError:
        # No cache folder is writable: each process compiles its own.
        result = numba.njit(nogil=True, inline=inline)(loop)
    return cast(_Loop, result)


@contextmanager
def _locators(names: str) -> Iterator[None]:
    """Apply our cache locators to our own loops only."""
    settings: Any = numba.config
    others, settings.CACHE_LOCATOR_CLASSES = settings.CACHE_LOCATOR_CLASSES, names
    try:
        yield
    finally:
        settings.CACHE_LOCATOR_CLASSES = others


def inlined(part: _Loop) -> _Loop:
    """Compile a function that is inlined into loops.

    A call would count column references for every row.
    """
    return compiled(part, inline="always")


class Texts(NamedTuple):
    offsets: npt.NDArray[np.int32]
    """Offset of each text, and the end of the last."""
    data: npt.NDArray[np.uint8]


class Numbers(NamedTuple):
    values: npt.NDArray[np.int64]
    is_present: Flags


def is_present(column: pa.Array) -> Flags:
    return np.asarray(column.is_valid()) if column.null_count else np.ones(len(column), np.bool_)


def texts(column: pa.StringArray) -> Texts:
    _, offsets, data = column.buffers()
    return Texts(
        np.frombuffer(offsets or bytes(4), np.int32, len(column) + 1, column.offset * 4),
        np.frombuffer(data or b"", np.uint8),
    )


def numbers(column: pa.Array) -> Numbers:
    wide = column.cast(pa.int64())
    values = np.frombuffer(wide.buffers()[1], np.int64, len(wide), wide.offset * 8)
    return Numbers(values, is_present(wide))


def codes(column: pa.DictionaryArray) -> Codes:
    """Return the dictionary code of each row's text.

    A missing text has the code NONE, which selects the last entry of `meanings`.
    """
    found: Codes = column.indices.fill_null(NONE).to_numpy()
    return found


def meanings(column: pa.DictionaryArray, of: Callable[[str | None], int]) -> npt.NDArray[Any]:
    """Return the value of `of` for each text of the dictionary, by code.

    The last entry is for a missing text.
    """
    return np.array([of(text) for text in (*column.dictionary.to_pylist(), None)])


def number(text: str | None) -> int:
    """Return the hash of a text as a non-negative number."""
    return int(hash_at(*texts(pa.array([text], pa.string())), 0) >> _ONE)


@inlined
def slots_for(count: int) -> Codes:
    """Return an empty hash table for at most `count` keys. A slot holds the number of a key, from 1, or 0."""
    slots = 2
    while slots < 2 * count:
        slots *= 2
    return np.zeros(slots, np.int32)


@inlined
def slot_of(slots: Codes, keys: Hashes, key: Hash) -> Hash:
    """Return the slot of a key, or the slot to store it in; `keys` are in the order of their numbers."""
    last = Hash(len(slots) - 1)
    slot = key & last
    while slots[slot] and keys[slots[slot] - 1] != key:
        slot = (slot + _ONE) & last
    return slot


@inlined
def value(values: Ints, is_present: Flags, row: int) -> int:
    return values[row] if is_present[row] else NONE


@inlined
def hash_of(offsets: npt.NDArray[np.int32], data: npt.NDArray[np.uint8], row: int) -> Hash:
    return hash_between(data, Hash(offsets[row]), Hash(offsets[row + 1]))


@inlined
def hash_of_first(most: int, offsets: npt.NDArray[np.int32], data: npt.NDArray[np.uint8], row: int) -> Hash:
    """Return the hash of a text's first `most` bytes, or of all of them if it has fewer."""
    begin, wanted = Hash(offsets[row]), Hash(most)
    size = Hash(offsets[row + 1]) - begin
    return hash_between(data, begin, begin + (size if size < wanted else wanted))


@inlined
def hash_between(data: npt.NDArray[np.uint8], at: Hash, end: Hash) -> Hash:
    found = mixed(SEED, end - at)
    if end - at < _BYTE:
        rest = Hash(0)
        while at < end:
            rest = (rest << _BYTE) | Hash(data[at])
            at += _ONE
        return mixed(found, rest)
    while at + _BYTE < end:
        found = mixed(found, _word(data, at))
        at += _BYTE
    # The last eight bytes; some of them may be hashed twice.
    return mixed(found, _word(data, end - _BYTE))


@inlined
def _word(data: npt.NDArray[np.uint8], at: Hash) -> Hash:
    # The compiler turns this into one load.
    return (
        Hash(data[at])
        | Hash(data[at + Hash(1)]) << Hash(8)
        | Hash(data[at + Hash(2)]) << Hash(16)
        | Hash(data[at + Hash(3)]) << Hash(24)
        | Hash(data[at + Hash(4)]) << Hash(32)
        | Hash(data[at + Hash(5)]) << Hash(40)
        | Hash(data[at + Hash(6)]) << Hash(48)
        | Hash(data[at + Hash(7)]) << Hash(56)
    )


@inlined
def mixed(first: Hash, second: Hash) -> Hash:
    """Combine two hashes with the mixing function of SplitMix64."""
    state = first ^ second
    state = (state ^ (state >> Hash(30))) * Hash(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> Hash(27))) * Hash(0x94D049BB133111EB)
    return state ^ (state >> Hash(31))


@compiled
def hash_at(offsets: npt.NDArray[np.int32], data: npt.NDArray[np.uint8], row: int) -> Hash:
    """Call hash_of from code that is not compiled."""
    return hash_of(offsets, data, row)


@compiled
def hashes(most: int, offsets: npt.NDArray[np.int32], data: npt.NDArray[np.uint8]) -> Hashes:
    """Return the hash of the first `most` bytes of each text."""
    found = np.empty(len(offsets) - 1, np.uint64)
    for row in range(len(found)):
        found[row] = hash_of_first(most, offsets, data, row)
    return found


@compiled
def is_among(hashes: Hashes, slots: Codes, chosen: Hashes) -> Flags:
    """Return which of the hashes are in a set."""
    is_among = np.zeros(len(hashes), np.bool_)
    for row in range(len(hashes)):
        is_among[row] = slots[slot_of(slots, chosen, hashes[row])] > 0
    return is_among


@compiled
def set_of(hashes: Hashes) -> tuple[Codes, Hashes]:
    """Return a hash set: the keys without repetition, and slots with the number of a key, from 1, or 0."""
    slots, keys, found = slots_for(len(hashes)), np.empty(len(hashes), np.uint64), 0
    for key in hashes:
        slot = slot_of(slots, keys, key)
        if not slots[slot]:
            keys[found] = key
            found += 1
            slots[slot] = found
    return slots, keys
