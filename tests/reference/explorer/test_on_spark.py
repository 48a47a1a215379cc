"""The exploration on Spark has the same results as the exploration in one process."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from pyspark.sql import SparkSession

from mqproof.reference import flush, mutants
from mqproof.reference.explorer import on_spark, search
from mqproof.reference.flush import Config

pytestmark = pytest.mark.deep("starts Spark; the search of several processes has its own tests")

SMALL = Config(messages=("m1",), flush_modes=(flush.SYNC_FLUSH,))


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    with on_spark.opened("local[2]") as session:
        yield session


def test_spark_finds_the_same_states_edges_and_depth_as_one_process(spark: SparkSession) -> None:
    sequential = search.explore(flush.MODEL, SMALL)
    levels: list[tuple[int, int]] = []
    on_workers = on_spark.explore(
        flush.MODEL, SMALL, spark=spark, on_level=lambda *level: levels.append(level)
    )
    assert (on_workers.states, on_workers.edges, on_workers.depth) == (
        len(sequential.parents),
        sequential.edges,
        sequential.depth,
    )
    assert on_workers.taken == sequential.taken
    assert on_workers.violation is None
    assert levels[-1] == (sequential.depth, len(sequential.parents))


def test_spark_finds_a_counterexample_as_short_as_that_of_one_process(spark: SparkSession) -> None:
    mutant = mutants.MUTANTS["AckBeforeFlush"]
    sequential = search.explore(mutant.broken(), mutant.config)
    on_workers = on_spark.explore(mutant.broken(), mutant.config, spark=spark)
    assert sequential.violation is not None
    assert on_workers.violation is not None
    assert on_workers.violation.invariant == mutant.invariant
    assert len(on_workers.violation.path) == len(sequential.violation.path)
    assert on_workers.violation.path[0].state in flush.initial(mutant.config)
    holds = mutant.broken().invariants[mutant.invariant]
    assert [holds(mutant.config, step.state) for step in on_workers.violation.path] == [True, True, False]
    assert (on_workers.states, on_workers.depth) == (len(sequential.parents), sequential.depth)


def test_spark_finds_a_step_that_violates_a_step_invariant(spark: SparkSession) -> None:
    model = replace(
        flush.MODEL, step_invariants={"Never": lambda _config, _before, name, _after: name != "Shutdown"}
    )
    violation = on_spark.explore(model, SMALL, spark=spark).violation
    assert violation is not None
    assert [step.action for step in violation.path] == ["Init", "Shutdown"]


def test_spark_stops_at_the_maximum_number_of_states(spark: SparkSession) -> None:
    with pytest.raises(MemoryError, match="more than 5 states"):
        on_spark.explore(flush.MODEL, SMALL, spark=spark, states_max=5)
