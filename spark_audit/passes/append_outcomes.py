"""The outcome of each append at its broker, for loops: whether a recovery cut it off.

Only tasks load this.
"""

from bisect import bisect_left, bisect_right
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from mqproof.spark_audit.passes.loops import NONE, Flags, Ints, inlined, meanings


class AppendOutcomes(NamedTuple):
    """Each of the appends of a node with numbers between two; those of a node together, and in order."""

    after_seq: Ints
    until_seq: Ints
    kept_end: Ints
    is_at_risk: Flags
    first: Ints
    """Of a node, by the number of its text: where its outcomes begin, and where they end."""
    end: Ints


def append_outcomes(table: pa.Table, node: pa.DictionaryArray) -> AppendOutcomes:
    """Of the table that sums.Known has."""
    ordered = table.sort_by([("cut_node", "ascending"), ("after_seq", "ascending")])
    nodes: list[str] = ordered["cut_node"].to_pylist()
    after_seq, until_seq, kept_end = (
        ordered[name].to_numpy().astype(np.int64) for name in ("after_seq", "until_seq", "kept_end")
    )
    return AppendOutcomes(
        after_seq,
        until_seq,
        kept_end,
        np.asarray(ordered["is_at_risk"], np.bool_),
        meanings(node, lambda text: bisect_left(nodes, text or "")),
        meanings(node, lambda text: bisect_right(nodes, text or "")),
    )


@inlined
def outcome_of(after_seq: Ints, until_seq: Ints, first: int, end: int, seq: int) -> int:
    """The one of a node's outcomes, from `first` on, that an append met; NONE if it met none."""
    # The first that ends behind it.
    last = end
    while first < last:
        middle = (first + last) // 2
        if until_seq[middle] <= seq:
            first = middle + 1
        else:
            last = middle
    return first if first < end and after_seq[first] < seq else NONE
