"""What befell the messages of each cell, summed up over a piece of the log: one loop over its rows.

Only tasks load this.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_audit.fates import Fates, fate_of, fates
from spark_audit.fingerprint import (
    ACK,
    APPEND,
    BROKERS_ACK,
    DELIVER,
    NO_ROLE,
    NUMBERS,
    RETRY_TOPIC_PREFIX,
    ROLES,
    SEND,
    TEXTS,
)
from spark_audit.loops import (
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
    is_told,
    meanings,
    mixed,
    number,
    numbers,
    slot_of,
    slots_for,
    texts,
    value,
)
from spark_audit.piece import Piece
from spark_audit.share import evaluated, packed
from spark_audit.sums import Known, cell_text
from spec.events import Kind

_SUMS: Final = (
    "first", "cell_hash", "role", "reader", "rows", "id", "place", "odd", "sync_at_risk", "producer_min",
    "producer_max",
)  # fmt: skip
_FIRST, _CELL, _ROLE, _READER, _ROWS, _ID, _PLACE, _ODD, _AT_RISK, _LOW, _HIGH = range(len(_SUMS))

_LOW_HALF: Final = Hash(0xFFFFFFFF)
_ONE: Final = Hash(1)


class _Rows(NamedTuple):
    cells: Texts
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
    """Of texts. Some always call for a look, as retries, failures, weak acknowledgements, and what says too
    little: these are odd."""

    role: Ints
    """Of a kind."""
    is_odd_kind: Flags
    node: Ints
    is_broker: Flags
    audience: Ints
    """Of a topic."""
    is_odd_topic: Flags
    group: Ints
    is_odd_group: Flags
    is_odd_status: Flags


def of_piece(
    piece: Piece, known: Known, brokers: Collection[str], prefix: int, parts: int
) -> Iterator[pa.RecordBatch]:
    """As parcels: a row a (cell, audience, role, reader). Topics with one audience share sums."""
    told = piece.told
    cells = cells_of(told, prefix)
    columns: dict[str, Any] = {name: codes(told[name]) for name in TEXTS}
    columns |= {name: numbers(told[name]) for name in NUMBERS}
    rows = _Rows(
        cells=texts(cells),
        ids=texts(told["msg_id"]),
        has_id=is_told(told["msg_id"]),
        **columns,
    )
    readers = _readers(known.readers)
    of = _meanings(told, brokers, readers)
    summed = _summed(rows, of, fates(known.fates, told["node"]))
    sums: dict[str, Any] = dict(zip(_SUMS, summed.T.copy(), strict=True))
    first, part = sums.pop("first"), sums.pop("cell_hash") % parts
    topic = rows.topic[first]
    owed = meanings(told["topic"], lambda text: len(readers[text]))
    is_send = sums["role"] == SEND
    producers = {name: pa.array(sums.pop(name), mask=~is_send) for name in ("producer_min", "producer_max")}
    columns = {"cell": cells.take(pa.array(first)), "audience": of.audience[topic], "owed": owed[topic]}
    yield packed(pa.table(columns | sums | producers), part.astype(np.int32))


def cells_of(told: pa.RecordBatch, prefix: int) -> pa.StringArray:
    """The text of each row's cell."""
    ids = told["msg_id"]
    if not prefix or not pc.all(pc.string_is_ascii(ids)).as_py():
        return evaluated(cell_text(prefix), told)
    # Bytes are cut off at a quarter of what it costs to count characters.
    return pc.binary_slice(ids.cast(pa.binary()), 0, prefix).view(pa.string())


def _readers(readers: pa.Table) -> dict[str | None, list[str]]:
    """A topic to the groups that read it."""
    groups: defaultdict[str | None, list[str]] = defaultdict(list)
    for row in readers.to_pylist():
        groups[row["subscribed_topic"]].append(row["group"])
    return groups


