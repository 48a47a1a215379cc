"""Reads a range of a commit-log segment into Arrow batches, many records at a time.

The size of a record gives the position of the next one. So a walk finds the records, and numpy extracts their
fields in bulk. Records with any irregularity are passed to the record codec, which decides and describes the
fault.

A range begins with the first record that starts in it, wherever the range was split, and ends at the first
record of the next range. Bytes between two records belong to the range of the first. Records contain their
own position, so no bytes inside a body are mistaken for a record, unless they were crafted for that.
"""

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from mqproof.impl.dledger import entry_format
from mqproof.impl.dledger.entry_format import HEADER_BYTES, EntryError, is_whole
from mqproof.impl.dledger.rpc_bodies import NO_OP, NORMAL
from mqproof.impl.remoting.message import (
    KEYS,
    NAME_END,
    SYS_BORN_HOST_V6,
    SYS_STORE_HOST_V6,
    TAGS,
    UNIQUE_KEY,
    VALUE_END,
    decode_address,
)
from mqproof.impl.store.files import record
from mqproof.impl.store.files.record import RecordError
from mqproof.spark_audit.sources.store.ranges import Range, cut, is_ledger, log_folders, segments

RECORD: Final = "record"
FILLER: Final = "filler"
"""The mark that the rest of the segment is too small for the next record."""
ZEROS: Final = "zeros"
"""Preallocated bytes that were never written."""
DAMAGE: Final = "damage"
"""Bytes that are not a whole record."""

SCHEMA: Final = pa.schema(
    [
        ("kind", pa.string()),  # record | filler | zeros | damage
        ("file", pa.string()),
        ("commit_offset", pa.int64()),  # its position, also for damage
        ("size", pa.int64()),  # bytes
        ("topic", pa.string()),
        ("queue_id", pa.int32()),
        ("queue_offset", pa.int64()),
        ("msg_id", pa.string()),  # the producer's unique key, else the broker's own id
        ("keys", pa.string()),
        ("tags", pa.string()),
        ("born_ms", pa.int64()),
        ("stored_ms", pa.int64()),
        ("born_host", pa.string()),
        ("store_host", pa.string()),
        ("flag", pa.int32()),
        ("sys_flag", pa.int32()),
        ("reconsume_times", pa.int32()),
        ("prepared_offset", pa.int64()),
        ("body_size", pa.int32()),
        ("body_crc", pa.int64()),
        ("properties", pa.string()),  # name 0x01 value 0x02 ...
        ("term", pa.int64()),  # of the ledger's entry that it is in
        ("entry_index", pa.int64()),
        ("detail", pa.string()),  # description of the damage
    ]
)
BODY: Final = pa.field("body", pa.binary())
"""The column that is added on request."""

_BATCH_RECORDS: Final = 1 << 15
_BATCH_BYTES: Final = 1 << 26
_CHUNK_BYTES: Final = 1 << 20
_RECORD_START: Final = struct.Struct(">II20xq")  # size, magic, intended position
_CRC: Final = struct.Struct(">i8x")  # CRC of an entry, and the rest of its header
_ENTRY: Final = struct.Struct(">ii16xq")  # of a ledger: magic, size, intended position
_PLACE: Final = np.dtype([("entry_index", ">i8"), ("term", ">i8")])
_PLACE_AT: Final = 8  # in an entry's header
_NAME_BYTES: Final = 9
"""Length of the longest property name that is searched for, including the separator."""
_MAGIC_FRONT: Final = record.MAGIC_V1.to_bytes(4, "big")[:3]
_FRONT: Final = np.dtype(
    [
        ("size", ">u4"), ("magic", ">u4"), ("crc", ">u4"), ("queue_id", ">i4"), ("flag", ">i4"),
        ("queue_offset", ">i8"), ("commit_offset", ">i8"), ("sys_flag", ">i4"), ("born_ms", ">i8"),
    ]
)  # fmt: skip
_TAIL: Final = np.dtype([("reconsume_times", ">i4"), ("prepared_offset", ">i8"), ("body_size", ">i4")])

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Gap:
    """Bytes that are not a record: `size` bytes of a segment from `at` on."""

    kind: str
    at: int
    size: int
    detail: str | None = None


