"""Chooses rows of a piece: those of some cells or messages, and those of some numbers of their nodes.

Only tasks load this.
"""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from spark_audit.cell_sums import cells_of
from spark_audit.loops import (
    SEED,
    Codes,
    Flags,
    Hash,
    Hashes,
    Ints,
    codes,
    compiled,
    hash_of,
    is_told,
    meanings,
    mixed,
    number,
    numbers,
    slot_of,
    slots_for,
    texts,
)
from spark_audit.piece import Numbers, Piece


def of_piece(
    chosen: pa.ChunkedArray, prefix: int | None, numbered: pa.Table, bits: int, piece: Piece
) -> Numbers:
    """Of the rows whose cell is `chosen`, by such a `prefix`, or their message where that is None; and those
    whose node and number, without its last `bits`, are `numbered`. Maybe, by chance, others."""
    told = piece.told
    named = told["msg_id"] if prefix is None else cells_of(told, prefix)
    node = meanings(told["node"], number)[codes(told["node"])]
    is_chosen = is_told(told["msg_id"]) & _is_one_of(named, chosen)
    is_chosen |= _is_among(_keys(node, numbers(told["seq"]).values >> bits), *_set_of(_numbered(numbered)))
    return np.flatnonzero(is_chosen)


def is_of_cells(told: pa.RecordBatch, cells: pa.ChunkedArray, prefix: int) -> Flags:
    """Which rows that have an id are of these cells."""
    return _is_one_of(cells_of(told, prefix), cells)


def _is_one_of(named: pa.StringArray, chosen: pa.ChunkedArray) -> Flags:
    return _is_among(_hashes(*texts(named)), *_set_of(_hashes(*texts(_whole(chosen)))))


def _whole(column: pa.ChunkedArray) -> pa.Array:
    told = column.combine_chunks()
    return told.combine_chunks() if isinstance(told, pa.ChunkedArray) else told


def _numbered(rows: pa.Table) -> Hashes:
    node = _whole(rows["node"]).dictionary_encode()
    return _keys(meanings(node, number)[codes(node)], _whole(rows["number"]).to_numpy())


@compiled
def _is_among(hashes: Hashes, slots: Codes, chosen: Hashes) -> Flags:
    """Which of them are in a set."""
    is_among = np.zeros(len(hashes), np.bool_)
    for row in range(len(hashes)):
        is_among[row] = slots[slot_of(slots, chosen, hashes[row])] > 0
    return is_among


@compiled
def _set_of(hashes: Hashes) -> tuple[Codes, Hashes]:
    """Slots, and the keys that have their numbers there."""
    slots, keys, found = slots_for(len(hashes)), np.empty(len(hashes), np.uint64), 0
    for key in hashes:
        slot = slot_of(slots, keys, key)
        if not slots[slot]:
            keys[found] = key
            found += 1
            slots[slot] = found
    return slots, keys


@compiled
def _hashes(offsets: npt.NDArray[np.int32], told: npt.NDArray[np.uint8]) -> Hashes:
    found = np.empty(len(offsets) - 1, np.uint64)
    for row in range(len(found)):
        found[row] = hash_of(offsets, told, row)
    return found


@compiled
def _keys(nodes: Ints, numbers: Ints) -> Hashes:
    found = np.empty(len(nodes), np.uint64)
    for row in range(len(found)):
        found[row] = mixed(mixed(SEED, Hash(nodes[row])), Hash(numbers[row]))
    return found
