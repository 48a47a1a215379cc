"""Goal: the coverage report of a real run is read: actions taken, expressions evaluated or not evaluated."""

from mqproof.spec.tlc import output
from mqproof.spec.tlc.coverage_report import Place, sections
from mqproof.spec.tlc.run import Job, run

MODULE = """---- MODULE M ----
EXTENDS Naturals
VARIABLE x
Init == x = 0
Up == x < 3 /\\ x' = x + 1
Dead ==
    /\\ x > 7
    /\\ x' = 1
Set == \\E n \\in 0..x : x' = n
Next == Up \\/ Dead \\/ Set
Small == x <= 3
====
"""


def test_the_report_counts_actions_invariants_and_their_expressions() -> None:
    config = "INIT Init\nNEXT Next\nINVARIANT Small\n"
    text = run(Job("M", config, (), {"M": MODULE}, coverage=True)).text
    found = {each.name: each for each in sections(output.read(text))}
    assert found["Init"].kind == "init"
    assert (found["Up"].distinct, found["Up"].generated, found["Up"].line) == (3, 3, 5)
    assert (found["Dead"].distinct, found["Dead"].generated) == (0, 0)
    guard, update = (each for each in found["Dead"].expressions if each.depth == 0)
    assert (guard.place, guard.evaluated) == (Place("M", 7, 8, 7, 12), 4)
    assert (update.place.line, update.evaluated) == (8, 0)
    assert found["Small"].kind == "property"
    assert found["Small"].expressions[0].evaluated == 4


def test_a_run_without_coverage_has_no_sections() -> None:
    assert sections(output.read(run(Job("M", "INIT Init\nNEXT Next\n", (), {"M": MODULE})).text)) == ()
