"""Partitions of an event log as Arrow columns, in which texts are dictionary codes.

Texts such as nodes, kinds, groups and topics repeat. Parquet and Arrow store each text once, with a number
for each row. The loops over rows then compare only numbers (loops.py).
"""

import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from mqproof.spark_audit.scan.tasks import Batches, first_line, gathered, shaped, splits_of_tasks, why
from mqproof.spark_audit.sources.splits import Split, SplitError, Tasks
from mqproof.spec.events import COLUMNS, NUMBER_MAX, NUMBERS, REQUIRED, SCHEMA_VERSION, Kind

_ROWS: Final = 1 << 20
"""Maximum number of rows of a partition."""

_ATTRS: Final = "attrs"
_OF_ATTRS: Final = ("stated", "reset")
"""Columns derived from attrs: the value of attrs.broker, and whether attrs.reset is "true"."""
WHOLE: Final = (*COLUMNS, *_OF_ATTRS)
"""Columns of a partition, unless others are requested."""

_CHECKED: Final = frozenset((*REQUIRED, *NUMBERS))
"""Columns that may show that a row is not a valid event."""

_TEXT: Final = pa.dictionary(pa.int32(), pa.string())
_TYPES: Final = {
    "int64": pa.int64(), "int32": pa.int32(), "string": _TEXT, "map<string,string>": pa.map_(_TEXT, _TEXT)
}  # fmt: skip

_PLAIN: Final = pa.schema(
    [
        (name, pa.map_(pa.string(), pa.string()) if kind.startswith("map") else _TYPES[kind])
        for name, kind in COLUMNS.items()
    ]
)

_TEXTS: Final = tuple(name for name, kind in COLUMNS.items() if "string" in kind and name != "msg_id")
"""Text columns whose values repeat."""

_NO_ROW_GROUP: Final = -1

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Partition:
    batch: pa.RecordBatch
    """The rows that are valid events, with the requested columns.

    If attrs was decoded, rows of a newer schema version than ours have a null kind.
    """
    row_group: int = _NO_ROW_GROUP
    """Number of the row group, counted through the log's files; -1 for rows that Spark passed to the task."""

    @cached_property
    def equal_rows(self) -> tuple[Numbers, Numbers]:
        """traffic.equal_rows of this partition; it must have all columns."""
        from mqproof.spark_audit.scan import traffic

        return traffic.equal_rows(self.batch)

    @cached_property
    def runs(self) -> tuple[Numbers, Numbers]:
        """The first and last row of each run of the partition's sequences; it must have all columns."""
        from mqproof.spark_audit.scan import loops, traffic

        batch = self.batch
        is_delivery = is_one_of(batch["kind"], [Kind.DELIVER])
        is_commit = is_one_of(batch["kind"], [Kind.OFFSET_COMMIT])
        is_step = (is_delivery | is_commit) & np.asarray(batch["queue_offset"].is_valid())
        seq, offset = (loops.numbers(batch[name]).values for name in ("seq", "queue_offset"))
        which, _ = self.equal_rows
        return traffic.runs(which, is_step, is_delivery, seq, offset)

    def rows(self, numbers: Numbers) -> pa.RecordBatch:
        """Return the rows with the given indices in our schema; the partition must have all columns."""
        taken = self.batch.take(pa.array(numbers))
        columns = [taken[field.name].cast(field.type) for field in _PLAIN]
        return pa.RecordBatch.from_arrays(columns, schema=_PLAIN)


Fold = Callable[[Partition], Iterable[pa.RecordBatch]]
"""Aggregates a partition."""

RowSelection = Callable[[Partition], Numbers]
"""Returns the indices of some rows of a partition."""


def of_files(
    folds: Sequence[Fold], schema: pa.Schema, tasks: Tasks, columns: Sequence[str] = WHOLE
) -> Callable[[Batches], Batches]:
    """Return a function for mapInArrow over the tasks' numbers."""

    def run(numbers: Batches) -> Batches:
        for split in splits_of_tasks(tasks, numbers):
            for partition in _of_split(split, columns):
                yield from _folded(partition, folds, schema)

    return run


def of_rows(
    folds: Sequence[Fold], schema: pa.Schema, columns: Sequence[str] = WHOLE
) -> Callable[[Batches], Batches]:
    """Return a function for mapInArrow over events."""

    def run(batches: Batches) -> Batches:
        for partition in _of_spark_rows(batches, columns):
            yield from _folded(partition, folds, schema)

    return run


