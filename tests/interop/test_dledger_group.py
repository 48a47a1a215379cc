"""A DLedger group of the release keeps the invariants of Raft that its answers show."""

import pytest

from mqproof.conformance.engine.run_options import RunOptions
from mqproof.conformance.registry.suite_registry import SUITES
from mqproof.conformance.suites.dledger.checkers import CHECKERS
from mqproof.report.model import Verdict

pytestmark = pytest.mark.apache


def test_a_group_of_the_release_holds_what_its_answers_show(release: str) -> None:
    part = SUITES["dledger"].run(RunOptions(f"apache:{release}", seed=1, examples=25), lambda *_: None)
    unknown = {"RAFT-2": Verdict.UNKNOWN}
    assert {each.id: each.verdict for each in part.results} == dict.fromkeys(CHECKERS, Verdict.HELD) | unknown
