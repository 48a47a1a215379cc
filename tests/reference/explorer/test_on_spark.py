"""The exploration on Spark finds the same as one process."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from pyspark.sql import SparkSession

from mqproof.reference import flush, mutants
from mqproof.reference.explorer import on_spark, search
from mqproof.reference.flush import Config

SMALL = Config(messages=("m1",), flush_modes=(flush.SYNC_FLUSH,))


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    with on_spark.opened("local[2]") as session:
        yield session


def test_spark_counts_the_same(spark: SparkSession) -> None:
    alone = search.explore(flush.MODEL, SMALL)
    levels: list[tuple[int, int]] = []
    done = on_spark.explore(flush.MODEL, SMALL, spark=spark, on_level=lambda *level: levels.append(level))
    assert (done.states, done.edges, done.depth) == (len(alone.parents), alone.edges, alone.depth)
    assert done.taken == alone.taken
    assert done.violation is None
    assert levels[-1] == (alone.depth, len(alone.parents))


def test_spark_walks_back_from_a_violation(spark: SparkSession) -> None:
    mutant = mutants.MUTANTS["AckBeforeFlush"]
    alone = search.explore(mutant.broken(), mutant.config)
    done = on_spark.explore(mutant.broken(), mutant.config, spark=spark)
    assert alone.violation is not None
    assert done.violation is not None
    assert done.violation.invariant == mutant.invariant
    assert len(done.violation.path) == len(alone.violation.path)
    assert done.violation.path[0].state in flush.initial(mutant.config)
    holds = mutant.broken().invariants[mutant.invariant]
    assert [holds(mutant.config, step.state) for step in done.violation.path] == [True, True, False]
    assert (done.states, done.depth) == (len(alone.parents), alone.depth)


def test_a_step_that_breaks_an_invariant_is_found_too(spark: SparkSession) -> None:
    model = replace(
        flush.MODEL, step_invariants={"Never": lambda _config, _before, name, _after: name != "Shutdown"}
    )
    violation = on_spark.explore(model, SMALL, spark=spark).violation
    assert violation is not None
    assert [step.action for step in violation.path] == ["Init", "Shutdown"]


def test_too_many_states_are_refused(spark: SparkSession) -> None:
    with pytest.raises(MemoryError, match="more than 5 states"):
        on_spark.explore(flush.MODEL, SMALL, spark=spark, states_max=5)
