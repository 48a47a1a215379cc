"""Goal: scores are counted correctly, and exactly the surviving mutants have a reason."""

import re
from pathlib import Path

import pytest

from mqproof.spec.mutation import score
from mqproof.spec.mutation.judge import Judgement, Noticed
from mqproof.spec.mutation.score import Score, SurvivorsError

PAGE = Path(__file__).parents[3] / "docs" / "explanation" / "specification.md"
FOUND = (
    Judgement("M.A.guard.1", Noticed.PROPERTY, "TypeOK", "smoke"),
    Judgement("M.A.guard.2", Noticed.EVALUATION, "TLC: evaluation error", "smoke"),
    Judgement("M.A.shift.1", Noticed.EQUIV, "3 states fewer", "smoke"),
    Judgement("M.B.shift.1", Noticed.EQUIV, "3 steps more, 0 fewer", "smoke"),
    Judgement("M.B.guard.1", Noticed.LABELS, "3 steps more, 0 fewer", "smoke"),
    Judgement("M.B.disjunct.1", Noticed.WITNESS, "Drop", "probes"),
    Judgement("M.B.unchanged.1", Noticed.NOT, "", "ci"),
)


def test_scores_are_percentages_of_the_mutants_that_change_the_behaviour() -> None:
    counted = Score("M", FOUND)
    assert counted.different == 5
    assert (counted.by_properties, counted.with_witnesses, counted.with_equiv) == (0.4, 0.6, 1.0)
    assert score.table([counted]).rows == (
        ("M", "7", "0", "1", "1", "1", "2", "1", "1", "0", "40.0%", "60.0%", "100.0%"),
    )
    assert score.kinds([counted]).rows == (
        ("disjunct", "1", "0", "0%"),
        ("guard", "2", "2", "100%"),
        ("shift", "2", "0", "0%"),
    )


@pytest.mark.parametrize(
    ("reasons", "wrong"),
    [
        ({"M.B.unchanged.1": "the same value"}, []),
        ({}, ["M.B.unchanged.1: not detected, and no reason is given"]),
        (
            {"M.B.unchanged.1": "the same value", "M.A.shift.1": "irrelevant"},
            ["M.A.shift.1: a reason is given, but 3 states fewer detects it"],
        ),
        (
            {"M.B.unchanged.1": "the same value", "M.C.guard.9": "gone"},
            ["M.C.guard.9: a reason is given, but there is no such mutant"],
        ),
    ],
    ids=[
        "explained",
        "survivor without a reason",
        "reason for a detected mutant",
        "reason for an unknown mutant",
    ],
)
def test_exactly_the_surviving_mutants_must_have_a_reason(reasons: dict[str, str], wrong: list[str]) -> None:
    assert score.unexplained(FOUND, reasons) == wrong


def test_recording_the_scores_of_one_model_keeps_those_of_others(tmp_path: Path) -> None:
    file = tmp_path / "scores.json"
    score.record([Score("M", FOUND)], file)
    score.record([Score("N", FOUND[:1])], file)
    assert score.recorded(file) == {"M": Score("M", FOUND), "N": Score("N", FOUND[:1])}


def test_survivors_toml_is_read_and_a_wrong_type_is_reported(tmp_path: Path) -> None:
    file = tmp_path / "survivors.toml"
    assert score.survivors(file) == {}
    file.write_text('[M]\n"A.guard.1" = "why"\n')
    assert score.survivors(file) == {"M.A.guard.1": "why"}
    file.write_text("[M]\nA = 1\n")
    with pytest.raises(SurvivorsError, match=r"survivors\.toml: Expected `str`, got `int`"):
        score.survivors(file)


def test_the_page_lists_each_surviving_mutant_with_its_reason() -> None:
    page = PAGE.read_text(encoding="utf-8")
    shown = re.findall(r"^\| `(\w+\.\w+\.\w+\.\d+)` \| (.+) \|$", page, re.MULTILINE)
    assert dict(shown) == score.survivors()
