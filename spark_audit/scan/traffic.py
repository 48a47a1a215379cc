"""Loops of the first pass over a partition's rows: rows with equal keys, their extents, and their runs.

Only tasks load this module.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from mqproof.spark_audit.scan.loops import (
    MOST,
    NONE,
    SEED,
    Codes,
    Flags,
    Hash,
    Ints,
    codes,
    compiled,
    is_present,
    meanings,
    mixed,
    numbers,
    slot_of,
    slots_for,
    value,
)

_ONE: Final = Hash(1)
_HALF: Final = Hash(32)
_LOW_HALF: Final = Hash(0xFFFFFFFF)


def equal_rows(batch: pa.RecordBatch) -> tuple[Ints, Ints]:
    """Return a number for each row, from 0, which is equal for rows with the same key.

    Also return the first row of each number. The key is kind, node, stated broker, group, topic, queue, and
    whether the row has a queue offset.
    """
    queue_id, has_queue = numbers(batch["queue_id"])
    kind, node, stated, group, topic = (
        codes(batch[name]) for name in ("kind", "node", "stated", "group", "topic")
    )
    return _equal_rows(
        kind, node, stated, group, topic, queue_id, has_queue, is_present(batch["queue_offset"])
    )


@compiled
def _equal_rows(
    kind: Codes,
    node: Codes,
    stated: Codes,
    group: Codes,
    topic: Codes,
    queue_id: Ints,
    has_queue: Flags,
    placed: Flags,
) -> tuple[Ints, Ints]:
    count = len(kind)
    slots = slots_for(count)
    keys, firsts = np.empty(count, np.uint64), np.empty(count, np.int64)
    found, which = 0, np.empty(count, np.int64)
    for row in range(count):
        key = mixed(SEED, Hash(kind[row]) << _HALF | Hash(node[row]) & _LOW_HALF)
        key = mixed(key, Hash(stated[row]) << _HALF | Hash(group[row]) & _LOW_HALF)
        key = mixed(key, Hash(topic[row]) << _HALF | Hash(has_queue[row]) << _ONE | Hash(placed[row]))
        key = mixed(key, Hash(value(queue_id, has_queue, row)))
        slot = slot_of(slots, keys, key)
        if not slots[slot]:
            keys[found], firsts[found] = key, row
            found += 1
            slots[slot] = found
        which[row] = slots[slot] - 1
    return which, firsts[:found]


def extents(which: Ints, left_out: Flags, columns: Sequence[Ints]) -> tuple[Ints, Ints, Ints]:
    """Return the number of rows, and the minimum and maximum of each column, for each number in `which`.

    Rows that are `left_out` are not counted.
    """
    count = int(which.max()) + 1
    first, second, third = columns
    rows, least, most = _extents(which, left_out, first, second, third, count)
    return rows, least.T.copy(), most.T.copy()


@compiled
def _extents(
    which: Ints, left_out: Flags, first: Ints, second: Ints, third: Ints, count: int
) -> tuple[Ints, Ints, Ints]:
    rows = np.zeros(count, np.int64)
    least, most = np.full((count, 3), MOST), np.full((count, 3), -MOST)
    for row in range(len(which)):
        if left_out[row]:
            continue
        at = which[row]
        rows[at] += 1
        least[at, 0], most[at, 0] = min(least[at, 0], first[row]), max(most[at, 0], first[row])
        least[at, 1], most[at, 1] = min(least[at, 1], second[row]), max(most[at, 1], second[row])
        least[at, 2], most[at, 2] = min(least[at, 2], third[row]), max(most[at, 2], third[row])
    return rows, least, most


def runs(which: Ints, is_step: Flags, is_delivery: Flags, seq: Ints, offset: Ints) -> tuple[Ints, Ints]:
    """Return the first and the last row of each run of steps.

    `which` numbers the sequences of steps; in each, steps are in the order of `seq`. A run ends where the
    offset decreases, or where a delivery skips offsets.
    """
    first, last, in_order = _runs(np.arange(len(which)), which, is_step, is_delivery, seq, offset)
    if not in_order:
        by_seq = np.argsort(seq, kind="stable")
        first, last, _ = _runs(by_seq, which, is_step, is_delivery, seq, offset)
    return first, last


@compiled
def _runs(
    order: Ints, which: Ints, is_step: Flags, is_delivery: Flags, seq: Ints, offset: Ints
) -> tuple[Ints, Ints, bool]:
    # The current run of each number, which may be extended.
    open_runs = np.full(which.max() + 1, NONE) if len(which) else np.zeros(0, np.int64)
    first, last = np.empty(len(order), np.int64), np.empty(len(order), np.int64)
    found, in_order = 0, True
    for row in order:
        if not is_step[row]:
            continue
        run = open_runs[which[row]]
        goes_on = False
        if run != NONE:
            in_order &= seq[row] >= seq[last[run]]
            step = offset[row] - offset[last[run]]
            goes_on = step >= 0 and not (is_delivery[row] and step > 1)
        if not goes_on:
            run = found
            found += 1
            open_runs[which[row]], first[run] = run, row
        last[run] = row
    return first[:found], last[:found], in_order


def values_of(
    attrs: pa.MapArray, keys: pa.DictionaryArray, values: pa.DictionaryArray, wanted: Sequence[str]
) -> list[Codes]:
    """Return, for each wanted key, the code of its value in each row; NONE where a row has none."""
    which = meanings(keys, lambda key: wanted.index(key) if key in wanted else NONE)
    return list(_values_of(np.asarray(attrs.offsets), codes(keys), codes(values), which, len(wanted)))


@compiled
def _values_of(offsets: Codes, keys: Codes, values: Codes, which: Ints, wanted: int) -> npt.NDArray[np.int32]:
    found = np.full((wanted, len(offsets) - 1), NONE, np.int32)
    for row in range(len(offsets) - 1):
        for entry in range(offsets[row], offsets[row + 1]):
            key = which[keys[entry]]
            if key != NONE:
                found[key, row] = values[entry]
    return found