def stored(selection: RowSelection, folder: Path, tasks: Tasks) -> Callable[[Batches], Batches]:
    """Return a function for mapInArrow over the tasks' numbers that writes the selected rows to a file.

    The file has all columns; the function yields its name.
    """

    def run(numbers: Batches) -> Batches:
        partitions = (
            partition
            for split in splits_of_tasks(tasks, numbers)
            for partition in _of_split(split, tuple(COLUMNS))
        )
        yield from _stored(selection, partitions, folder)

    return run


def stored_rows(selection: RowSelection, folder: Path) -> Callable[[Batches], Batches]:
    """Return a function for mapInArrow over events that writes the selected rows to a file."""

    def run(batches: Batches) -> Batches:
        yield from _stored(selection, _of_spark_rows(batches, tuple(COLUMNS)), folder)

    return run


def _stored(selection: RowSelection, partitions: Iterable[Partition], folder: Path) -> Batches:
    if path := written((partition.rows(selection(partition)) for partition in partitions), folder):
        yield pa.RecordBatch.from_pydict({"file": [str(path)]})


def written(rows: Iterable[pa.RecordBatch], folder: Path) -> Path | None:
    """Write the rows to a new file with a unique name; return its path, or None if there are no rows."""
    # If Spark repeats a task, the first attempt's file remains, but its name is not returned.
    path = folder / f"{uuid.uuid4()}.parquet"
    writer = None
    with ExitStack() as opened:
        for table in gathered(batch for batch in rows if len(batch)):
            writer = writer or opened.enter_context(pq.ParquetWriter(path, _PLAIN, write_statistics=False))
            writer.write_table(table.unify_dictionaries())
    return path if writer else None


def _folded(partition: Partition, folds: Sequence[Fold], schema: pa.Schema) -> Batches:
    for fold in folds:
        for batch in filter(len, fold(partition)):
            row_group = pa.array(np.full(len(batch), partition.row_group))
            yield shaped(batch.append_column("row_group", row_group), schema)


def is_one_of(texts: pa.DictionaryArray, wanted: Collection[str]) -> npt.NDArray[np.bool_]:
    """Return which rows have one of these texts."""
    # A missing text has the code -1: the last entry.
    is_wanted = np.array([*(text in wanted for text in texts.dictionary.to_pylist()), False])
    found: npt.NDArray[np.bool_] = is_wanted[texts.indices.fill_null(-1).to_numpy()]
    return found


def _of_spark_rows(batches: Batches, columns: Sequence[str]) -> Iterator[Partition]:
    names = _read((*columns, *_CHECKED))
    for table in gathered(batches):
        for batch in table.combine_chunks().to_batches():
            yield _partition(batch, columns, names, _CHECKED)


def _of_split(split: Split, columns: Sequence[str]) -> Iterator[Partition]:
    path, marks = split.file.path, split.file.marks
    with _named(path):
        metadata = pq.read_metadata(path)
        file = pq.ParquetFile(path, metadata=metadata, read_dictionary=_texts(metadata))
        # The file's statistics often prove that all rows are events, without a look at the rows.
        unchecked = _unchecked_columns(metadata, split.groups)
        names = _read((*columns, *unchecked))
        own = [name for name in (*names, marks) if name in file.schema_arrow.names]
    for number, group in enumerate(split.groups, split.number):
        partitions = file.iter_batches(_ROWS, row_groups=[group], columns=own, use_threads=False)
        while True:
            with _named(path):
                batch = next(partitions, None)
            if batch is None:
                break
            yield _partition(batch, columns, names, unchecked, number, path, marks)


def _unchecked_columns(metadata: pq.FileMetaData, groups: Iterable[int]) -> frozenset[str]:
    """Return the columns that may show that a row is not an event, by the statistics of some row groups."""
    leaves = {metadata.schema.column(at).path: at for at in range(metadata.num_columns)}
    missing = set(REQUIRED) - leaves.keys()
    seen = [name for name in _CHECKED & leaves.keys()
            if not all(_clears(metadata.row_group(group).column(leaves[name]).statistics, name)
                       for group in groups)]  # fmt: skip
    return frozenset((*missing, *seen))


