"""The score counts white spots and endless mutants as not detected, and leaves out stated equivalents."""

from pathlib import Path

import pytest

from mqproof.conformance.mutation.campaign import Judged
from mqproof.conformance.mutation.examiner import Outcome, Verdict
from mqproof.conformance.mutation.loading import modules
from mqproof.conformance.mutation.operators import Mutant, mutants
from mqproof.conformance.mutation.score import EquivalentsError, counted, equivalents, key, percent, report
from mqproof.report import model


def _judged(number: int, outcome: Outcome, suite: str = "flush", part: str = "store") -> Judged:
    mutant = Mutant(f"mqproof.impl.{part}.m", number, "shift-constant", 3, str(number), str(number + 1))
    reached = () if outcome is Outcome.UNREACHED else ("wire", "flush")
    return Judged(mutant, reached, Verdict(outcome, suite if outcome is Outcome.VIOLATION else ""))


def test_only_detected_mutants_raise_the_score() -> None:
    outcomes = [Outcome.VIOLATION, Outcome.BROKEN, Outcome.ENDLESS, Outcome.SURVIVED, Outcome.UNREACHED]
    assert percent([_judged(number, each) for number, each in enumerate(outcomes)]) == 40
    assert percent([]) == 0


def test_stated_equivalent_does_not_count_unless_it_is_detected() -> None:
    survived, detected = _judged(1, Outcome.SURVIVED), _judged(2, Outcome.VIOLATION)
    reasons = {survived.mutant.module: {key(survived.mutant): "why", key(detected.mutant): "why"}}
    assert counted([survived, detected], reasons) == ((detected,), (survived,))


def test_part_below_the_goal_is_violated() -> None:
    judged = [
        _judged(1, Outcome.VIOLATION),
        _judged(2, Outcome.SURVIVED),
        _judged(3, Outcome.VIOLATION, part="client"),
    ]
    found = {result.name: result for result in report(judged, {}, 90).results}
    assert found["The suites detect mutants of impl/store"].verdict is model.Verdict.VIOLATED
    assert found["The suites detect mutants of impl/client"].verdict is model.Verdict.HELD
    assert "50%" in found["The suites detect mutants of impl/store"].detail


def test_a_folder_of_patches_has_a_row_for_each_and_its_own_replay() -> None:
    one = _judged(1, Outcome.VIOLATION)
    found = report([one], {}, 90, Path("my bugs"))
    (table,) = (table for table in found.tables if table.title == "Patches")
    assert table.rows == (("1", "impl.store.m:3", "violation", "flush", ""),)
    assert found.results[0].replay == "mqproof mutate-impl --patches 'my bugs'"


def test_suite_that_ran_after_the_detection_judged_nothing() -> None:
    tables = {
        table.title: table.rows for table in report([_judged(1, Outcome.VIOLATION, "wire")], {}, 0).tables
    }
    assert tables["Mutants by suite, the fastest first"] == (("wire", "1", "1"),)


def test_equivalents_are_mutants_that_exist() -> None:
    files = modules(("broker", "store", "namesrv", "replication", "dledger", "remoting", "client"))
    for module, reasons in equivalents().items():
        existing = {key(each) for each in mutants(module, files[module].read_text(encoding="utf-8"))}
        assert reasons.keys() <= existing, module


def test_equivalent_without_a_reason_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "equivalents.toml"
    file.write_text('[m]\n"shift" = ""\n', encoding="utf-8")
    with pytest.raises(EquivalentsError, match="MUTANT = REASON"):
        equivalents(file)
