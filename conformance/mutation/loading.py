"""Puts changed code in the place of the original; no file is written.

A change inside a function replaces the code of the function that is already imported. Any other change must
be installed before its module is imported for the first time, so it needs a new process.
"""

import gc
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, FunctionType, ModuleType

from mqproof.conformance.engine.coverage_feedback import IMPL_FOLDER, PARTS


class LoadedError(RuntimeError):
    """The module was imported before its change was installed."""


def modules(parts: Iterable[str]) -> dict[str, Path]:
    """Return the modules of these folders of `impl/` with their files, by dotted name."""
    found = {}
    for part in parts:
        for file in sorted((IMPL_FOLDER / part).rglob("*.py")):
            if file.name != "__init__.py":
                inside = file.relative_to(IMPL_FOLDER.parent).with_suffix("")
                found[".".join(("mqproof", *inside.parts))] = file
    return found


def import_all() -> None:
    """Import every module of `impl/` that the suites test; one whose extra is missing is left out."""
    for module in modules(PARTS):
        with suppress(ImportError):
            importlib.import_module(module)


def source_of(module: str) -> Path:
    """Return the source file of a module, without importing it.

    Raises:
        ModuleNotFoundError: there is no such module.
    """
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(f"no module named {module!r}", name=module)
    return Path(spec.origin)


def changed_functions(original: CodeType, changed: CodeType) -> Mapping[CodeType, CodeType] | None:
    """Map the code of each outermost function that differs to its changed code.

    None: the change is not inside functions alone, so the module must be imported with it.
    """
    if _own(original) != _own(changed):
        return None
    found: dict[CodeType, CodeType] = {}
    for before, after in zip(_nested(original), _nested(changed), strict=True):
        if before.co_flags & inspect.CO_OPTIMIZED:  # a function, not the body of a class
            if not _is_same(before, after):
                found[before] = after
        elif (inside := changed_functions(before, after)) is None:
            return None
        else:
            found.update(inside)
    return found if all(len(a.co_freevars) == len(b.co_freevars) for a, b in found.items()) else None


def are_imported(codes: Iterable[CodeType]) -> bool:
    """Return whether an imported function has each of these codes."""
    return set(codes) <= {function.__code__ for function in _functions()}


def replace_functions(codes: Mapping[CodeType, CodeType]) -> None:
    """Give every imported function with such code its changed code."""
    for function in _functions():
        if function.__code__ in codes:
            function.__code__ = codes[function.__code__]


def install(codes: Mapping[str, CodeType]) -> None:
    """Import these modules with this code, when they are imported for the first time.

    Raises:
        LoadedError: a module was imported already.
    """
    for module in codes:
        if module in sys.modules:
            raise LoadedError(f"{module} was imported before its change was installed")
    sys.meta_path.insert(0, _Finder(codes))


def _functions() -> list[FunctionType]:
    return [each for each in gc.get_objects() if isinstance(each, FunctionType)]


def _own(code: CodeType) -> tuple[object, ...]:
    """Return what a code does, without its nested code and without its line numbers."""
    plain = tuple((type(each), each) if not isinstance(each, CodeType) else None for each in code.co_consts)
    return code.co_code, code.co_names, code.co_varnames, code.co_exceptiontable, plain


def _nested(code: CodeType) -> Iterator[CodeType]:
    return (each for each in code.co_consts if isinstance(each, CodeType))


def _is_same(one: CodeType, other: CodeType) -> bool:
    return _own(one) == _own(other) and all(map(_is_same, _nested(one), _nested(other)))


class _Finder(MetaPathFinder):
    """Finds the changed modules, and leaves all others to the finders that follow."""

    def __init__(self, codes: Mapping[str, CodeType]) -> None:
        self._codes = codes

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname not in self._codes:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.origin is not None:
            spec.loader = _Loader(fullname, spec.origin, self._codes[fullname])
        return spec


class _Loader(SourceFileLoader):
    def __init__(self, fullname: str, path: str, code: CodeType) -> None:
        super().__init__(fullname, path)
        self._code = code

    def get_code(self, fullname: str) -> CodeType:  # noqa: ARG002
        return self._code
