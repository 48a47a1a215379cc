"""The logs with injected anomalies catch every deliberate defect of a check."""

from collections.abc import Sequence

import pytest
from pyspark.sql import SparkSession

from mqproof.report.model import Verdict
from mqproof.spark_audit.checks import CHECKS, STORE_CHECKS
from mqproof.spark_audit.quality.mutants import (
    MUTANTS,
    ONLY_EVENTS,
    Environment,
    open_embedded_environment,
    open_environment,
    unbroken,
)
from mqproof.spark_audit.quality.mutants import judge as judge_mutant

CHEAP = {name: mutant.invariant for name, mutant in MUTANTS.items() if mutant.mutate is None}
"""These mutants change existing findings, so that no check is run again."""

ONE_A_CHECK = (
    *CHEAP,
    *{
        mutant.invariant: name
        for name, mutant in reversed(MUTANTS.items())
        if mutant.invariant not in CHEAP.values()
    }.values(),
)
"""At least one mutant for each check."""


@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    "chosen",
    [
        pytest.param(ONE_A_CHECK, id="one a check and all that are cheap"),
        pytest.param(tuple(MUTANTS), id="all", marks=pytest.mark.deep),
    ],
)
def test_every_mutant_of_a_check_that_judges_stores_is_caught(
    spark: SparkSession, chosen: tuple[str, ...]
) -> None:
    with open_environment(spark) as environment:
        _assert_caught(environment, [name for name in chosen if MUTANTS[name].invariant in STORE_CHECKS])


def test_every_mutant_of_a_check_of_events_is_caught() -> None:
    with open_embedded_environment() as environment:
        _assert_caught(environment, [name for name in MUTANTS if MUTANTS[name].invariant in ONLY_EVENTS])
    assert set(CHECKS) == ONLY_EVENTS | set(STORE_CHECKS)


def _assert_caught(environment: Environment, chosen: Sequence[str]) -> None:
    """Assert that the unbroken checks agree with the truth, and each mutant does not."""
    control = unbroken(environment)
    assert control.verdict is Verdict.HELD, control.witnesses
    results = [judge_mutant(MUTANTS[name], environment) for name in chosen]
    assert [result for result in results if result.verdict is not Verdict.HELD] == []
    assert {result.id for result in results} == set(environment.found)
