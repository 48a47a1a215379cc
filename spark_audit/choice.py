"""Chooses rows of a piece: those of some cells or messages, and those of some numbers of their nodes.

Only tasks load this.
"""

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from spark_audit.cell_sums import cells_of
from spark_audit.loops import (
    SEED,
    Flags,
    Hash,
    Ints,
    codes,
    compiled,
    hash_of,
    inlined,
    is_told,
    meanings,
    mixed,
    number,
    numbers,
    texts,
)
from spark_audit.piece import Piece

Hashes = npt.NDArray[np.uint64]

_ONE: Final = Hash(1)


def of_piece(
    chosen: pa.ChunkedArray, prefix: int | None, numbered: pa.Table, bits: int, piece: Piece
) -> pa.RecordBatch:
    """The rows whose cell is `chosen`, by such a `prefix`, or their message where that is None; and those
    whose node and number, without its last `bits`, are `numbered`. Maybe, by chance, others."""
    told = piece.told
    named = texts(told["msg_id"] if prefix is None else cells_of(told, prefix))
    node = meanings(told["node"], number)
    is_chosen = _chosen(
        *named, is_told(told["msg_id"]), codes(told["node"]), node, numbers(told["seq"]).values, bits,
        _hashes(*texts(_whole(chosen))), _numbered(numbered),
    )  # fmt: skip
    return told.take(pa.array(np.flatnonzero(is_chosen)))


def is_of_cells(told: pa.RecordBatch, cells: pa.ChunkedArray, prefix: int) -> Flags:
    """Which rows that have an id are of these cells."""
    return _is_among(*texts(cells_of(told, prefix)), _hashes(*texts(_whole(cells))))


def _whole(column: pa.ChunkedArray) -> pa.Array:
    told = column.combine_chunks()
    return told.combine_chunks() if isinstance(told, pa.ChunkedArray) else told


def _numbered(rows: pa.Table) -> Hashes:
    """The set of their keys."""
    node = _whole(rows["node"]).dictionary_encode()
    return _keys(meanings(node, number)[codes(node)], _whole(rows["number"]).to_numpy())


@compiled
def _chosen(
    offsets: npt.NDArray[np.int32],
    told: npt.NDArray[np.uint8],
    has_text: Flags,
    node: npt.NDArray[np.int32],
    node_of: Ints,
    seq: Ints,
    bits: int,
    of_texts: Hashes,
    of_numbers: Hashes,
) -> Flags:
    is_chosen = np.zeros(len(node), np.bool_)
    for row in range(len(node)):
        is_chosen[row] = (has_text[row] and _is_in(of_texts, hash_of(offsets, told, row))) or _is_in(
            of_numbers, _key(node_of[node[row]], seq[row] >> bits)
        )
    return is_chosen


@compiled
def _is_among(offsets: npt.NDArray[np.int32], told: npt.NDArray[np.uint8], hashes: Hashes) -> Flags:
    is_among = np.zeros(len(offsets) - 1, np.bool_)
    for row in range(len(is_among)):
        is_among[row] = _is_in(hashes, hash_of(offsets, told, row))
    return is_among


@compiled
def _hashes(offsets: npt.NDArray[np.int32], told: npt.NDArray[np.uint8]) -> Hashes:
    """The set of them."""
    found = _empty(len(offsets) - 1)
    for row in range(len(offsets) - 1):
        _put(found, hash_of(offsets, told, row))
    return found


@compiled
def _keys(nodes: Ints, numbers: Ints) -> Hashes:
    """The set of them."""
    found = _empty(len(nodes))
    for row in range(len(nodes)):
        _put(found, _key(nodes[row], numbers[row]))
    return found


@inlined
def _key(node: int, number: int) -> Hash:
    return mixed(mixed(SEED, Hash(node)), Hash(number))


@inlined
def _empty(room: int) -> Hashes:
    """A set for so many hashes. 0 is no hash."""
    slots = 2
    while slots < 2 * room:
        slots *= 2
    return np.zeros(slots, np.uint64)


@inlined
def _put(hashes: Hashes, told: Hash) -> None:
    slot = told & Hash(len(hashes) - 1)
    while hashes[slot] and hashes[slot] != told:
        slot = (slot + _ONE) & Hash(len(hashes) - 1)
    hashes[slot] = told


@inlined
def _is_in(hashes: Hashes, told: Hash) -> bool:
    slot = told & Hash(len(hashes) - 1)
    while hashes[slot] and hashes[slot] != told:
        slot = (slot + _ONE) & Hash(len(hashes) - 1)
    return bool(hashes[slot] == told)
