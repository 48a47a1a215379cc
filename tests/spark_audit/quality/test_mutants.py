"""The logs and stores with injected anomalies catch every deliberate defect of a check."""

from mqproof.report.model import Verdict
from mqproof.spark_audit.checks import CHECKS
from mqproof.spark_audit.quality.mutants import MUTANTS, open_environment, unbroken
from mqproof.spark_audit.quality.mutants import judge as judge_mutant


def test_every_mutant_of_a_check_is_caught() -> None:
    with open_environment() as environment:
        control = unbroken(environment)
        assert control.verdict is Verdict.HELD, control.witnesses
        results = [judge_mutant(mutant, environment) for mutant in MUTANTS.values()]
    assert [result for result in results if result.verdict is not Verdict.HELD] == []
    assert {result.id for result in results} == set(CHECKS)