def ranges(path: str, split_bytes: int) -> Iterator[Range]:
    """Yield the ranges of the commit log, or of the ledger, of a store directory.

    Raises:
        StoreError: it is not a store directory.
    """
    for folder in log_folders(path):
        for file in segments(folder):
            yield from cut(file, split_bytes)


def read_range(part: Range, *, with_body: bool = False) -> Iterator[pa.RecordBatch]:
    """Yield batches of SCHEMA.

    Raises:
        OSError: the file cannot be read.
    """
    path = Path(part.file)
    if not path.stat().st_size:
        return
    with path.open("rb") as opened:
        log = mmap(opened.fileno(), 0, access=ACCESS_READ)
    kind = LedgerSegment if is_ledger(path.parent) else Segment
    yield from kind(log, int(path.name), part.file).batches(part.start, part.end, with_body=with_body)


@dataclass(frozen=True, slots=True)
class _Fields:
    """The fixed fields of some records, and the positions of their other fields."""

    front: Any
    """Structured array with the names of _FRONT."""
    tail: Any
    """Structured array with the names of _TAIL."""
    sizes: Ints
    ends: Ints
    born_host_bytes: Ints
    store_host_bytes: Ints
    store_time_at: Ints
    body_at: Ints
    body_size: Ints
    topic_at: Ints
    topic_size: Ints
    properties_at: Ints
    properties_size: Ints
    irregular: Bools
    """Records whose lengths or checksums do not match; some of their sizes are set to 0."""


