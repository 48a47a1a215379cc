"""Selects rows of a partition: by bucket or message id, and by sequence number of their node.

Only tasks load this module.
"""

import numpy as np
import pyarrow as pa

from mqproof.spark_audit.passes.bucket_sums import cut_ids
from mqproof.spark_audit.scan.loops import (
    MOST,
    SEED,
    Flags,
    Hash,
    Hashes,
    Ints,
    codes,
    compiled,
    hashes,
    is_among,
    is_present,
    meanings,
    mixed,
    number,
    numbers,
    set_of,
    texts,
)
from mqproof.spark_audit.scan.partition import Numbers, Partition


def of_partition(
    chosen: pa.ChunkedArray, prefix: int | None, numbered: pa.Table, bits: int, partition: Partition
) -> Numbers:
    """Return the indices of the selected rows; by chance, others may be included.

    Selected are rows whose bucket (by `prefix`) or, if `prefix` is None, message id is in `chosen`. Also
    selected are rows whose node and number, without its last `bits`, are in `numbered`.
    """
    batch = partition.batch
    node = meanings(batch["node"], number)[codes(batch["node"])]
    is_chosen = is_named(batch, chosen, prefix)
    is_chosen |= is_among(_keys(node, numbers(batch["seq"]).values >> bits), *set_of(_numbered(numbered)))
    return np.flatnonzero(is_chosen)


def is_named(batch: pa.RecordBatch, chosen: pa.ChunkedArray, prefix: int | None) -> Flags:
    """Return which rows have an id whose bucket (by `prefix`) is in `chosen`.

    Without a prefix, the id itself must be in `chosen`.
    """
    most, of_ids = (MOST, texts(batch["msg_id"])) if prefix is None else cut_ids(batch, prefix)
    wanted = set_of(hashes(MOST, *texts(_whole(chosen))))
    return is_present(batch["msg_id"]) & is_among(hashes(most, *of_ids), *wanted)


def _whole(column: pa.ChunkedArray) -> pa.Array:
    combined = column.combine_chunks()
    return combined.combine_chunks() if isinstance(combined, pa.ChunkedArray) else combined


def _numbered(rows: pa.Table) -> Hashes:
    node = _whole(rows["node"]).dictionary_encode()
    return _keys(meanings(node, number)[codes(node)], _whole(rows["number"]).to_numpy())


@compiled
def _keys(nodes: Ints, numbers: Ints) -> Hashes:
    found = np.empty(len(nodes), np.uint64)
    for row in range(len(found)):
        found[row] = mixed(mixed(SEED, Hash(nodes[row])), Hash(numbers[row]))
    return found
