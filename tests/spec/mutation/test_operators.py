"""Goal: each mutation operator is applied once at every possible place, and nowhere else."""

import pytest

from mqproof.spec.mutation.operators import Kind, mutants

COUNTER = """---- MODULE M ----
VARIABLES x, y
vars == <<x, y>>
Small == x < 3
Add(n) ==
    /\\ Small
    /\\ n \\in 1..x \\* a comment with /\\ x = 1
    /\\ x' = x + n
    /\\ UNCHANGED <<y>>
Set(k) ==
    /\\ \\A i \\in DOMAIN y : y[i] = 0 => i # k
    /\\ y' = [y EXCEPT ![k] = IF x = 2 THEN 1 ELSE @]
    /\\ x' \\in {1, 2}
Next == Add(1) \\/ \\E k \\in {5} : Set(k)
TypeOK == x \\in 0..9
====
"""


def changes(kind: Kind) -> dict[str, str]:
    return {mutant.after: mutant.before for mutant in mutants(COUNTER, "Next") if mutant.kind is kind}


@pytest.mark.parametrize(
    ("kind", "after"),
    [
        (Kind.GUARD, {"/\\ TRUE", "/\\ TRUE \\* a comment with /\\ x = 1"}),
        (Kind.COMPARISON, {"Small == x <= 3", "/\\ \\A i \\in DOMAIN y : y[i] # 0 => i # k"}),
        (Kind.SHIFT, {"Small == x < 4", "/\\ n \\in 1..(x - 1) \\* a comment with /\\ x = 1"}),
        (Kind.UNCHANGED, {"/\\ x' = x", "/\\ y' = y", "/\\ x' \\in {x}"}),
        (Kind.CONDITION, {"/\\ y' = [y EXCEPT ![k] = IF ~(x = 2) THEN 1 ELSE @]"}),
        (Kind.QUANTIFIER, {"/\\ \\E i \\in DOMAIN y : y[i] = 0 => i # k"}),
        (Kind.DISJUNCT, {"Next == FALSE \\/ \\E k \\in {5} : Set(k)", "Next == Add(1) \\/ FALSE"}),
    ],
)
def test_each_kind_of_mutation_is_applied(kind: Kind, after: set[str]) -> None:
    assert after <= set(changes(kind))


def test_assignments_unused_operators_and_unchanged_are_not_mutated() -> None:
    made = mutants(COUNTER, "Next")
    assert {mutant.definition for mutant in made} == {"Small", "Add", "Set", "Next"}
    assert not [mutant for mutant in made if "x' #" in mutant.after or "UNCHANGED" in mutant.before]


def test_each_mutant_has_a_unique_id_and_text_and_changes_one_definition() -> None:
    made = mutants(COUNTER, "Next")
    assert len({mutant.id for mutant in made}) == len({mutant.text for mutant in made}) == len(made) > 20
    for mutant in made:
        lines = zip(COUNTER.splitlines(), mutant.text.splitlines(), strict=True)
        assert 1 <= sum(before != after for before, after in lines) <= 2
        assert mutant.id.startswith(f"M.{mutant.definition}.{mutant.kind}.")


def test_an_action_of_another_module_is_not_mutated_as_a_condition() -> None:
    text = "---- MODULE M ----\nVARIABLE x\nOther == INSTANCE N\nStep == x < 3 /\\ Other!Step(x)\n====\n"
    assert [mutant.after for mutant in mutants(text, "Step")] == [
        "Step == TRUE /\\ Other!Step(x)",
        "Step == x <= 3 /\\ Other!Step(x)",
        "Step == x < 4 /\\ Other!Step(x)",
    ]