class Segment:
    """A mapped segment; `base` is the commit offset of its first byte."""

    header_bytes = 0
    """Size of the header before each record."""

    def __init__(self, log: mmap | bytes, base: int, file: str) -> None:
        self._log = log
        self._bytes: Bytes = np.frombuffer(log, np.uint8)
        self._base = base
        self._file = file

    def batches(self, start: int, end: int, *, with_body: bool = False) -> Iterator[pa.RecordBatch]:
        gaps: list[Gap] = []
        for found in self._walk(start, end):
            if isinstance(found, Gap):
                gaps.append(found)
                continue
            for starts in _portions(found):
                batch, damaged = self._decode(starts, with_body)
                gaps += damaged
                yield batch
        if gaps:
            yield self._report(gaps, with_body)

    # --- positions of the records

    def _walk(self, start: int, end: int) -> Iterator[Ints | Gap]:
        """Yield positions of records, in runs without a gap, and the gaps between the runs."""
        at, limit = start if start == 0 else self._next_record(start), len(self._log)
        while at < end:
            run, at = self._follow(at, end)
            if at < limit and not self._looks_like_record(at):
                # If a wrong size leads to no record, the damage begins at the last record itself.
                if run and not self._is_end(at) and self._fault(run[-1] - self.header_bytes):
                    at = run.pop() - self.header_bytes
                if run:
                    yield np.array(run, dtype=np.int64)
                following = self._next_record(at + 1)
                yield from self._gaps(at, following)
                at = following
            elif run:
                yield np.array(run, dtype=np.int64)

    def _follow(self, at: int, end: int) -> tuple[list[int], int]:
        """Return the consecutive records from `at` on, and the position after the last one."""
        run: list[int] = []
        log, base, unpack, magics = self._log, self._base, _RECORD_START.unpack_from, record.MAGICS
        limit, last = len(log), len(log) - _RECORD_START.size
        while at < end and at <= last:
            size, magic, place = unpack(log, at)
            if magic not in magics or place != base + at or not record.SIZE_MIN <= size <= limit - at:
                break
            run.append(at)
            at += size
        return run, at

    def _looks_like_record(self, at: int) -> bool:
        return self._follow(at, at + 1)[1] > at

    def _next_record(self, at: int) -> int:
        """Return the first position from `at` on that looks like a record, or the segment's end."""
        limit = len(self._log)
        chunk_at = at
        while chunk_at < limit:
            # Chunks overlap by the bytes before a magic number plus the magic number, less one, so that none
            # is split.
            chunk = self._bytes[chunk_at : chunk_at + _CHUNK_BYTES + self.header_bytes + 7]
            if chunk.any():
                data, found = chunk.tobytes(), -1
                while (found := data.find(_MAGIC_FRONT, found + 1)) >= 0:
                    candidate = chunk_at + found - 4 - self.header_bytes
                    if candidate >= at and self._looks_like_record(candidate):
                        return candidate
            chunk_at += _CHUNK_BYTES
        return limit

    def _is_end(self, at: int) -> bool:
        """Return whether a filler or zeros are at the position, as after the last record."""
        return self._is_filler(at) or not any(self._log[at : at + record.FILLER_BYTES])

    def _is_filler(self, at: int) -> bool:
        size, magic = record.peek(bytes(self._log[at : at + record.FILLER_BYTES]))
        return magic == record.MAGIC_FILLER and at + size == len(self._log)

    def _gaps(self, at: int, following: int) -> Iterator[Gap]:
        """Yield the parts of [at, following): a filler, zeros, damage, or damage before zeros."""
        limit = len(self._log)
        if self._is_filler(at) and following == limit:
            yield Gap(FILLER, at, limit - at)
            return
        written = self._last_written(at, following)
        # Zeros before the next record are a hole in the log, not preallocated space.
        if written < following < limit:
            written = following
        if written > at:
            yield Gap(DAMAGE, at, written - at, self._fault(at) or "bytes that belong to no record")
        if following > written:
            yield Gap(ZEROS, written, following - written)

    def _last_written(self, at: int, end: int) -> int:
        """Return the end of the last non-zero byte in [at, end); `at` if all are zero."""
        for chunk_end in range(end, at, -_CHUNK_BYTES):
            chunk = self._bytes[max(at, chunk_end - _CHUNK_BYTES) : chunk_end]
            if chunk.any():
                return max(at, chunk_end - _CHUNK_BYTES) + int(np.flatnonzero(chunk)[-1]) + 1
        return at

    def _fault(self, at: int) -> str | None:
        """Return the codec's error for the record at the position; None if it is whole."""
        front = bytes(self._log[at : at + 8])
        size, left = record.peek(front)[0], len(self._log) - at
        if not any(front):
            return "zeros where a record should be"
        if not record.SIZE_MIN <= size <= left:
            return f"record says {size} bytes, {record.SIZE_MIN} to {left} expected"
        try:
            record.decode(bytes(self._log[at : at + size]), self._base + at)
        except RecordError as error:
            return str(error)
        return None

    def _irregular_around(self, starts: Ints, ends: Ints) -> Bools:  # noqa: ARG002  # a log has nothing around them
        """Return which records have an irregularity outside the record itself."""
        return np.zeros(len(starts), np.bool_)

    def _entries(self, starts: Ints) -> dict[str, Any]:
        """Return the columns of the ledger entries that contain the records."""
        return {name: pa.nulls(len(starts), pa.int64()) for name in _PLACE.names or ()}

    # --- contents of the records

    def _decode(self, starts: Ints, with_body: bool) -> tuple[pa.RecordBatch, list[Gap]]:
        """Return the whole records among those that begin at `starts`, and the damaged ones."""
        fields = self._fields(starts)
        topics, bad_topics = _texts(self._slices(fields.topic_at, fields.topic_size))
        properties, bad_properties = _texts(self._slices(fields.properties_at, fields.properties_size))
        irregular = fields.irregular | bad_topics | bad_properties | _invalid_names(topics)
        irregular |= self._irregular_around(starts, fields.ends)
        header = self.header_bytes
        faults = {int(i): self._fault(int(starts[i]) - header) for i in np.flatnonzero(irregular)}
        damaged = [
            Gap(DAMAGE, int(starts[i]) - header, int(fields.sizes[i]) + header, fault)
            for i, fault in faults.items()
            if fault
        ]
        columns, schema = self._columns(starts, fields, topics, properties), SCHEMA
        if with_body:
            columns["body"] = self._slices(fields.body_at, fields.body_size)
            schema = SCHEMA.append(BODY)
        arrays = [columns[name] for name in schema.names]
        batch = pa.RecordBatch.from_arrays(
            [column if isinstance(column, pa.Array) else pa.array(column) for column in arrays],
            schema=schema,
        )
        if damaged:
            whole = np.ones(len(starts), dtype=np.bool_)
            whole[[i for i, fault in faults.items() if fault]] = False
            batch = batch.filter(pa.array(whole))
        return batch, damaged

    def _fields(self, starts: Ints) -> _Fields:
        """Return the fields of the records that begin at `starts`, located by the lengths they contain."""
        front = self._take(starts, _FRONT)
        sizes = front["size"].astype(np.int64)
        ends = starts + sizes
        is_v2 = front["magic"] == record.MAGIC_V2
        born_host_bytes = np.where(front["sys_flag"] & SYS_BORN_HOST_V6, 20, 8)
        store_host_bytes = np.where(front["sys_flag"] & SYS_STORE_HOST_V6, 20, 8)
        store_time_at = starts + _FRONT.itemsize + born_host_bytes
        tail_at = store_time_at + 8 + store_host_bytes
        tail = self._take(tail_at, _TAIL)
        body_at = tail_at + _TAIL.itemsize
        body_size = tail["body_size"].astype(np.int64)
        topic_length_at = body_at + body_size
        irregular = (body_size < 0) | (topic_length_at + 3 + is_v2 > ends)
        irregular |= (front["queue_id"] < 0) | (front["queue_offset"] < 0)
        # Lengths of irregular records are unreliable: a valid position is read instead, and the value is
        # ignored.
        topic_length_at = np.where(irregular, body_at, topic_length_at)
        topic_size = np.where(
            is_v2, self._take(topic_length_at, np.dtype(">i2")), self._take(topic_length_at, np.dtype("i1"))
        ).astype(np.int64)
        topic_at = topic_length_at + 1 + is_v2
        irregular |= (topic_size <= 0) | (topic_at + topic_size + 2 > ends)
        topic_size = np.where(irregular, 0, topic_size)
        properties_at = topic_at + topic_size + 2
        properties_size = self._take(properties_at - 2, np.dtype(">i2")).astype(np.int64)
        irregular |= (properties_size < 0) | (properties_at + properties_size != ends)
        properties_size = np.where(irregular, 0, properties_size)
        body_size = np.where(irregular, 0, body_size)
        irregular |= (topic_size > 0) & (self._take(topic_at + topic_size - 1, np.dtype("u1")) == 0)
        irregular |= (properties_size > 0) & (self._take(ends - 1, np.dtype("u1")) == 0)
        irregular |= self._crc(body_at, body_size) != front["crc"]
        return _Fields(
            front, tail, sizes, ends, born_host_bytes, store_host_bytes, store_time_at, body_at, body_size,
            topic_at, topic_size, properties_at, properties_size, irregular,
        )  # fmt: skip

    def _columns(
        self, starts: Ints, fields: _Fields, topics: pa.Array, properties: pa.Array
    ) -> dict[str, Any]:
        """Return the columns of SCHEMA."""
        front, tail, store_host_at = fields.front, fields.tail, fields.store_time_at + 8
        unique_keys, keys, tags = _properties(properties, UNIQUE_KEY, KEYS, TAGS)
        columns: dict[str, Any] = {
            "kind": pa.repeat(RECORD, len(starts)),
            "file": pa.repeat(self._file, len(starts)),
            "commit_offset": starts + self._base,
            "size": fields.sizes,
            "topic": topics,
            "msg_id": self._message_ids(unique_keys, starts, store_host_at, fields.store_host_bytes),
            "keys": keys,
            "tags": tags,
            "stored_ms": self._take(fields.store_time_at, np.dtype(">i8")).astype(np.int64),
            "born_host": self._hosts(starts + _FRONT.itemsize, fields.born_host_bytes),
            "store_host": self._hosts(store_host_at, fields.store_host_bytes),
            "body_size": fields.body_size.astype(np.int32),
            "body_crc": front["crc"].astype(np.int64),
            "properties": properties,
            "detail": pa.nulls(len(starts), pa.string()),
        }
        for name in ("queue_id", "queue_offset", "born_ms", "flag", "sys_flag"):
            columns[name] = _native(front[name])
        for name in ("reconsume_times", "prepared_offset"):
            columns[name] = _native(tail[name])
        return columns | self._entries(starts)

    def _take(self, at: Ints, kind: np.dtype[Any]) -> Any:
        """Return the value of that type at each position."""
        # A position beyond the segment occurs only for records that are irregular anyway.
        at = np.minimum(at, len(self._bytes) - kind.itemsize)
        windows = np.lib.stride_tricks.sliding_window_view(self._bytes, kind.itemsize)
        return np.ascontiguousarray(windows[at]).view(kind).reshape(-1)

    def _slices(self, at: Ints, sizes: Ints) -> pa.Array:
        """Return the bytes at each position. The slices must be in order and not overlap."""
        # Build one array and take every second value: Arrow copies values faster than numpy gathers bytes.
        if not len(at):
            return pa.array([], pa.binary())
        at = np.minimum(at, len(self._log))
        first, last = int(at[0]), int(at[-1] + sizes[-1])
        edges = np.empty(2 * len(at), dtype=np.int32)
        edges[0::2], edges[1::2] = at - first, at + sizes - first
        data = pa.py_buffer(self._bytes[first:last])
        both = pa.Array.from_buffers(pa.binary(), len(edges) - 1, [None, pa.py_buffer(edges), data])
        return both.take(pa.array(np.arange(0, len(edges), 2)))

    def _crc(self, at: Ints, sizes: Ints) -> npt.NDArray[np.uint32]:
        crc32, view = zlib.crc32, memoryview(self._log)
        found = np.fromiter(
            (crc32(view[a:b]) for a, b in zip(at.tolist(), (at + sizes).tolist(), strict=True)),
            np.uint32,
            len(at),
        )
        view.release()
        return found & np.uint32(0x7FFFFFFF)

    def _hosts(self, at: Ints, sizes: Ints) -> pa.Array:
        """Return address:port of each record. There are few hosts, so each is formatted once."""
        is_v6 = sizes != 8
        v4 = self._take(at, np.dtype(">u8"))
        known, which = np.unique(np.where(is_v6, 0, v4), return_inverse=True)
        names = [_host(int(value).to_bytes(8, "big")) for value in known]
        if not is_v6.any():
            return pa.array(names).take(pa.array(which))
        every = [names[i] for i in which]
        for i in np.flatnonzero(is_v6):
            every[i] = _host(self._bytes[at[i] : at[i] + 20].tobytes())
        return pa.array(every)

    def _message_ids(self, keys: pa.Array, starts: Ints, host_at: Ints, host_bytes: Ints) -> pa.Array:
        """Return the unique key, or else the broker's id: its host and the position, in hexadecimal."""
        if not keys.null_count:
            return keys
        ids = keys.to_pylist()
        for i in np.flatnonzero(np.asarray(keys.is_null())):
            host = self._bytes[host_at[i] : host_at[i] + host_bytes[i]].tobytes()
            ids[i] = (host + int(starts[i] + self._base).to_bytes(8, "big")).hex().upper()
        return pa.array(ids, pa.string())

    def _report(self, gaps: list[Gap], with_body: bool) -> pa.RecordBatch:
        rows = [
            {
                "kind": gap.kind,
                "file": self._file,
                "commit_offset": self._base + gap.at,
                "size": gap.size,
                "detail": gap.detail,
            }
            for gap in gaps
        ]
        return pa.RecordBatch.from_pylist(rows, schema=SCHEMA.append(BODY) if with_body else SCHEMA)


