"""The page for Spring users names what the client has: the functions exist, with these parameters."""

import ast
import inspect
import re

import pytest

import mqproof
import mqproof.client
from tests.docs.console import ROOT

PAGE = (ROOT / "docs" / "how-to" / "spring.md").read_text(encoding="utf-8")
CELLS = [row.split(" | ", 1)[1] for row in re.findall(r"^\| .* \| .*$", PAGE, re.MULTILINE)]
CODE = [code for cell in CELLS for code in re.findall(r"`([^`]+)`", cell)]
METHODS = {
    "producer": mqproof.Producer,
    "consumer": mqproof.PushConsumer,
    "MessageSelector": mqproof.client.MessageSelector,
    "TransactionProducer": mqproof.client.TransactionProducer,
}


def calls(code: str) -> list[ast.Call]:
    try:
        return [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Call)]
    except SyntaxError:
        return []


def called(call: ast.Call) -> object:
    """Return what a call names: a public name, or a method of one; None for other libraries."""
    match call.func:
        case ast.Name(name):
            return getattr(mqproof.client, name, None) or getattr(mqproof, name)
        case ast.Attribute(ast.Name(owner), name) if owner in METHODS:
            return getattr(METHODS[owner], name)
    return None


@pytest.mark.parametrize("code", CODE)
def test_every_call_has_parameters_of_these_names(code: str) -> None:
    for call in calls(code):
        function = called(call)
        if function is not None:
            parameters = inspect.signature(function).parameters  # type: ignore[arg-type]
            assert {each.arg for each in call.keywords} <= parameters.keys()


def test_the_example_is_code_whose_imports_exist() -> None:
    (example,) = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    imports = [line for line in example.splitlines() if line.startswith("from ")]
    exec("\n".join(imports))
    compile(example, "spring.md", "exec")
    assert sum(bool(calls(code)) for code in CODE) > 15
