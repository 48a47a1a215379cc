"""Pieces of an event log, column by column as Arrow has them, in which texts are numbers: what the first pass
over a log sums up.

Texts repeat (nodes, kinds, groups, topics), and Parquet has each once, with a number for each row; so has
Arrow, which then compares numbers alone. DuckDB, which makes texts of them, took twice as long for that pass.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from spark_audit.share import Batches, Share, ShareError, gathered, rows_at, said, shaped, why
from spec.events import COLUMNS, REQUIRED, SCHEMA_VERSION, Kind

_ROWS: Final = 1 << 20
"""A piece has so many at most."""

_OWN: Final = ("ts", "seq", "node", "kind", "topic", "queue_id", "queue_offset", "group")
"""Columns of the log that a piece has; beside them `stated` (attrs.broker) and `reset` (whether attrs.reset
says so)."""
_ATTRS: Final = "attrs"

_TEXT: Final = pa.dictionary(pa.int32(), pa.string())
_TYPES: Final = {
    "int64": pa.int64(), "int32": pa.int32(), "string": _TEXT, "map<string,string>": pa.map_(_TEXT, _TEXT)
}  # fmt: skip

_TEXTS: Final = tuple(name for name, kind in COLUMNS.items() if "string" in kind and name != "msg_id")
"""Columns of texts that are there again and again."""

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Piece:
    told: pa.RecordBatch
    """Those rows that are events. Rows of a later schema than ours have no kind."""
    whole: Callable[[Numbers], list[dict[str, Any]]]
    """The rows at such positions with all their columns, of which the others are read only then."""


Fold = Callable[[Piece], Iterable[pa.RecordBatch]]
"""Sums up a piece."""


def of_files(folds: Sequence[Fold], schema: pa.Schema, cut: Sequence[Share]) -> Callable[[Batches], Batches]:
    """For mapInArrow over the shares' numbers."""

    def run(numbers: Batches) -> Batches:
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                for piece in _of_share(cut[number]):
                    yield from _folded(piece, folds, schema)

    return run


def of_rows(folds: Sequence[Fold], schema: pa.Schema) -> Callable[[Batches], Batches]:
    """For mapInArrow over events."""

    def run(batches: Batches) -> Batches:
        for table in gathered(batches):
            for batch in table.combine_chunks().to_batches():
                yield from _folded(_piece(batch, batch.take), folds, schema)

    return run


def _folded(piece: Piece, folds: Sequence[Fold], schema: pa.Schema) -> Batches:
    for fold in folds:
        for batch in fold(piece):
            yield shaped(batch, schema)


def is_one_of(texts: pa.DictionaryArray, wanted: Sequence[str]) -> pa.BooleanArray:
    """Null where there is no text."""
    return pc.is_in(texts.dictionary, pa.array(wanted, pa.string())).take(texts.indices)


def alike(rows: pa.RecordBatch, names: Sequence[str]) -> Numbers:
    """A number for each row, from 0 on: that of all rows with the same values in these columns."""
    numbers = np.zeros(len(rows), np.int64)
    for name in names:
        column = rows[name]
        coded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
        count = len(coded.dictionary) + 1
        both = numbers * count + coded.indices.fill_null(count - 1).to_numpy()
        # As there are no more than rows, they never grow beyond what a number can be.
        numbers = pa.array(both).dictionary_encode().indices.to_numpy().astype(np.int64)
    return numbers


def _of_share(share: Share) -> Iterator[Piece]:
    path, marks = share.file.path, share.file.marks
    with _named(path):
        metadata = pq.read_metadata(path)
        file = pq.ParquetFile(path, metadata=metadata, read_dictionary=_texts(metadata))
        own = [name for name in (*_OWN, _ATTRS, marks) if name in file.schema_arrow.names]
        ends = np.cumsum([metadata.row_group(n).num_rows for n in range(metadata.num_row_groups)])
    others = [name for name in COLUMNS if name in file.schema_arrow.names and name not in own]
    for group in np.flatnonzero((ends > share.begin) & (ends <= share.end)).tolist():
        pieces = file.iter_batches(_ROWS, row_groups=[group], columns=own, use_threads=False)
        end = int(ends[group]) - metadata.row_group(group).num_rows
        while True:
            with _named(path):
                batch = next(pieces, None)
            if batch is None:
                break
            begin, end = end, end + len(batch)
            yield _piece(batch, partial(rows_at, path, others, begin), path, marks)