class LedgerSegment(Segment):
    """A segment of the ledger of a group member: each record is the body of an entry, after a header.

    Headers and no-ops have no rows. Damage begins where an entry begins.
    """

    header_bytes = HEADER_BYTES

    def _follow(self, at: int, end: int) -> tuple[list[int], int]:
        run: list[int] = []
        log, base, unpack, limit = self._log, self._base, _RECORD_START.unpack_from, len(self._log)
        while at + HEADER_BYTES <= limit:
            magic, size, place = _ENTRY.unpack_from(log, at)
            if place != base + at or not HEADER_BYTES <= size <= limit - at:
                break
            # No-ops, like all bytes that are not records, belong to the range of the record before them.
            if at >= end and magic != NO_OP:
                break
            if magic == NORMAL and size >= HEADER_BYTES + record.SIZE_MIN:
                inner, inner_magic, inner_place = unpack(log, at + HEADER_BYTES)
                is_record = (inner, inner_place) == (size - HEADER_BYTES, base + at + HEADER_BYTES)
                if not is_record or inner_magic not in record.MAGICS:
                    break
                run.append(at + HEADER_BYTES)
            elif magic != NO_OP:
                break
            at += size
        return run, at

    def _irregular_around(self, starts: Ints, ends: Ints) -> Bools:
        view = memoryview(self._log)
        whole = [
            is_whole(
                _CRC.unpack_from(view, at - _CRC.size)[0],
                view[at - HEADER_BYTES : at - _CRC.size],
                view[at:end],
            )
            for at, end in zip(starts.tolist(), ends.tolist(), strict=True)
        ]
        view.release()
        return ~np.array(whole, np.bool_)

    def _entries(self, starts: Ints) -> dict[str, Any]:
        places = self._take(starts - HEADER_BYTES + _PLACE_AT, _PLACE)
        return {name: _native(places[name]) for name in _PLACE.names or ()}

    def _is_filler(self, at: int) -> bool:
        return entry_format.peek(bytes(self._log[at : at + entry_format.FILLER_BYTES])) < 0

    def _fault(self, at: int) -> str | None:
        front = bytes(self._log[at : at + entry_format.FILLER_BYTES])
        size, left = entry_format.peek(front), len(self._log) - at
        if not any(front):
            return "zeros where an entry should be"
        if not HEADER_BYTES <= size <= left:
            return "bytes that begin no entry"
        try:
            entry = entry_format.decode(bytes(self._log[at : at + size]), self._base + at)
            if entry.magic == NORMAL:
                record.decode(entry.body, entry.pos + HEADER_BYTES)
        except (EntryError, RecordError) as error:
            return str(error)
        return None


