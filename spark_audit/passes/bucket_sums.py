"""Aggregates per bucket over one partition, and the rows kept for exact checking: one loop over the rows.

A row is kept if the partition alone does not prove its bucket clean. Only tasks load this module.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mqproof.spark_audit.passes.bucket_ids import bucket_text, in_sample
from mqproof.spark_audit.passes.bucket_plan import (
    ACK,
    APPEND,
    DELIVER,
    NO_ROLE,
    NUMBERS,
    ROLES,
    SEND,
    TEXTS,
    BucketPlan,
    named,
)
from mqproof.spark_audit.passes.message_columns import RETRY_TOPIC_PREFIX
from mqproof.spark_audit.scan.loops import (
    MOST,
    NONE,
    Codes,
    Flags,
    Hash,
    Hashes,
    Ints,
    Numbers,
    Texts,
    codes,
    compiled,
    hash_of,
    hash_of_first,
    is_among,
    is_present,
    meanings,
    mixed,
    numbers,
    set_of,
    slot_of,
    slots_for,
    texts,
    value,
)
from mqproof.spark_audit.scan.partial_aggregates import packed
from mqproof.spark_audit.scan.partition import Partition, written
from mqproof.spark_audit.scan.sql import evaluated
from mqproof.spec.events import Kind

_SUMS: Final = (
    "first", "bucket_hash", "role", "class", "who", "rows", "id", "place", "odd", "seq_min", "seq_max",
    "end_max",
)  # fmt: skip
(
    _FIRST, _BUCKET, _ROLE, _CLASS, _ACTOR, _ROWS, _ID, _PLACE, _IRREGULAR, _SEQ_MIN, _SEQ_MAX, _END,
) = range(len(_SUMS))  # fmt: skip

_LOW_HALF: Final = Hash(0xFFFFFFFF)
_ONE: Final = Hash(1)


class _Rows(NamedTuple):
    buckets: Texts
    """The bucket is given by the first bytes of each text; see `cut_ids`."""
    ids: Texts
    has_id: Flags
    kind: Codes
    node: Codes
    topic: Codes
    group: Codes
    status: Codes
    seq: Numbers
    queue_id: Numbers
    queue_offset: Numbers
    commit_offset: Numbers
    attempt: Numbers


class _Meanings(NamedTuple):
    """What each text means, by its dictionary code.

    Odd texts always require an exact check: retries, failures, weak acknowledgements, missing values.
    """

    role: Ints
    """Role of each kind."""
    is_irregular_kind: Flags
    node: Ints
    topic: Ints
    """Class of each topic."""
    is_irregular_topic: Flags
    group: Ints
    is_irregular_group: Flags
    is_irregular_status: Flags


def of_partition(partition: Partition, plan: BucketPlan) -> Iterator[pa.RecordBatch]:
    """Yield partial aggregates: one row for each (bucket, role, class, who).

    For a partition of a file, also yield a row that names the file of the kept rows.
    """
    batch = partition.batch
    if not len(batch):
        return
    most, buckets = cut_ids(batch, plan.prefix)
    columns: dict[str, Any] = {name: codes(batch[name]) for name in TEXTS}
    columns |= {name: numbers(batch[name]) for name in NUMBERS}
    rows = _Rows(buckets=buckets, ids=texts(batch["msg_id"]), has_id=is_present(batch["msg_id"]), **columns)
    summed, bucket_of = _summed(most, rows, _meanings(batch, plan))
    firsts = batch.select(["msg_id", "topic"]).take(pa.array(summed[:, _FIRST]))
    names = evaluated(bucket_text(plan.prefix), firsts.select(["msg_id"]))
    is_cleared = np.zeros(len(summed), np.bool_)
    if plan.folder and partition.row_group >= 0:
        is_cleared = _is_clean(summed, *_expected(firsts, plan)) & ~_is_sampled(names, plan.sample)
        cleared = set_of(summed[is_cleared, _BUCKET].astype(np.uint64))
        yield from _kept(partition, plan.folder, rows.has_id & ~is_among(bucket_of, *cleared))
    sums: dict[str, Any] = dict(zip(_SUMS, summed.T.copy(), strict=True))
    del sums["first"]
    part = (sums.pop("bucket_hash") % plan.parts).astype(np.int32)
    unkept = pa.array(np.full(len(summed), partition.row_group), mask=~is_cleared)
    aggregates = packed(pa.table({"bucket": names, "unkept": unkept} | sums), part)
    output = {"part": pa.array(["buckets"] * len(aggregates)), "buckets_part": aggregates["part"]}
    yield pa.RecordBatch.from_pydict(output | {"aggregate": aggregates["aggregate"]})


def cut_ids(batch: pa.RecordBatch, prefix: int) -> tuple[int, Texts]:
    """Return the length of the buckets in bytes, and texts that begin with the bucket of their row."""
    ids = batch["msg_id"]
    if prefix and pc.all(pc.string_is_ascii(ids)).as_py() is not False:
        return prefix, texts(ids)
    return int(MOST), texts(evaluated(bucket_text(prefix), batch.select(["msg_id"])))


def _kept(partition: Partition, folder: Path, is_kept: Flags) -> Iterator[pa.RecordBatch]:
    # The first and last rows of each run are kept too: steps between runs are checked exactly.
    for ends in partition.runs:
        is_kept[ends] = True
    if path := written([partition.rows(np.flatnonzero(is_kept))], folder):
        yield pa.RecordBatch.from_pydict({"part": ["kept"], "file": [str(path)]})


def _is_sampled(buckets: pa.StringArray, sample: int) -> Flags:
    if not sample:
        return np.zeros(len(buckets), np.bool_)
    return np.asarray(
        evaluated(in_sample("bucket", sample), pa.RecordBatch.from_pydict({"bucket": buckets})), np.bool_
    )


def _expected(firsts: pa.RecordBatch, plan: BucketPlan) -> tuple[Ints, int, int]:
    """Return the number of groups that read each row's topic, and whether acks and appends are recorded.

    Each value is NONE where it is not known.
    """
    readers, roles = plan.guess.readers, plan.guess.roles
    expected = meanings(
        firsts["topic"], lambda text: len(readers[text]) if text and text in readers else NONE
    )
    acks, appends = (int(role in roles) if roles else NONE for role in (ACK, APPEND))
    return expected[codes(firsts["topic"])], acks, appends


def _meanings(batch: pa.RecordBatch, plan: BucketPlan) -> _Meanings:
    kind, node, topic, group, status = (batch[name] for name in TEXTS)
    return _Meanings(
        role=meanings(kind, lambda text: ROLES.get(text, NO_ROLE)),
        is_irregular_kind=meanings(kind, lambda text: text == Kind.SEND_FAIL),
        node=meanings(node, named),
        topic=meanings(topic, plan.guess.class_of),
        is_irregular_topic=meanings(topic, lambda text: text is None or text.startswith(RETRY_TOPIC_PREFIX)),
        group=meanings(group, named),
        is_irregular_group=meanings(group, lambda text: text is None),
        is_irregular_status=meanings(status, lambda text: text != "SEND_OK"),
    )


@compiled
def _begin(sums: Ints, first: int, bucket: Hash, role: int, class_: int, actor: int) -> None:
    """Set the columns of a new group, whose first row is `first`."""
    sums[:] = 0
    sums[_FIRST], sums[_BUCKET], sums[_ROLE] = first, np.int64(bucket), role
    sums[_CLASS], sums[_ACTOR] = class_, actor
    sums[_SEQ_MIN], sums[_SEQ_MAX], sums[_END] = MOST, -MOST, NONE


@compiled
def _summed(most: int, rows: _Rows, of: _Meanings) -> tuple[Ints, Hashes]:
    """Return the columns _SUMS for each (bucket, role, class, who), and the bucket of each row with an id."""
    # Unpack the tuples before the loop: inside it, each access would count references for every row.
    buckets, ids, has_id, kind, node, topic, group, status, seq, queue_id, offset, end, attempt = rows
    bucket_offsets, bucket_bytes = buckets
    id_offsets, id_bytes = ids
    seqs = seq.values
    queue_ids, has_queue = queue_id
    offsets, has_offset = offset
    ends, has_end = end
    attempts, is_attempt = attempt
    (role_of, is_irregular_kind, node_of, class_of, is_irregular_topic,
     group_of, is_irregular_group, is_irregular_status) = of  # fmt: skip
    count = len(kind)
    slots = slots_for(count)
    keys = np.empty(count, np.uint64)
    sums = np.empty((count, len(_SUMS)), np.int64)
    bucket_of = np.zeros(count, np.uint64)
    found = 0
    for row in range(count):
        if not has_id[row]:
            continue
        bucket = hash_of_first(most, bucket_offsets, bucket_bytes, row) >> _ONE
        bucket_of[row] = bucket
        role = role_of[kind[row]]
        if role == NO_ROLE:
            continue
        is_deliver = role == DELIVER
        actor = group_of[group[row]] if is_deliver else node_of[node[row]]
        key = mixed(mixed(bucket, Hash(class_of[topic[row]])), mixed(Hash(actor), Hash(role)))
        slot = slot_of(slots, keys, key)
        if not slots[slot]:
            keys[found] = key
            _begin(sums[found], row, bucket, role, class_of[topic[row]], actor)
            found += 1
            slots[slot] = found
        at = slots[slot] - 1
        id_hash = hash_of(id_offsets, id_bytes, row)
        place = mixed(id_hash, Hash(value(queue_ids, has_queue, row)))
        place = mixed(place, Hash(value(offsets, has_offset, row)))
        sums[at, _ROWS] += 1
        sums[at, _ID] += np.int64(id_hash & _LOW_HALF)
        sums[at, _PLACE] += np.int64(place & _LOW_HALF)
        if role == APPEND:
            sums[at, _SEQ_MIN] = min(sums[at, _SEQ_MIN], seqs[row])
            sums[at, _SEQ_MAX] = max(sums[at, _SEQ_MAX], seqs[row])
            sums[at, _END] = max(sums[at, _END], value(ends, has_end, row))
        if (
            is_irregular_kind[kind[row]]
            or is_irregular_topic[topic[row]]
            or value(attempts, is_attempt, row) > 1
            or (role == ACK and is_irregular_status[status[row]])
            or (is_deliver and (is_irregular_group[group[row]] or not has_offset[row]))
        ):
            sums[at, _IRREGULAR] = 1
    return sums[:found], bucket_of


@compiled
def _is_class_clean(totals: Ints, acks: int, appends: int, expected: int) -> bool:
    """Return whether each role of a class has all messages that were sent, each of them equally often."""
    sends, ids = totals[SEND, 0], totals[SEND, 1]
    if sends <= 0:
        return False
    first, first_times = NONE, 0
    for role, wanted in ((ACK, acks), (APPEND, appends), (DELIVER, expected)):
        times = totals[role, 0] // sends
        if totals[role, 0] != times * sends or totals[role, 1] != times * ids:
            return False
        if wanted != NONE and (times != wanted if role == DELIVER else (times > 0) != (wanted > 0)):
            return False
        if times and first == NONE:
            first, first_times = role, times
        if times and totals[role, 2] * first_times != totals[first, 2] * times:
            return False
    return True


@compiled
def _is_clean(sums: Ints, expected: Ints, acks: int, appends: int) -> Flags:
    """Return which rows of `sums` belong to a bucket that the partition alone shows to be clean.

    In a clean bucket, each class has one send per message. Every other role covers the same messages, each
    the same number of times.
    """
    count = len(sums)
    slots, keys, found = slots_for(count), np.empty(count, np.uint64), 0
    class_of = np.empty(count, np.int64)
    totals = np.zeros((count, DELIVER + 1, 3), np.int64)
    is_clean = np.ones(count, np.bool_)
    bucket_slots, buckets, bucket_count = slots_for(count), np.empty(count, np.uint64), 0
    bucket_of, producer = np.empty(count, np.int64), np.empty(count, np.int64)
    is_clean_bucket = np.ones(count, np.bool_)
    for row in range(count):
        role, bucket = sums[row, _ROLE], Hash(sums[row, _BUCKET])
        slot = slot_of(bucket_slots, buckets, bucket)
        if not bucket_slots[slot]:
            buckets[bucket_count], producer[bucket_count] = bucket, NONE
            bucket_count += 1
            bucket_slots[slot] = bucket_count
        in_bucket = bucket_slots[slot] - 1
        key = mixed(bucket, Hash(sums[row, _CLASS]))
        slot = slot_of(slots, keys, key)
        if not slots[slot]:
            keys[found] = key
            found += 1
            slots[slot] = found
        at = slots[slot] - 1
        class_of[row], bucket_of[row] = at, in_bucket
        if role > DELIVER or sums[row, _IRREGULAR]:
            is_clean_bucket[in_bucket] = False
            continue
        totals[at, role, 0] += sums[row, _ROWS]
        totals[at, role, 1] += sums[row, _ID]
        totals[at, role, 2] += sums[row, _PLACE]
        if role == SEND:
            if producer[in_bucket] not in (NONE, sums[row, _ACTOR]):
                is_clean_bucket[in_bucket] = False
            producer[in_bucket] = sums[row, _ACTOR]
    for row in range(count):
        if not _is_class_clean(totals[class_of[row]], acks, appends, expected[row]):
            is_clean_bucket[bucket_of[row]] = False
    for row in range(count):
        is_clean[row] = is_clean_bucket[bucket_of[row]]
    return is_clean
