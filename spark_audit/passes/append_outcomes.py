"""The outcome of each append at its broker, for compiled loops: whether a recovery truncated the append.

Only tasks load this module.
"""

from bisect import bisect_left, bisect_right
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from mqproof.spark_audit.scan.loops import NONE, Flags, Ints, inlined, meanings


class AppendOutcomes(NamedTuple):
    """Ranges of sequence numbers with the outcome of the appends in each; grouped by node, ascending."""

    after_seq: Ints
    until_seq: Ints
    kept_end: Ints
    is_at_risk: Flags
    first: Ints
    """Index of the first outcome of each node, by the node's dictionary code; `end` is the exclusive end."""
    end: Ints


def append_outcomes(table: pa.Table, node: pa.DictionaryArray) -> AppendOutcomes:
    """Build the arrays from the table `sums.Known.append_outcomes`."""
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
    """Return the index of the outcome in [first, end) that covers the append `seq`; NONE if none does."""
    # Binary search for the first outcome whose range ends after seq.
    last = end
    while first < last:
        middle = (first + last) // 2
        if until_seq[middle] <= seq:
            first = middle + 1
        else:
            last = middle
    return first if first < end and after_seq[first] < seq else NONE
