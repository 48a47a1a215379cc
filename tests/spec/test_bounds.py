"""Goal: new behaviour of a model with larger constants is reported, and known behaviour is not."""

from dataclasses import replace
from pathlib import Path

import pytest

from mqproof.spec import bounds
from mqproof.spec.model_file import Kind, Models, Question, load

HERE = Path(__file__).parent
COUNTER = load(HERE / "models.toml")

LIMITED = """---- MODULE Limited ----
EXTENDS Naturals
CONSTANTS Max, Nodes, Mode
VARIABLES x, seen, role
vars == <<x, seen, role>>
Init == x = 0 /\\ seen = [n \\in Nodes |-> {}] /\\ role = "idle"
Up == x < Max /\\ x' = x + 1 /\\ UNCHANGED <<seen, role>>
See(n) == x \\notin seen[n] /\\ seen' = [seen EXCEPT ![n] = @ \\cup {x}] /\\ UNCHANGED <<x, role>>
Lead == x = 2 /\\ role = "idle" /\\ role' = "leader" /\\ UNCHANGED <<x, seen>>
Next == Up \\/ Lead \\/ \\E n \\in Nodes : See(n)
Spec == Init /\\ [][Next]_vars
====
"""
CONFIG = """SPECIFICATION Spec
CONSTANTS
    Max = 1
    Nodes = {"n1"}
    Mode = "fast"
"""


@pytest.fixture
def limited(tmp_path: Path) -> Models:
    (tmp_path / "tla").mkdir()
    (tmp_path / "tla" / "Limited.tla").write_text(LIMITED)
    (tmp_path / "tla" / "Limited.cfg").write_text(CONFIG)
    runs = '[[Limited.runs]]\ncfg = "Limited.cfg"\nprofiles = ["ci"]\nstates = 6\ndepth = 4\n'
    text = '[Limited]\nabout = ""\nmodule = "Limited"\ncfg = "Limited.cfg"\n' + runs
    (tmp_path / "models.toml").write_text(text)
    return load(tmp_path / "models.toml")


def test_numbers_and_sets_of_numbered_names_can_grow_but_other_constants_cannot() -> None:
    question = next(q for q in COUNTER.questions["Counter"] if q.kind is Kind.CHECK)
    grown = {growth.constant: growth.after for growth in bounds.grown(question)}
    assert grown == {"Nodes": "{n1, n2, n3}", "Max": "3"}
    words = question.config.without("CONSTANT").with_section("CONSTANT", 'M = {"SYNC", "A"}')
    assert not list(bounds.grown(replace(question, config=words)))


def test_behaviour_that_needs_a_larger_constant_is_reported(limited: Models) -> None:
    found = {each.growth.constant: each for each in bounds.compare(limited, "Limited", 60)}
    assert set(found) == {"Max", "Nodes"}
    assert found["Max"].kinds == ("Lead role leader",)
    assert 'Limited: role = "idle"' in found["Max"].outcomes
    assert found["Nodes"].states > 6
    assert found["Nodes"].kinds == found["Nodes"].outcomes == ()
    assert bounds.table(found.values()).rows[0][:5] == ("Limited", "Limited", "Max", "1", "2")


def test_an_unfinished_run_is_marked_in_the_table(limited: Models) -> None:
    (growth,) = (g for g in bounds.grown(limited.questions["Limited"][0]) if g.constant == "Max")
    unfinished = bounds.Comparison("Limited", growth, 0, (), (), "TLC: time-out")
    assert bounds.table([unfinished]).rows[0][5] == "not finished"


def test_each_constant_grows_from_its_largest_value_in_the_run_with_the_fewest_exclusions() -> None:
    question = next(q for q in COUNTER.questions["Counter"] if q.kind is Kind.CHECK)

    def run(name: str, most: int, *never: str) -> Question:
        words = question.config.without("CONSTANT").with_section("CONSTANT", f"Max = {most}\nWeight = 1")
        return replace(question, name=name, config=words, never=never)

    found = bounds.furthest([run("excluding", 2, "Up"), run("small", 1), run("large", 2)])
    assert [(g.constant, g.after, g.question.name) for g in found] == [
        ("Max", "3", "large Max"),
        ("Weight", "2", "small Weight"),
    ]


def test_a_constant_that_assume_limits_is_reported_as_forbidden_to_grow(limited: Models) -> None:
    module = limited.libraries[0] / "Limited.tla"
    module.write_text(LIMITED.replace("VARIABLES", "ASSUME Max < 2\nVARIABLES"))
    found = {each.growth.constant: each for each in bounds.compare(limited, "Limited", 60)}
    assert found["Max"].forbidden
    assert not found["Nodes"].forbidden
    assert bounds.table([found["Max"]]).rows[0][5] == "forbidden by ASSUME"
