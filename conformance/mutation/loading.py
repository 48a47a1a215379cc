"""Imports one module with a change, instead of the original; no file is written.

The change must be installed before the module is imported for the first time, so a mutant needs a process of
its own.
"""

import importlib.util
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType

from mqproof.conformance.mutation.operators import mutated


class LoadedError(RuntimeError):
    """The module was imported before its change was installed."""


def source_of(module: str) -> Path:
    """Return the source file of a module, without importing it.

    Raises:
        ModuleNotFoundError: there is no such module.
    """
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(f"no module named {module!r}", name=module)
    return Path(spec.origin)


def install(module: str, number: int) -> None:
    """Import that module with its change of that number, when it is imported for the first time.

    Raises:
        LoadedError: the module was imported already.
    """
    if module in sys.modules:
        raise LoadedError(f"{module} was imported before its change was installed")
    sys.meta_path.insert(0, _Finder(module, number))


class _Finder(MetaPathFinder):
    """Finds one module, and leaves all others to the finders that follow."""

    def __init__(self, module: str, number: int) -> None:
        self._module = module
        self._number = number

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != self._module:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.origin is not None:
            spec.loader = _Loader(fullname, spec.origin, self._number)
        return spec


class _Loader(SourceFileLoader):
    def __init__(self, fullname: str, path: str, number: int) -> None:
        super().__init__(fullname, path)
        self._number = number

    def get_code(self, fullname: str) -> CodeType:  # noqa: ARG002
        source = Path(self.path).read_text(encoding="utf-8")
        return compile(mutated(source, self._number), self.path, "exec")
