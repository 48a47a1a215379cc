"""Targets written by users: `python:MODULE:CLASS`, in the working folder or on the path."""

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mqproof.conformance.engine.targets import PYTHON, UnknownTargetError


def adapter_class(name: str) -> type[Any]:
    """Return the class with that name.

    Raises:
        UnknownTargetError: there is none, or its module cannot be imported.
    """
    module_name, _, class_name = name.removeprefix(PYTHON).partition(":")
    if not module_name or not class_name:
        raise UnknownTargetError(f"{name!r}: python:MODULE:CLASS expected")
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.insert(0, here)
    try:
        module = importlib.import_module(module_name)
    except Exception as error:
        raise UnknownTargetError(f"{name!r}: {module_name}: {type(error).__name__}: {error}") from None
    found = getattr(module, class_name, None)
    if not isinstance(found, type):
        raise UnknownTargetError(f"{name!r}: {module_name} has no class {class_name}")
    return found


def adapter(name: str, protocol: type[object]) -> Callable[[], Any]:
    """Return the class as a factory, for suites that require `protocol`.

    Raises:
        UnknownTargetError: as above, or the class lacks members.
    """
    found = adapter_class(name)
    if lacking := [member for member in members(protocol) if not hasattr(found, member)]:
        raise UnknownTargetError(f"{name!r} is not a {protocol.__name__}: it lacks {', '.join(lacking)}")
    return found


def members(protocol: type[object]) -> tuple[str, ...]:
    """Return the members that a class must have, in the protocol's order."""
    return tuple(name for name in vars(protocol) if not name.startswith("_"))
