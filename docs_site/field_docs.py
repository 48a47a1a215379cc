"""The fields of configuration classes with their docstrings, which Python itself does not keep."""

import ast
import inspect
import textwrap
from dataclasses import MISSING, fields
from functools import cache
from typing import Any


@cache
def field_docs(part: type) -> dict[str, str]:
    """Return each field's docstring: the string after its annotation, or an empty one."""
    (definition,) = ast.parse(textwrap.dedent(inspect.getsource(part))).body
    assert isinstance(definition, ast.ClassDef)
    found: dict[str, str] = {}
    name = ""
    for statement in definition.body:
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            name = statement.target.id
            found[name] = ""
        elif name and isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
            found[name] = inspect.cleandoc(str(statement.value.value))
            name = ""
        else:
            name = ""
    return found


def defaults(part: type) -> dict[str, Any]:
    """Return the default value of each field that has one."""
    found = {}
    for field in fields(part):
        if field.default is not MISSING:
            found[field.name] = field.default
        elif field.default_factory is not MISSING:
            found[field.name] = field.default_factory()
    return found