def _portions(starts: Ints) -> Iterator[Ints]:
    """Yield runs of records that fit into a batch by number and by bytes."""
    first = 0
    while first < len(starts):
        fits = int(np.searchsorted(starts, starts[first] + _BATCH_BYTES))
        end = max(first + 1, min(first + _BATCH_RECORDS, fits))
        yield starts[first:end]
        first = end


def _native(values: Any) -> Any:
    return values.astype(values.dtype.newbyteorder("="))


def _host(data: bytes) -> str:
    address, port = decode_address(data)
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def _texts(data: pa.Array) -> tuple[pa.Array, Bools]:
    """Return the values as text, and which are not UTF-8 (these become empty)."""
    bad = np.zeros(len(data), dtype=np.bool_)
    try:
        return data.cast(pa.string()), bad
    except pa.ArrowInvalid:
        values = []
        for i, value in enumerate(data.to_pylist()):
            try:
                values.append(value.decode())
            except UnicodeDecodeError:
                values.append("")
                bad[i] = True
        return pa.array(values, pa.string()), bad


def _invalid_names(topics: pa.Array) -> Bools:
    """Return which topics have a name that the codec may refuse."""
    encoded = topics.dictionary_encode()
    irregular = [
        name in ("", ".", "..") or "/" in name or "\0" in name for name in encoded.dictionary.to_pylist()
    ]
    if not any(irregular):
        return np.zeros(len(topics), dtype=np.bool_)
    taken: Bools = np.array(irregular)[np.asarray(encoded.indices)]
    return taken