def _texts(metadata: pq.FileMetaData) -> list[str]:
    """The leaves of the columns of texts, and of the map of texts."""
    leaves = map(metadata.schema.column, range(metadata.num_columns))
    return [
        leaf.path
        for leaf in leaves
        if leaf.physical_type == "BYTE_ARRAY" and leaf.path.partition(".")[0] in _TEXTS
    ]


@contextmanager
def _named(path: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, pa.ArrowException) as error:
        raise ShareError(f"{path}: {why(path, error)}") from None


def _piece(
    batch: pa.RecordBatch,
    others: Callable[[Numbers], pa.Table | pa.RecordBatch],
    path: Path | None = None,
    marks: str | None = None,
) -> Piece:
    """Of some rows those columns that are always needed, perhaps with more, and what tells the others of such
    rows."""
    try:
        columns = {name: _typed(batch, name) for name in (*_OWN, _ATTRS)}
    except pa.ArrowException as error:
        raise ShareError(f"{path}: a value does not fit its column: {said(error)}") from None
    attrs = columns.pop(_ATTRS)
    columns |= {
        "stated": _attr(attrs, "broker"),
        "reset": is_one_of(_attr(attrs, "reset"), ["true"]).fill_null(False),
    }
    schema = _attr(attrs, "schema")
    is_event = pc.is_in(columns["kind"].dictionary, pa.array(list(Kind))).take(columns["kind"].indices)
    for name in REQUIRED:
        is_event = pc.and_(is_event.fill_null(False), columns[name].is_valid())
    if marks:
        is_event = pc.and_(is_event, batch[marks].is_null())
    columns["kind"] = _without_newer(columns["kind"], schema)
    told = pa.RecordBatch.from_pydict(columns)
    at = np.flatnonzero(is_event)
    if len(at) < len(batch):
        told = told.filter(is_event)
    return Piece(told, lambda rows: _rows(batch.take(at[rows]), others(at[rows])))


def _typed(batch: pa.RecordBatch, name: str) -> pa.Array:
    """A column as our schema has it; nulls where there is none."""
    wanted = _TYPES[COLUMNS[name]]
    at = batch.schema.get_field_index(name)
    if at < 0 or pa.types.is_null(batch.schema.field(at).type):
        return pa.nulls(len(batch), wanted)
    column = batch.column(at)
    if wanted == _TEXT:
        return _coded(column)
    return column if pa.types.is_map(wanted) else column.cast(wanted)


def _coded(texts: pa.Array) -> pa.DictionaryArray:
    return texts if texts.type == _TEXT else texts.cast(pa.string()).dictionary_encode()


def _attr(attrs: pa.MapArray, name: str) -> pa.DictionaryArray:
    """The value of a key, for each row; null where a row has none."""
    keys, values = _coded(attrs.keys), _coded(attrs.items)
    numbers = np.full(len(attrs), -1, np.int32)
    code = pc.index(keys.dictionary, name).as_py()
    if code >= 0:
        begins = np.asarray(attrs.offsets)
        entries = np.flatnonzero(keys.indices.to_numpy() == code)
        entries = entries[(entries >= begins[0]) & (entries < begins[-1])]
        rows = np.searchsorted(begins, entries, side="right") - 1
        numbers[rows] = values.indices.fill_null(-1).to_numpy()[entries]
    return pa.DictionaryArray.from_arrays(pa.array(numbers, mask=numbers < 0), values.dictionary)


def _without_newer(kinds: pa.DictionaryArray, schema: pa.DictionaryArray) -> pa.DictionaryArray:
    is_newer = pa.array([not _is_ours(text) for text in schema.dictionary.to_pylist()], pa.bool_())
    newer = is_newer.take(schema.indices).fill_null(False)
    if not newer.true_count:
        return kinds
    indices = pc.if_else(newer, pa.scalar(None, pa.int32()), kinds.indices)
    return pa.DictionaryArray.from_arrays(indices, kinds.dictionary)


def _is_ours(schema: str) -> bool:
    try:
        return int(schema) <= SCHEMA_VERSION
    except ValueError:
        return False


def _rows(*columns: pa.RecordBatch | pa.Table) -> list[dict[str, Any]]:
    """Whole rows, of batches that each have some of their columns."""
    rows = []
    for parts in zip(*(batch.to_pylist() for batch in columns), strict=True):
        row = {name: value for part in parts for name, value in part.items()}
        told = {name: row.get(name) for name in COLUMNS}
        rows.append(told | {_ATTRS: None if told[_ATTRS] is None else dict(told[_ATTRS])})
    return rows
