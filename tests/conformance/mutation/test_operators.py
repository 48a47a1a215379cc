"""Each operator makes the change that it promises, and leaves text for people, types and logs alone."""

import ast

import pytest

from mqproof.conformance.mutation.operators import OPERATORS, WRONG_VARIABLE, mutants, mutated

_CASES = {
    "negate-condition": ("if a:\n    f()", "if not a:\n    f()"),
    "drop-condition": ("x = a and b", "x = b"),
    "swap-and-or": ("x = a and b", "x = a or b"),
    "shift-comparison": ("x = a < b", "x = a <= b"),
    "shift-constant": ("x = 7", "x = 8"),
    "change-arithmetic": ("x = a + b", "x = a - b"),
    "remove-statement": ("f(a)", "pass"),
    "swap-arguments": ("x = f(a, b)", "x = f(b, a)"),
    "return-early": ("def f() -> None:\n    g()", "def f() -> None:\n    return\n    g()"),
    "swallow-exception": (
        "try:\n    f()\nexcept E:\n    g()",
        "try:\n    f()\nexcept E:\n    pass",
    ),
    "swap-break-continue": ("for x in a:\n    break", "for x in a:\n    continue"),
    WRONG_VARIABLE: ("def f(a: int, b: int):\n    return a", "def f(a: int, b: int):\n    return b"),
}


@pytest.mark.parametrize("operator", [*OPERATORS, WRONG_VARIABLE])
def test_operator_makes_its_change(operator: str) -> None:
    source, expected = _CASES[operator]
    first = next(mutant for mutant in mutants("m", source) if mutant.operator == operator)
    assert ast.unparse(mutated(source, first.number)) == ast.unparse(ast.parse(expected))


@pytest.mark.parametrize(
    "source",
    [
        'def f():\n    """Return 1."""',
        "assert a < 1",
        "_log.warning('%s', 1)",
        "x: int",
        "def f(a: Literal[1] = a) -> Literal[2]: ...",
        "@cache(1)\nclass A: ...",
        "if TYPE_CHECKING:\n    x = 1",
        "class A(Protocol):\n    x = 1",
        "def __repr__(self):\n    return 1",
        "x = f'{1}'",
        "x = max(a, b)",
        "x = f(a, a)",
    ],
)
def test_code_without_effect_on_others_has_no_mutants(source: str) -> None:
    assert mutants("m", source) == ()


def test_mutants_differ_from_the_source_and_from_each_other() -> None:
    source = "def f(a: int, b: int):\n    if a < b and b > 0:\n        return g(a, b) + 1\n    return 0\n"
    texts = [ast.unparse(mutated(source, mutant.number)) for mutant in mutants("m", source)]
    assert len({*texts, ast.unparse(ast.parse(source))}) == len(texts) + 1


def test_mutant_names_its_line_and_the_change() -> None:
    (mutant,) = (m for m in mutants("m", "x = 0\ny = a < b") if m.operator == "shift-comparison")
    assert (mutant.line, mutant.before, mutant.after) == (2, "a < b", "a <= b")


def test_mutant_of_an_if_names_the_line_of_its_condition() -> None:
    source = "def f(a):\n    if (\n        a\n        or 1\n    ):\n        return 1\n    return 2"
    (mutant,) = (m for m in mutants("m", source) if m.operator == "negate-condition")
    assert (mutant.line, mutant.text) == (3, "a")


def test_unknown_number_is_refused() -> None:
    with pytest.raises(IndexError, match="no mutant 5"):
        mutated("x = 1", 5)