def _properties(text: pa.Array, *names: str) -> list[pa.Array]:
    """Return the values of these properties in each text; null where they are missing or empty."""
    _, offsets, buffer = text.buffers()
    edges = np.frombuffer(offsets, np.int32)[: len(text) + 1].astype(np.int64)
    data = np.frombuffer(buffer, np.uint8) if buffer else np.zeros(0, np.uint8)
    separators = np.flatnonzero(data == ord(VALUE_END))
    # Positions where a property may begin, in order: at each text, and after each separator.
    starts = np.sort(np.concatenate([edges[:-1], separators + 1]), kind="stable")
    starts = starts[starts < edges[-1]]
    rows = np.searchsorted(edges, starts, side="right") - 1
    ends = np.minimum(np.append(separators, len(data))[np.searchsorted(separators, starts)], edges[rows + 1])
    padded = np.concatenate([data, np.zeros(_NAME_BYTES, np.uint8)])
    fronts = np.lib.stride_tricks.sliding_window_view(padded, _NAME_BYTES)[starts]
    found = []
    for name in names:
        wanted = np.frombuffer(f"{name}{NAME_END}".encode(), np.uint8)
        has = (fronts[:, : len(wanted)] == wanted).all(axis=1) & (starts + len(wanted) < ends)
        # If a name occurs twice, the last value is used.
        cut = np.repeat(edges[:-1], 2).astype(np.int32)
        cut[2 * rows[has]], cut[2 * rows[has] + 1] = starts[has] + len(wanted), ends[has]
        both = pa.Array.from_buffers(pa.string(), len(cut) - 1, [None, pa.py_buffer(cut), buffer])
        values = both.take(pa.array(np.arange(0, len(cut), 2)))
        found.append(pc.if_else(pc.equal(pc.binary_length(values), 0), None, values))
    return found
