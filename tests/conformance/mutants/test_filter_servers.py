"""Each mutant of a filter server fails its wire case, and a correct one fails none of these cases."""

import pytest

from mqproof.conformance.hosts import sandbox
from mqproof.conformance.hosts.sandbox import MISSING
from mqproof.conformance.mutants import filter_servers
from mqproof.conformance.mutants.filter_servers import CASES_OF, MUTANTS, OF_DECISIONS
from mqproof.conformance.registry import mutant_judge
from mqproof.conformance.wire.case_results import examine
from mqproof.conformance.wire.catalogue import choose
from mqproof.conformance.wire.model import Server
from mqproof.conformance.wire.model import Verdict as CaseVerdict
from mqproof.conformance.wire.runner import Judged
from mqproof.conformance.wire.server_connection import Address
from mqproof.report.model import Verdict

PATIENT_S = 60.0
ALSO_FUZZED = ("failure-rejects", "failure-selects", "function-ignored")
"""Mutants that tests/fuzz/test_mutants.py kills in every run, too, without sockets."""
_DEEP = pytest.mark.deep("tests/fuzz/test_mutants.py kills it without sockets")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=_DEEP if name in ALSO_FUZZED else ()) for name in MUTANTS]
)
def test_a_wrong_filter_server_fails_its_case(name: str) -> None:
    (result,) = mutant_judge.run([name])
    assert result.verdict is Verdict.HELD, f"{result.detail}: not noticed by {CASES_OF.get(name, result.id)}"


def test_a_correct_filter_server_fails_none_of_these_cases() -> None:
    assert CASES_OF.keys() == OF_DECISIONS.keys()
    cases = choose([CASES_OF.get(name, mutant.breaks) for name, mutant in MUTANTS.items()])
    assert {case.server for case in cases} == {Server.FILTER_SERVER}
    with filter_servers.serving() as address:
        judged = examine([Address.parse(address)], cases, lambda *_: None, PATIENT_S)
    assert [(one.case.id, one.verdict, one.detail) for one in judged if isinstance(one, Judged)] == [
        (case.id, CaseVerdict.OK, "") for case in cases
    ]


def test_without_the_sandbox_a_mutant_is_not_tested(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "find_spec", lambda _: None)
    (result,) = mutant_judge.run(["failure-rejects"])
    assert (result.verdict, result.detail) == (Verdict.NOT_TESTED, MISSING)
