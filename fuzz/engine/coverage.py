"""Measures which edges of the watched code an execution took, and how often, through `sys.settrace`.

Python 3.12 has a cheaper way (`sys.monitoring`), but this one also works on 3.11. Only frames of watched
modules are traced line by line, so the code around them runs at full speed.
"""

import importlib
import importlib.util
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from types import CodeType, FrameType, ModuleType
from typing import Any, Final

_LINES_MAX: Final = 1 << 16
"""The number of place numbers reserved for each code object, one per line number."""
_PLACE_BITS: Final = 40


Tracer = Callable[[FrameType, str, Any], Any]


class Coverage:
    """Measures the coverage of executions.

    A feature is an edge (line to line) with the magnitude of its count.
    """

    def __init__(self, watched: Iterable[str]) -> None:
        self._folders = tuple(_location(name) for name in watched)
        self._tracers: dict[CodeType, Tracer | None] = {}
        self._counts: defaultdict[int, int] = defaultdict(int)
        self._previous = 0
        """The number of the last place, shifted so that the next one can be added."""

    def measure(self, function: Callable[[bytes], None], data: bytes) -> None:
        """Call the function and let its exceptions pass. `features` then returns what was covered."""
        self._counts.clear()
        self._previous = 0
        before = sys.gettrace()
        sys.settrace(self._on_call)
        try:
            function(data)
        finally:
            sys.settrace(before)

    def features(self) -> set[int]:
        """Return the features of the last execution.

        Counts are grouped by magnitude: 1, 2, 3, 4-7, 8-15, ... times.
        """
        return {edge << 5 | _magnitude(count) for edge, count in self._counts.items()}

    def _on_call(self, frame: FrameType, _event: str, _arg: Any) -> Tracer | None:
        code = frame.f_code
        if code not in self._tracers:
            self._tracers[code] = self._tracer(code)
        return self._tracers[code]

    def _tracer(self, code: CodeType) -> Tracer | None:
        """Return what is called for each line of the code object, or None if it is not watched."""
        if not code.co_filename.startswith(self._folders):
            return None
        base, counts = (len(self._tracers) + 1) * _LINES_MAX, self._counts

        def on_line(frame: FrameType, event: str, _arg: Any) -> Tracer:
            if event == "line":
                here = base + frame.f_lineno
                counts[self._previous | here] += 1
                self._previous = here << _PLACE_BITS
            return on_line

        return on_line


def dictionary(watched: Iterable[str]) -> list[bytes]:
    """Return the constants of the watched code as bytes: magic numbers, field names, limits.

    Sorted, no repeats.
    """
    tokens: set[bytes] = set()
    for module in _modules(watched):
        for name, value in vars(module).items():
            if name.startswith("__"):
                continue
            _add_tokens(tokens, value)
            code = getattr(value, "__code__", None)
            if isinstance(code, CodeType):
                _add_code(tokens, code)
            elif isinstance(value, type) and value.__module__ == module.__name__:
                for member in vars(value).values():
                    if isinstance(inner := getattr(member, "__code__", None), CodeType):
                        _add_code(tokens, inner)
    return sorted(token for token in tokens if 1 <= len(token) <= 32)


def _add_code(tokens: set[bytes], code: CodeType) -> None:
    for constant in code.co_consts[1:]:  # the first is the docstring
        if isinstance(constant, CodeType):
            _add_code(tokens, constant)
        else:
            _add_tokens(tokens, constant)


def _add_tokens(tokens: set[bytes], value: object) -> None:
    match value:
        case bool():
            pass
        case int() if -(1 << 63) <= value < 1 << 64:
            sizes = [size for size in (1, 2, 4, 8) if -(1 << 8 * size - 1) <= value < 1 << 8 * size]
            # In the narrowest width that fits, and also as four bytes because it may be a field.
            for size in {sizes[0], max(sizes[0], 4)}:
                tokens.add((value % (1 << 8 * size)).to_bytes(size, "big"))
        case bytes():
            tokens.add(value)
        case str() if value.isascii() and " " not in value:
            tokens.add(value.encode())
        case tuple() | frozenset():
            for item in value:
                _add_tokens(tokens, item)


def _modules(watched: Iterable[str]) -> Iterable[ModuleType]:
    """Yield the watched modules that have been imported."""
    names = tuple(watched)
    inside = tuple(f"{name}." for name in names)
    for name, module in sorted(sys.modules.items()):
        if name in names or name.startswith(inside):
            yield module


def _location(name: str) -> str:
    """Return the folder (with a trailing slash) or the file of a package or module."""
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(f"watched module {name!r} does not exist")
    path = Path(spec.origin)
    return f"{path.parent}/" if spec.submodule_search_locations else str(path)


def _magnitude(count: int) -> int:
    return count if count < 4 else min(count.bit_length() + 1, 31)