def _clears(statistics: pq.Statistics | None, name: str) -> bool:
    """Return whether the statistics of a column in a row group prove all its values valid."""
    if not statistics or not statistics.has_null_count or (name in REQUIRED and statistics.null_count):
        return False
    if name not in NUMBERS or not statistics.num_values:
        return True
    return bool(statistics.has_min_max and -NUMBER_MAX <= statistics.min <= statistics.max <= NUMBER_MAX)


def _texts(metadata: pq.FileMetaData) -> list[str]:
    """Return the leaf columns of text columns and of the text map."""
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
        raise SplitError(f"{path}: {why(path, error)}") from None


def _read(columns: Iterable[str]) -> list[str]:
    """Return the columns of the log from which these columns are derived."""
    return list(dict.fromkeys(_ATTRS if name in _OF_ATTRS else name for name in columns))


def _partition(
    batch: pa.RecordBatch,
    requested: Sequence[str],
    names: Sequence[str],
    unchecked: Collection[str],
    row_group: int = _NO_ROW_GROUP,
    path: Path | None = None,
    marks: str | None = None,
) -> Partition:
    """Build a partition with the requested columns from a batch of rows that were read."""
    with _fits(path):
        columns = {name: _typed(batch, name) for name in names}
    is_event = is_one_of(columns["kind"], list(Kind))
    for name in unchecked:
        is_event &= _sound(columns[name], name)
    if marks:
        is_event &= np.asarray(batch[marks].is_null())
    if set(requested) & set(_OF_ATTRS):
        columns["stated"], reset, schema = _attrs(columns[_ATTRS], ("broker", "reset", "schema"))
        columns["reset"] = pa.array(is_one_of(reset, ["true"]))
        columns["kind"] = _without_newer(columns["kind"], schema)
    events = pa.RecordBatch.from_pydict(columns)
    return Partition(events if is_event.all() else events.filter(pa.array(is_event)), row_group)


def _sound(column: pa.Array, name: str) -> npt.NDArray[np.bool_]:
    """Return which rows may be events, as far as this column shows."""
    is_sound = np.ones(len(column), dtype=np.bool_)
    if column.null_count and name in REQUIRED:
        is_sound &= np.asarray(column.is_valid())
    if name in NUMBERS:
        numbers = np.asarray(column.fill_null(0))
        is_sound &= (numbers >= -NUMBER_MAX) & (numbers <= NUMBER_MAX)
    return is_sound


@contextmanager
def _fits(path: Path | None) -> Iterator[None]:
    try:
        yield
    except pa.ArrowException as error:
        raise SplitError(f"{path}: a value does not fit its column: {first_line(error)}") from None


def _typed(batch: pa.RecordBatch, name: str) -> pa.Array:
    """Return a column converted to our schema; nulls if the batch does not have it."""
    wanted = pa.string() if name == "msg_id" else _TYPES[COLUMNS[name]]
    at = batch.schema.get_field_index(name)
    if at < 0 or pa.types.is_null(batch.schema.field(at).type):
        return pa.nulls(len(batch), wanted)
    column = batch.column(at)
    if wanted == _TEXT:
        return _coded(column)
    return column if pa.types.is_map(wanted) else column.cast(wanted)


def _coded(texts: pa.Array) -> pa.DictionaryArray:
    return texts if texts.type == _TEXT else texts.cast(pa.string()).dictionary_encode()


def _attrs(attrs: pa.MapArray, names: Sequence[str]) -> list[pa.DictionaryArray]:
    """Return the values of some keys for each row; null where a row has none."""
    # Imported only in tasks: planning an audit does not need it.
    from mqproof.spark_audit.scan import traffic

    values = _coded(attrs.items)
    coded = traffic.values_of(attrs, _coded(attrs.keys), values, names)
    return [
        pa.DictionaryArray.from_arrays(pa.array(each, mask=each < 0), values.dictionary) for each in coded
    ]


def _without_newer(kinds: pa.DictionaryArray, schema: pa.DictionaryArray) -> pa.DictionaryArray:
    newer = is_one_of(schema, [text for text in schema.dictionary.to_pylist() if not _is_known_version(text)])
    if not newer.any():
        return kinds
    indices = pc.if_else(pa.array(newer), pa.scalar(None, pa.int32()), kinds.indices)
    return pa.DictionaryArray.from_arrays(indices, kinds.dictionary)


def _is_known_version(schema: str) -> bool:
    try:
        return int(schema) <= SCHEMA_VERSION
    except ValueError:
        return False
