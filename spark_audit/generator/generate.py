"""Generates event logs of any size, with injected anomalies and their ground truth, in Spark's tasks.

scenario.py describes the scenario. A chunk of the log is computed only from its number, the seed, and the
state (offsets and event numbers) at its beginning. So the chunks are computed twice. The first time yields by
how much each chunk advances the state, which the driver adds up; the second time writes the rows. The result
is the same for any number of partitions.
"""

import errno
import json
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as t

from mqproof.spark_audit.generator import scenario as sc
from mqproof.spark_audit.generator.chunk import Chunk, State
from mqproof.spark_audit.spark_schema import EVENTS
from mqproof.spec.events import COLUMNS

TRUTH_FILE: Final = "_truth.parquet"
MANIFEST_FILE: Final = "_manifest.json"
"""The names begin with an underscore so that `audit run` on the folder does not read them as event logs."""

_TRUTH: Final = pa.schema(
    [
        ("anomaly", pa.string()),
        ("invariant", pa.string()),
        ("rule", pa.string()),
        ("broker", pa.string()),
        ("topic", pa.string()),
        ("queue_id", pa.int32()),
        ("queue_offset", pa.int64()),
        ("msg_id", pa.string()),
        ("group", pa.string()),
    ]
)
_STATE: Final = pa.schema([("number", pa.int64()), ("state", pa.string())])
_BATCH_ROWS: Final = 20_000
_ROW_GROUP: Final = 1_000_000
_WORDS: Final = [
    *(name for name, kind in COLUMNS.items() if kind == "string" and name != "msg_id"),
    "attrs.key_value.key",
    "attrs.key_value.value",
]
"""Columns with few distinct values."""
_CHUNKS_A_TASK: Final = 40
"""About four million events: a file of some 60 MiB."""


@dataclass(frozen=True, slots=True)
class LogRequest:
    events: int
    """Approximate number: the log consists of whole messages."""
    anomalies: dict[str, int] = field(default_factory=dict)
    seed: int = 1
    file_format: str = "parquet"
    """parquet | ndjson"""


@dataclass(frozen=True, slots=True)
class Generated:
    events: int
    messages: int
    expected: int
    """Number of violations in the ground truth."""
    files: tuple[Path, ...]


