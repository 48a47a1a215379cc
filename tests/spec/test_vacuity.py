"""Goal: actions never taken and vacuous properties are found. Method: Counter with both injected."""

from dataclasses import replace
from pathlib import Path

import pytest

from mqproof.report.model import Result, Verdict
from mqproof.spec import models
from mqproof.spec.actions import leaves
from mqproof.spec.actions import load as load_modules
from mqproof.spec.model_file import Kind, Models, Question, load
from mqproof.spec.vacuity import plan

HERE = Path(__file__).parent
COUNTER = load(HERE / "models.toml")
(VACUITY,) = (question for question in COUNTER.questions["Counter"] if question.kind is Kind.VACUITY)

DEAD = """---- MODULE Dead ----
EXTENDS Counter
Undo == owner = NoNode /\\ owner # NoNode /\\ UNCHANGED vars
DeadNext == Undo \\/ Next
DeadSpec == Init /\\ [][DeadNext]_vars
Emptied == \\A n \\in {x \\in Nodes : count[x] > Max} : log # << >>
OnlyOne == [][owner = NoNode /\\ owner' = NoNode => UNCHANGED log]_vars
Acquired == [][\\A n \\in {m \\in Nodes : owner # NoNode /\\ owner' = m /\\ owner # m} : count[n] = 0]_vars
Quicker == [][UNCHANGED owner \\/ \\A n \\in {m \\in Nodes : count[m] > Max} : count[n] = 0]_vars
Released == (\\E n \\in Nodes : count[n] > Max) ~> owner = NoNode
====
"""


def results_of(run: Question, known: Models = COUNTER) -> dict[str, Result]:
    return {result.name: result for result in models.ask(known, run).results}


@pytest.fixture
def dead(tmp_path: Path) -> Models:
    """Counter with an action that is never taken and with vacuous properties."""
    (tmp_path / "tla").mkdir()
    for file in (HERE / "tla").glob("*.tla"):
        (tmp_path / "tla" / file.name).symlink_to(file)
    (tmp_path / "tla" / "Dead.tla").write_text(DEAD)
    return Models(tmp_path / "models.toml", {})


def with_property(name: str) -> Question:
    config = VACUITY.config.without("INVARIANT", "PROPERTY").with_section("PROPERTY", name)
    return replace(VACUITY, module="Dead", config=config)


def test_runs_with_the_same_constants_share_one_vacuity_run_with_all_their_properties() -> None:
    assert VACUITY.name == "Counter_vacuity"
    assert VACUITY.profiles == ("ci",)
    assert set(VACUITY.config.properties) == {"TypeOK", "WithinMax", "NeverDown", "Takes"}


def test_both_checks_hold_if_every_action_is_taken_and_no_property_is_vacuous() -> None:
    results = results_of(VACUITY)
    assert results["EveryActionTaken"].counts["actions"] == 3
    assert results["NoVacuity"].counts["antecedents"] == 2
    assert {result.verdict for result in results.values()} == {Verdict.HELD}


def test_a_claim_that_was_noted_is_not_evaluated_again() -> None:
    job = plan(VACUITY, COUNTER.libraries).job
    noting = [line.strip() for line in job.sources[job.module].splitlines() if "=> Noted(" in line]
    assert noting == [f"/\\ IF IsNoted({n}) THEN TRUE ELSE Claim_{n} => Noted({n})" for n in (4, 5)]


def test_an_action_that_is_never_taken_is_named(dead: Models) -> None:
    run = replace(with_property("Takes"), config=VACUITY.config.specified("DeadSpec"))
    taken = results_of(run, dead)["EveryActionTaken"]
    assert taken.verdict is Verdict.VIOLATED
    assert taken.detail == "never taken: Undo"


@pytest.mark.parametrize(
    ("name", "antecedent"),
    [
        ("Emptied", "\\A n \\in {x \\in Nodes : count[x] > Max}"),
        ("Released", "(\\E n \\in Nodes : count[n] > Max)"),
        ("Acquired", "\\A n \\in {m \\in Nodes : owner # NoNode /\\ owner' = m /\\ owner # m}"),
        ("Quicker", "\\A n \\in {m \\in Nodes : count[m] > Max}"),
        ("OnlyOne", "owner = NoNode /\\ owner' = NoNode"),
    ],
)
def test_a_property_with_an_antecedent_that_is_never_true_is_named(
    dead: Models, name: str, antecedent: str
) -> None:
    result = results_of(with_property(name), dead)["NoVacuity"]
    assert result.verdict is Verdict.VIOLATED
    assert result.detail == f"never true: {name}: {antecedent}"


def test_an_action_or_property_listed_under_never_fails_only_if_it_occurs(dead: Models) -> None:
    excluded = replace(with_property("Emptied"), never=("Emptied",))
    assert results_of(excluded, dead)["NoVacuity"].verdict is Verdict.HELD
    wrong = results_of(replace(VACUITY, never=("Drop", "WithinMax")))
    assert wrong["EveryActionTaken"].detail == "taken, but listed under never: Drop"
    assert wrong["NoVacuity"].detail == "true, but listed under never: WithinMax"


def test_the_actions_are_the_branches_of_the_disjunctions_of_next(tmp_path: Path) -> None:
    text = """---- MODULE M ----
VARIABLE x
Up == x' = x + 1
Jump(n) == \\/ x = 0 /\\ x' = n
           \\/ x = 1 /\\ x' = 0
Down == IF x > 0 THEN x' = x - 1 ELSE FALSE
MCUp == x < 5 /\\ Up
Moves == Down \\/ \\E n \\in 1..3 : Jump(n)
Next == \\/ MCUp
        \\/ x < 3 /\\ Moves
====
"""
    (tmp_path / "M.tla").write_text(text)
    assert leaves(load_modules("M", [tmp_path]), "Next") == ["MCUp", "Down", "Jump"]
