"""Generates an adapter to start with, for any suite: the members of its target, without any code yet."""

import ast
import inspect
import sys
from collections.abc import Iterator
from typing import Final

CLASS: Final = "MyTarget"
_ATTRIBUTES: Final = {"name": '"python:MODULE:MyTarget"', "capabilities": "frozenset()"}
"""Properties that have the same value for every object."""


def skeleton(protocol: type[object], suite: str) -> str:
    """Return the source of a module with one class that has all members of the protocol.

    The module can be imported; its methods raise NotImplementedError.
    """
    (declared,) = ast.parse(inspect.getsource(protocol)).body
    assert isinstance(declared, ast.ClassDef)
    members = [member for member in declared.body if isinstance(member, ast.FunctionDef)]
    lines = [
        f'"""The target of the suite {suite}: fill in the methods, then\n',
        f"    mqproof conform check-adapter python:MODULE:{CLASS}",
        f"    mqproof conform --target python:MODULE:{CLASS} --suite {suite}",
        '"""\n',
        f"from {protocol.__module__} import {', '.join(_names(members, protocol))}\n\n",
        f"class {CLASS}:",
        f'    """{inspect.cleandoc(protocol.__doc__ or "")}"""'.replace("\n", "\n    "),
        *(line for member in members for line in _member(member)),
    ]
    return "\n".join(lines) + "\n"


def _member(member: ast.FunctionDef) -> Iterator[str]:
    yield ""
    if (value := _ATTRIBUTES.get(member.name)) and member.returns:
        yield f"    {member.name}: {ast.unparse(member.returns)} = {value}"
        return
    if member.decorator_list:
        yield "    @property"
    returns = f" -> {ast.unparse(member.returns)}" if member.returns else ""
    yield f"    def {member.name}({ast.unparse(member.args)}){returns}:"
    if docstring := ast.get_docstring(member):
        yield "        " + f'"""{docstring}"""'.replace("\n", "\n        ")
    yield "        raise NotImplementedError"


def _names(members: list[ast.FunctionDef], protocol: type[object]) -> list[str]:
    """Return the names from the protocol's module that the signatures use."""
    known = vars(sys.modules[protocol.__module__])
    signatures = [part for member in members for part in (member.args, member.returns) if part]
    used = {node.id for part in signatures for node in ast.walk(part) if isinstance(node, ast.Name)}
    return sorted(used & known.keys())
