"""Goal: our small TLA+ parser reads all our modules, and its nodes have exact positions."""

from pathlib import Path

import pytest

from mqproof.spec.model_file import MODELS_FILE
from mqproof.spec.syntax import Node, SyntaxProblemError, parse

TLA = MODELS_FILE.parent / "tla"


def body(text: str) -> tuple[str, Node]:
    module = parse(f"---- MODULE M ----\nOp(a, b) ==\n{text}\nNext == x\n====\n")
    assert set(module.definitions) == {"Op", "Next"}
    assert module.definitions["Op"].parameters == ("a", "b")
    return module.source(module.definitions["Op"].body), module.definitions["Op"].body


@pytest.mark.parametrize("file", sorted(TLA.rglob("*.tla")), ids=lambda file: file.stem)
def test_each_of_our_modules_is_parsed(file: Path) -> None:
    module = parse(file.read_text(encoding="utf-8"))
    assert module.name == file.stem
    assert module.definitions


@pytest.mark.parametrize(
    ("text", "kind", "op", "parts"),
    [
        ("  a /\\ b => a", "infix", "=>", ["a /\\ b", "a"]),
        ("  ~a = b", "prefix", "~", ["a = b"]),
        (
            "  a' = [a EXCEPT ![b] = @ + 1, ![c].d = 2]",
            "infix",
            "=",
            ["a'", "[a EXCEPT ![b] = @ + 1, ![c].d = 2]"],
        ),
        ("  \\A x, y \\in a : x < y", "quantifier", "\\A", ["a", "x < y"]),
        ("  {x \\in a : x # b}", "filter", "", ["a", "x # b"]),
        ("  {x + 1 : x \\in a}", "map", "", ["a", "x + 1"]),
        ("  [x \\in a |-> f[x]]", "function", "", ["a", "f[x]"]),
        ("  [a -> b]", "functions", "", ["a", "b"]),
        ("  [kind |-> a, term |-> b]", "record", "kind term", ["a", "b"]),
        ("  [][a => b]_vars", "prefix", "[]", ["[a => b]_vars"]),
        ("  [][a]_<<x, y>>", "prefix", "[]", ["[a]_<<x, y>>"]),
        ("  IF a THEN 1 ELSE b", "if", "IF", ["a", "1", "b"]),
        ("  CASE a -> 1 [] b -> 2 [] OTHER -> 3", "case", "CASE", ["a", "1", "b", "2", "3"]),
        ("  LET p == a IN p + b", "let", "LET", ["a", "p + b"]),
        ("  SelectSeq(a, LAMBDA r : r # b)", "apply", "SelectSeq", ["a", "LAMBDA r : r # b"]),
        ("  WF_vars(a)", "apply", "WF_vars", ["a"]),
        ("  a.b[1]'", "prime", "'", ["a.b[1]"]),
        ("  1..Len(a)", "infix", "..", ["1", "Len(a)"]),
    ],
)
def test_an_expression_has_the_right_kind_operator_and_parts(
    text: str, kind: str, op: str, parts: list[str]
) -> None:
    source, node = body(text)
    assert source == text.strip()
    assert (node.kind, node.op) == (kind, op)
    shift = node.start
    assert [source[part.start - shift : part.end - shift] for part in node.parts] == parts


def test_a_junction_list_ends_at_a_smaller_column() -> None:
    source, node = body("    /\\ a\n    /\\ \\/ b\n       \\/ c /\\ d\n    /\\ e  \\* why\n")
    assert [part.kind for part in node.parts] == ["name", "junction", "name"]
    assert [part.kind for part in node.parts[1].parts] == ["name", "infix"]
    assert source.endswith("e")


def test_operators_that_refer_to_the_next_state_indirectly_are_found() -> None:
    module = parse("---- MODULE M ----\nA == x' = 1\nB == y = 2\nC == B /\\ A\nD == UNCHANGED x\n====\n")
    assert module.changing == {"A", "C", "D"}


def test_the_error_for_unsupported_syntax_names_the_line_and_column() -> None:
    with pytest.raises(SyntaxProblemError, match=r"M\.tla:2:8: '\)' found, an expression expected"):
        parse("---- MODULE M ----\nA == (x)\nB == \\A\n".replace("(x)", "( )") + "====\n")