def _meanings(
    told: pa.RecordBatch,
    brokers: Collection[str],
    readers: Mapping[str | None, list[str]],
) -> _Meanings:
    kind, node, topic, group, status = (told[name] for name in TEXTS)
    return _Meanings(
        role=meanings(kind, lambda text: ROLES.get(text, NO_ROLE)),
        is_odd_kind=meanings(kind, lambda text: text == Kind.SEND_FAIL),
        node=meanings(node, number),
        is_broker=meanings(node, lambda text: text in brokers),
        audience=meanings(topic, lambda text: number(repr(sorted(readers[text])))),
        is_odd_topic=meanings(topic, lambda text: text is None or text.startswith(RETRY_TOPIC_PREFIX)),
        group=meanings(group, number),
        is_odd_group=meanings(group, lambda text: text is None),
        is_odd_status=meanings(status, lambda text: text != "SEND_OK"),
    )


@compiled
def _summed(rows: _Rows, of: _Meanings, fates: Fates) -> Ints:
    """Columns _SUMS, of each (cell, audience, role, reader)."""
    # All have names before the loop: in it, to take a column out of a tuple counts its users at every row.
    cells, ids, has_id, kind, node, topic, group, status, seq, queue_id, offset, end, attempt = rows
    cell_offsets, cell_bytes = cells
    id_offsets, id_bytes = ids
    seqs = seq.values
    queue_ids, has_queue = queue_id
    offsets, has_offset = offset
    ends, has_end = end
    attempts, is_attempt = attempt
    (
        role_of, is_odd_kind, node_of, is_broker, audience_of, is_odd_topic, group_of, is_odd_group,
        is_odd_status,
    ) = of  # fmt: skip
    after_seq, until_seq, kept_end, is_at_risk, first_fate, end_fate = fates
    count = len(kind)
    slots = slots_for(count)
    keys = np.empty(count, np.uint64)
    sums = np.empty((count, len(_SUMS)), np.int64)
    found = 0
    for row in range(count):
        role = role_of[kind[row]]
        if role == NO_ROLE or not has_id[row]:
            continue
        is_ack, is_deliver = role == ACK, role == DELIVER
        if is_ack and is_broker[node[row]]:
            role = BROKERS_ACK
        reader = group_of[group[row]] if is_deliver else 0
        cell = hash_of(cell_offsets, cell_bytes, row)
        key = mixed(mixed(cell, Hash(audience_of[topic[row]])), mixed(Hash(reader), Hash(role)))
        slot = slot_of(slots, keys, key)
        if not slots[slot]:
            keys[found] = key
            sums[found] = 0
            sums[found, _FIRST], sums[found, _CELL] = row, np.int64(cell >> _ONE)
            sums[found, _ROLE], sums[found, _READER], sums[found, _LOW] = role, reader, MOST
            found += 1
            slots[slot] = found
        at = slots[slot] - 1
        id_hash = hash_of(id_offsets, id_bytes, row)
        place = mixed(id_hash, Hash(value(queue_ids, has_queue, row)))
        place = mixed(place, Hash(value(offsets, has_offset, row)))
        sums[at, _ROWS] += 1
        sums[at, _ID] += np.int64(id_hash & _LOW_HALF)
        sums[at, _PLACE] += np.int64(place & _LOW_HALF)
        is_odd = (
            is_odd_kind[kind[row]]
            or is_odd_topic[topic[row]]
            or value(attempts, is_attempt, row) > 1
            or (is_ack and is_odd_status[status[row]])
            or (is_deliver and (is_odd_group[group[row]] or not has_offset[row]))
        )
        if role == SEND:
            producer = node_of[node[row]]
            sums[at, _LOW] = min(sums[at, _LOW], producer)
            sums[at, _HIGH] = max(sums[at, _HIGH], producer)
        elif role == APPEND:
            fate = fate_of(after_seq, until_seq, first_fate[node[row]], end_fate[node[row]], seqs[row])
            if fate != NONE:
                sums[at, _AT_RISK] += is_at_risk[fate]
                is_odd = is_odd or value(ends, has_end, row) >= kept_end[fate]
        if is_odd:
            sums[at, _ODD] = 1
    return sums[:found]
