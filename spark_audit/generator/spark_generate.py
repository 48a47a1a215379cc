"""Generates event logs of any size in Spark's tasks; the rows are those of generate.py.

The chunks are computed twice. The first time yields by how much each chunk advances the state, which the
driver adds up; the second time writes the rows. The result is the same for any number of partitions.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Final

import msgspec
import numpy as np
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as t

from mqproof.spark_audit.generator import scenario as sc
from mqproof.spark_audit.generator.chunk import Chunk, State
from mqproof.spark_audit.generator.generate import (
    Generated,
    LogRequest,
    completed,
    made_chunk,
    prepare,
    write_parquet,
)
from mqproof.spark_audit.spark_schema import EVENTS

_STATE: Final = pa.schema([("number", pa.int64()), ("state", pa.string())])
_BATCH_ROWS: Final = 20_000
_CHUNKS_A_TASK: Final = 40
"""About four million events: a file of some 60 MiB."""


def generate(
    spark: SparkSession,
    request: LogRequest,
    out: Path,
    partitions: int = 0,
    progress: Callable[[str], None] = lambda _: None,
) -> Generated:
    """Write event files, _truth.parquet and _manifest.json into the folder, which is created if needed.

    Raises:
        As `write_in_process`.
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
    return completed(request, plan, out, events, truth)


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
        write_parquet(unfinished, chain([first], tables))
        unfinished.replace(folder / name)
        yield pa.RecordBatch.from_pydict({"file": [name]})

    def truth(self, batches: Batches) -> Batches:
        for number, state in _states(batches):
            facts = [msgspec.json.encode(fact).decode() for fact in self._chunk(number, state).truth]
            yield pa.RecordBatch.from_pydict({"fact": facts})

    def _chunk(self, number: int, state: State) -> Chunk:
        return made_chunk(self.plan, self.seed, number, state)


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
