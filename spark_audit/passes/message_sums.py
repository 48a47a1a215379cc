"""Aggregates per message over one partition of the log: one loop over the rows.

A message is identified by a 64-bit hash of its id. Only tasks load this module.
"""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from mqproof.spark_audit.passes import row_selection
from mqproof.spark_audit.passes.append_outcomes import AppendOutcomes, append_outcomes, outcome_of
from mqproof.spark_audit.passes.message_columns import (
    COUNTS,
    FIRST,
    KINDS,
    NUMBERED,
    STORED_STATUSES,
    WAITING_TOPICS,
)
from mqproof.spark_audit.scan.loops import (
    MOST,
    NONE,
    Codes,
    Flags,
    Hash,
    Ints,
    Numbers,
    Texts,
    codes,
    compiled,
    hash_of,
    is_present,
    meanings,
    numbers,
    slot_of,
    slots_for,
    texts,
    value,
)
from mqproof.spark_audit.scan.partial_aggregates import packed
from mqproof.spark_audit.scan.partition import Partition
from mqproof.spark_audit.scan.sql import evaluated

_SUMS: Final = ("first", "id_hash", "topic", "delivered_xor", *FIRST, *COUNTS)
(
    _ROW, _ID, _TOPIC, _GROUPS_XOR, _SEND_TS, _ACKED_TS, _STORED_TS, _DELIVERED_TS, _SENDS, _ACKED,
    _WEAKLY_ACKED, _UNKNOWN, _REFUSED, _APPENDS, _DELIVERIES, _CUT, _AT_RISK,
) = range(len(_SUMS))  # fmt: skip

_SEND, _ACK, _FAIL, _APPEND, _DELIVER = range(len(KINDS))
_OK, _WEAK, _AMBIGUOUS, _OTHER = range(4)
"""Classes of statuses."""

_ONE: Final = Hash(1)


class _Rows(NamedTuple):
    ids: Texts
    is_selected: Flags
    kind: Codes
    node: Codes
    topic: Codes
    group: Codes
    status: Codes
    ts: Numbers
    seq: Numbers
    commit_offset: Numbers


class _Meanings(NamedTuple):
    """What each text means, by its dictionary code."""

    kind: Ints
    topic: Ints
    group: Ints
    status: Ints


def of_partition(
    partition: Partition, known_outcomes: pa.Table, buckets: pa.ChunkedArray | None, prefix: int, parts: int
) -> Iterator[pa.RecordBatch]:
    """Yield partial aggregates: one row for each message, or for each message of the given buckets."""
    batch = partition.batch
    is_selected = is_present(batch["msg_id"])
    if buckets is not None:
        is_selected &= row_selection.is_named(batch, buckets, prefix)
    columns: dict[str, Any] = {
        name: codes(batch[name]) for name in ("kind", "node", "topic", "group", "status")
    }
    columns |= {name: numbers(batch[name]) for name in ("ts", "seq", "commit_offset")}
    rows = _Rows(texts(batch["msg_id"]), is_selected, **columns)
    of = _Meanings(
        meanings(batch["kind"], lambda text: KINDS.index(text) if text in KINDS else NONE),
        np.where(
            meanings(batch["topic"], lambda text: text in WAITING_TOPICS), NONE, _numbered(batch["topic"])
        ),
        _numbered(batch["group"]),
        meanings(batch["status"], _status),
    )
    summed = _summed(rows, of, append_outcomes(known_outcomes, batch["node"]))
    sums: dict[str, Any] = dict(zip(_SUMS, summed.T.copy(), strict=True))
    first, part = sums.pop("first"), sums.pop("id_hash") % parts
    for name in FIRST:
        sums[name] = pa.array(sums[name], mask=sums[name] == MOST)
    sums["topic"] = pa.array(sums["topic"], mask=sums["topic"] == NONE)
    ids = {"msg_id": batch["msg_id"].take(pa.array(first))}
    yield packed(pa.table(ids | sums), part.astype(np.int32))


def _numbered(column: pa.DictionaryArray) -> Ints:
    """Return the NUMBERED value of each text of the dictionary, and of a missing text."""
    given = pa.RecordBatch.from_pydict(
        {"text": pa.array([*column.dictionary.to_pylist(), None], pa.string())}
    )
    found: Ints = evaluated(NUMBERED.format("text"), given).to_numpy()
    return found


def _status(text: str | None) -> int:
    if text is None:
        return NONE
    if text == STORED_STATUSES[0]:
        return _OK
    if text in STORED_STATUSES:
        return _WEAK
    return _AMBIGUOUS if text == "unknown" else _OTHER


@compiled
def _summed(rows: _Rows, of: _Meanings, outcomes: AppendOutcomes) -> Ints:
    """Return the columns _SUMS for each message."""
    # Unpack the tuples before the loop: inside it, each access would count references for every row.
    ids, is_selected, kind, node, topic, group, status, time, seq, end = rows
    id_offsets, id_bytes = ids
    times, seqs = time.values, seq.values
    ends, has_end = end
    kind_of, topic_of, group_of, status_of = of
    after_seq, until_seq, kept_end, is_at_risk, first_of, end_of = outcomes
    count = len(kind)
    slots = slots_for(count)
    keys = np.empty(count, np.uint64)
    sums = np.empty((count, len(_SUMS)), np.int64)
    found = 0
    for row in range(count):
        what = kind_of[kind[row]]
        if what == NONE or not is_selected[row]:
            continue
        key = hash_of(id_offsets, id_bytes, row)
        slot = slot_of(slots, keys, key)
        if not slots[slot]:
            keys[found] = key
            sums[found] = 0
            sums[found, _ROW], sums[found, _ID], sums[found, _TOPIC] = row, np.int64(key >> _ONE), NONE
            for name in range(_SEND_TS, _SENDS):
                sums[found, name] = MOST
            found += 1
            slots[slot] = found
        at = slots[slot] - 1
        ts, answer = times[row], status_of[status[row]]
        if what == _DELIVER:
            sums[at, _DELIVERIES] += 1
            sums[at, _DELIVERED_TS] = min(sums[at, _DELIVERED_TS], ts)
            sums[at, _GROUPS_XOR] ^= group_of[group[row]]
            continue
        if topic[row] != NONE:
            sums[at, _TOPIC] = max(sums[at, _TOPIC], topic_of[topic[row]])
        if what == _SEND:
            sums[at, _SENDS] += 1
            sums[at, _SEND_TS] = min(sums[at, _SEND_TS], ts)
        elif what == _ACK:
            if answer == _OK:
                sums[at, _ACKED] += 1
                sums[at, _ACKED_TS] = min(sums[at, _ACKED_TS], ts)
            elif answer == _WEAK:
                sums[at, _WEAKLY_ACKED] += 1
        elif what == _FAIL:
            if answer == _AMBIGUOUS:
                sums[at, _UNKNOWN] += 1
            elif answer != NONE:
                sums[at, _REFUSED] += 1
        else:
            sums[at, _APPENDS] += 1
            sums[at, _STORED_TS] = min(sums[at, _STORED_TS], ts)
            outcome = outcome_of(after_seq, until_seq, first_of[node[row]], end_of[node[row]], seqs[row])
            if outcome != NONE:
                sums[at, _AT_RISK] += is_at_risk[outcome]
                sums[at, _CUT] += value(ends, has_end, row) >= kept_end[outcome]
    return sums[:found]
