"""The suite `inspections`: one result for each inspection, and a violation if a value differs."""

import pytest

from mqproof.conformance.adapters import inspection_cases, own_checks
from mqproof.conformance.engine.run_options import RunOptions
from mqproof.conformance.engine.targets import UnknownTargetError
from mqproof.report.model import Result, Verdict, Witness


def silent(*_: int) -> None:
    """Show no progress."""


def test_each_inspection_is_a_case() -> None:
    ids = [each.id for each in inspection_cases.listed(RunOptions("impl"))]
    assert len(ids) == len(own_checks.inspections())
    assert "inspections/topics-and-groups" in ids


def test_a_selected_inspection_runs_alone() -> None:
    part = inspection_cases.run(RunOptions("impl", ids=("inspections/no-accounts",)), silent)
    assert [(each.name, each.verdict) for each in part.results] == [("no accounts", Verdict.HELD)]


def test_an_inspection_that_fails_is_violated_and_can_be_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_checks, "inspected", lambda _: (Witness("1, expected 2"),))
    (found,) = inspection_cases.run(RunOptions("impl", ids=("*/users",)), silent).results
    assert (found.verdict, found.witnesses) == (Verdict.VIOLATED, (Witness("1, expected 2"),))
    assert found.replay == "mqproof conform --target impl --suite inspections --id inspections/users"


def test_the_others_are_one_row() -> None:
    options = RunOptions("impl", ids=("*/users", "*/no-accounts"))
    (row,) = inspection_cases.run(options, silent).summary or ()
    assert (row.verdict, row.counts) == (Verdict.HELD, {"inspections": 2})
    failed = Result("inspections/users", "users", "inspections", Verdict.VIOLATED)
    assert inspection_cases.in_short((failed,)) == (failed,)


def test_other_targets_are_refused() -> None:
    with pytest.raises(UnknownTargetError, match="our own servers"):
        inspection_cases.run(RunOptions("reference"), silent)


def test_an_installed_package_has_no_inspections(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_checks, "ARE_THERE", False)
    assert inspection_cases.listed(RunOptions("impl")) == ()