def generate(
    spark: SparkSession,
    request: LogRequest,
    out: Path,
    partitions: int = 0,
    progress: Callable[[str], None] = lambda _: None,
) -> Generated:
    """Write event files, _truth.parquet and _manifest.json into the folder, which is created if needed.

    Raises:
        ScenarioError: the request does not fit (unknown anomaly, too few events).
        FileExistsError: the folder is not empty.
        OSError: it cannot be written.
    """
    plan = prepare(request, out)
    out.mkdir(parents=True, exist_ok=True)
    partitions = partitions or max(-(-plan.chunks // _CHUNKS_A_TASK), min(plan.chunks, 2))
    maker = _Maker(plan, request.seed)
    chunks = [(number, State()) for number in range(plan.chunks)]
    progress(f"planning {plan.messages_total} messages")
    states, events = _add_up(_in_tasks(spark, maker.moves, "number bigint, state string", chunks, partitions))
    progress(f"writing {events} events")
    if request.file_format == "parquet":
        _in_tasks(spark, partial(maker.parquet, out.absolute()), "file string", states, partitions).collect()
    else:
        _in_tasks(spark, maker.events, EVENTS, states, partitions).write.mode("append").json(str(out))
        # Spark's names begin with the number of the partition, and differ in every run.
        for number, file in enumerate(sorted(out.glob("part-*.json"))):
            file.rename(out / f"part-{number:05d}.ndjson")
    (out / "_SUCCESS").unlink(missing_ok=True)
    progress("listing the injected anomalies")
    injected = sum(plan.injected.values(), np.zeros(plan.chunks, dtype=np.int64))
    facts = _in_tasks(
        spark, maker.truth, "fact string", [state for state in states if injected[state[0]]], partitions
    )
    truth = [json.loads(row["fact"]) for row in facts.toLocalIterator()]
    pq.write_table(pa.Table.from_pylist(truth, _TRUTH), out / TRUTH_FILE)
    files = tuple(sorted(out.glob(f"part-*.{request.file_format}")))
    done = Generated(events, plan.messages_total, len(truth), files)
    manifest = {
        "wish": asdict(request),
        "events": events,
        "messages": done.messages,
        "expected": done.expected,
    }
    (out / MANIFEST_FILE).write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")
    return done


def write_in_process(request: LogRequest, out: Path) -> list[dict[str, Any]]:
    """Write a log of up to a million events as one Parquet file, without Spark. Return the truth.

    Raises:
        As `generate`.
    """
    out.mkdir(exist_ok=True)
    plan, now = prepare(request, out), State()
    tables, truth = [], []
    for number in range(plan.chunks):
        chunk, moved = (
            Chunk(plan, number, state, np.random.default_rng([request.seed, 1, number]))
            for state in (now, State())
        )
        tables.append(chunk.table())
        truth += chunk.truth
        now = now.plus(moved.moved())
    pq.write_table(pa.concat_tables(tables), out / "part-0.parquet")
    return truth


def prepare(request: LogRequest, out: Path) -> sc.Plan:
    """Return a plan for the log in this folder.

    Raises:
        As `generate`.
    """
    random = np.random.default_rng([request.seed, 0])
    plan = sc.make_plan(round(request.events / sc.EVENTS_A_MESSAGE), request.anomalies, random)
    if out.exists() and any(out.iterdir()):
        raise FileExistsError(f"{out}: the folder is not empty")
    return plan


Batches = Iterator[pa.RecordBatch]


@dataclass(frozen=True, slots=True)
class _Maker:
    """Functions that run in tasks: each turns batches of (number, state) into its own batches."""

    plan: sc.Plan
    seed: int

    def moves(self, batches: Batches) -> Batches:
        """Yield by how much each chunk advances the state."""
        for number, state in _states(batches):
            yield _batch(number, self._chunk(number, state).moved())

    def events(self, batches: Batches) -> Batches:
        for number, state in _states(batches):
            yield from self._chunk(number, state).table().to_batches(_BATCH_ROWS)

    def parquet(self, folder: Path, batches: Batches) -> Batches:
        """Write one file with the task's chunks.

        The task writes it, because Spark would convert each row twice. The file gets its final name when it
        is complete.
        """
        tables = (self._chunk(number, state).table() for number, state in _states(batches))
        if (first := next(tables, None)) is None:
            return
        context = TaskContext.get()
        assert context is not None, "a task's"
        name = f"part-{context.partitionId():05d}.parquet"
        unfinished = folder / f"_{name}.{context.taskAttemptId()}"
        maker = _gathered(chain([first], tables))
        try:
            with pq.ParquetWriter(
                unfinished, first.schema, compression="zstd", use_dictionary=_WORDS
            ) as writer:
                for table in maker:
                    writer.write_table(table, row_group_size=_ROW_GROUP)
        except OSError as error:
            # pyarrow's own error does not name the file.
            raise OSError(error.errno, os.strerror(error.errno or errno.EIO), str(unfinished)) from None
        unfinished.replace(folder / name)
        yield pa.RecordBatch.from_pydict({"file": [name]})

    def truth(self, batches: Batches) -> Batches:
        for number, state in _states(batches):
            facts = [msgspec.json.encode(fact).decode() for fact in self._chunk(number, state).truth]
            yield pa.RecordBatch.from_pydict({"fact": facts})

    def _chunk(self, number: int, state: State) -> Chunk:
        return Chunk(self.plan, number, state, np.random.default_rng([self.seed, 1, number]))


def _gathered(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Combine tables up to the size of a row group."""
    waiting: list[pa.Table] = []
    for table in tables:
        if waiting and sum(each.num_rows for each in (*waiting, table)) > _ROW_GROUP:
            yield pa.concat_tables(waiting)
            waiting = []
        waiting.append(table)
    if waiting:
        yield pa.concat_tables(waiting)


def _batch(number: int, state: State) -> pa.RecordBatch:
    text = msgspec.json.encode(state).decode()
    return pa.RecordBatch.from_arrays(
        [pa.array([number], pa.int64()), pa.array([text])], names=["number", "state"]
    )


def _states(batches: Batches) -> Iterator[tuple[int, State]]:
    for batch in batches:
        for row in batch.to_pylist():
            yield row["number"], msgspec.json.decode(row["state"], type=State)


def _in_tasks(
    spark: SparkSession,
    work: Callable[[Batches], Batches],
    schema: t.StructType | str,
    states: Iterable[tuple[int, State]],
    partitions: int,
) -> DataFrame:
    """Apply `work` to the chunks, in their order."""
    table = pa.Table.from_batches([_batch(*each) for each in states], _STATE)
    given = spark.createDataFrame(table)
    # Neighbouring chunks stay together, so that a file covers a contiguous time range.
    return given.repartitionByRange(partitions, "number").sortWithinPartitions("number").mapInArrow(
        work, schema
    )  # fmt: skip


def _add_up(moves: DataFrame) -> tuple[list[tuple[int, State]], int]:
    """Return the state at the beginning of each chunk, and the number of events."""
    states: list[tuple[int, State]] = []
    now = State()
    for row in moves.orderBy("number").toLocalIterator():
        states.append((row["number"], now))
        now = now.plus(msgspec.json.decode(row["state"], type=State))
    return states, sum(now.nodes.values())
