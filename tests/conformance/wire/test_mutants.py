"""Each mutant of our servers fails the wire case that is named for it."""

import pytest

from mqproof.conformance.mutants import wire
from mqproof.conformance.mutants.wire import MUTANTS
from mqproof.conformance.registry import mutant_judge
from mqproof.conformance.wire.case_results import examine
from mqproof.conformance.wire.catalogue import choose
from mqproof.conformance.wire.model import Verdict as CaseVerdict
from mqproof.conformance.wire.runner import Judged
from mqproof.conformance.wire.server_connection import Address
from mqproof.report.model import Verdict

PATIENT_S = 60.0


@pytest.mark.parametrize("name", MUTANTS)
def test_a_wrong_server_fails_its_case(name: str) -> None:
    (result,) = mutant_judge.run([name])
    assert result.verdict is Verdict.HELD, f"{result.detail}: not noticed by {result.id}"


def test_a_correct_server_fails_none_of_these_cases() -> None:
    cases = choose([mutant.breaks for mutant in MUTANTS.values()])
    with wire.serving() as address:
        judged = examine([Address.parse(address)], cases, lambda *_: None, PATIENT_S)
    assert [(one.case.id, one.verdict, one.detail) for one in judged if isinstance(one, Judged)] == [
        (case.id, CaseVerdict.OK, "") for case in cases
    ]
