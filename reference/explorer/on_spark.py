"""The explorer on Spark: the newest states are a table partitioned by fingerprint.

A level consists of three small jobs. Python on Arrow batches takes all steps. Their successors are grouped by
fingerprint. An anti join with all fingerprints seen so far leaves the new ones. Every level stays in Spark,
each state with the step that first led to it, so that the driver can walk back from a violation.

States are identified only by their fingerprints. Executors must be able to import this package.
"""

import pickle
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import BinaryType, LongType, StringType, StructField, StructType

from mqproof.reference.explorer.fingerprint import BITS, fingerprint, values_of
from mqproof.reference.explorer.search import OnLevel, Step, Violation, broken_step, check_size, first_broken
from mqproof.reference.explorer.summary import Summary
from mqproof.reference.model import Model, Parameters
from mqproof.spec import spark as on

_STATES: Final = StructType(
    [
        StructField("fingerprint", BinaryType()),
        StructField("state", BinaryType()),
        StructField("source", BinaryType()),  # fingerprint of the previous state; null for initial states
        StructField("step", BinaryType()),  # pickled name and parameters of the action
    ]
)
_TAKEN: Final = StructType(
    [
        *_STATES.fields,
        StructField("broken", StringType()),  # the invariant that this step, or its state, violates
        StructField("action", StringType()),  # in rows of their own: the action and how often it was taken
        StructField("times", LongType()),
    ]
)


@contextmanager
def opened(master: str) -> Iterator[SparkSession]:
    """Yield a session on that master, and stop it at the end.

    An existing session is used and left running.

    Raises:
        SessionError: Spark did not start.
    """
    borrowed = SparkSession.getActiveSession() is not None
    settings = {
        # A level takes less time than compiling its plan, or planning it a second time, would take.
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.adaptive.enabled": "false",
    }
    session = on.start("mqproof explore", master, settings, is_short=True)
    try:
        yield session
    finally:
        if not borrowed:
            session.stop()


def explore(
    model: Model[Any, Any],
    config: Any,
    *,
    spark: SparkSession,
    on_level: OnLevel | None = None,
    states_max: int | None = None,
) -> Summary[Any]:
    """Return the result of `mqproof.reference.explorer.search.explore`, computed on Spark.

    Raises:
        MemoryError: more than `states_max` states are reachable.
    """
    initial = tuple(dict.fromkeys(model.initial(config)))
    taken = dict.fromkeys(model.actions, 0)
    if broken := first_broken(model, config, initial):
        path = (Step("Init", (), broken[1]),)
        return Summary(len(initial), 0, taken, Violation(broken[0], path))
    partitions = spark.sparkContext.defaultParallelism
    levels = [_initial(initial, spark).localCheckpoint()]
    found = states = len(initial)
    violation: Violation[Any] | None = None
    while found and violation is None:
        out = levels[-1].select("fingerprint", "state").mapInArrow(_expand(model, config), _TAKEN).persist()
        for row in out.filter("action is not null").select("action", "times").collect():
            taken[row.action] += row.times
        violation = _violation(model, config, levels, out)
        levels.append(_new(out, levels, partitions).localCheckpoint())
        out.unpersist()
        found = levels[-1].count()
        states += found
        check_size(model, states, states_max)
        if on_level is not None:
            on_level(len(levels) - 1, states)
    return Summary(states, len(levels) - 1, taken, violation)


def _initial(initial: tuple[Any, ...], spark: SparkSession) -> DataFrame:
    return spark.createDataFrame([(_key(state), _pack(state), None, None) for state in initial], _STATES)


def _new(out: DataFrame, levels: list[DataFrame], partitions: int) -> DataFrame:
    """Return the successors that no level has, each with one of its steps, chosen deterministically."""
    seen = levels[0].select("fingerprint")
    for level in levels[1:]:
        seen = seen.union(level.select("fingerprint"))
    way = f.min(f.struct("source", "step", "state")).alias("way")
    reached = out.filter("fingerprint is not null").repartition(partitions, "fingerprint")
    found = reached.groupBy("fingerprint").agg(way)
    new = found.join(seen.repartition(partitions, "fingerprint"), "fingerprint", "left_anti")
    return new.select("fingerprint", "way.state", "way.source", "way.step")


def _expand(
    model: Model[Any, Any], config: Any
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return the function that executors run: all steps of the states of each batch."""

    def expand(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        steps = model.under(config)
        kind = type(model.initial(config)[0])
        for batch in batches:
            rows = _Rows()
            reached: set[Any] = set()
            taken = dict.fromkeys(model.actions, 0)
            for key, packed in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                state = kind(*pickle.loads(packed))
                for name, parameters, after in steps(state):
                    taken[name] += 1
                    broken = broken_step(model, config, state, name, after)
                    if after in reached and broken is None:
                        continue
                    reached.add(after)
                    if broken is None and (found := first_broken(model, config, (after,))):
                        broken = found[0]
                    rows.add_state(after, key, name, parameters, broken)
            yield rows.batch(taken)

    return expand


@dataclass(slots=True)
class _Rows:
    """The result rows of one batch."""

    rows: list[tuple[Any, ...]] = field(default_factory=list)

    def add_state(
        self, state: Any, source: bytes, name: str, parameters: Parameters, broken: str | None
    ) -> None:
        step = pickle.dumps((name, parameters))
        self.rows.append((_key(state), _pack(state), source, step, broken, None, None))

    def batch(self, taken: Mapping[str, int]) -> pa.RecordBatch:
        rows = [*self.rows, *((*(None,) * 5, action, times) for action, times in taken.items() if times)]
        types = [*[pa.binary()] * 4, pa.string(), pa.string(), pa.int64()]
        columns = list(zip(*rows, strict=True)) or [()] * len(types)
        arrays = [pa.array(column, kind) for column, kind in zip(columns, types, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, names=_TAKEN.fieldNames())


def _violation(
    model: Model[Any, Any], config: Any, levels: list[DataFrame], out: DataFrame
) -> Violation[Any] | None:
    """Return the first violation of this level, with its path from an initial state."""
    row = out.filter("broken is not null").orderBy("broken", "fingerprint", "source", "step").first()
    if row is None:
        return None
    steps: list[tuple[str, Parameters]] = [pickle.loads(row.step)]
    before: Row | None = row
    for level in reversed(levels):
        assert before is not None
        before = level.filter(f.col("fingerprint") == f.lit(bytes(before.source))).first()
        assert before is not None, "a state's source is in the level before it"
        if before.step is not None:
            steps.append(pickle.loads(before.step))
    assert before is not None
    state = type(model.initial(config)[0])(*pickle.loads(before.state))
    path = [Step("Init", (), state)]
    for name, parameters in reversed(steps):
        state = model.actions[name].apply(config, state, *parameters)
        path.append(Step(name, parameters, state))
    return Violation(row.broken, tuple(path))


def _key(state: Any) -> bytes:
    return fingerprint(state).to_bytes(BITS // 8, "big")


def _pack(state: Any) -> bytes:
    kind: Any = type(state)
    return pickle.dumps(values_of(kind)(state), pickle.HIGHEST_PROTOCOL)
