"""The modules that each module reaches by imports, including late ones, and by names in strings."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
PARTS: Final = ("report", "spec", "reference", "impl", "conformance", "fuzz", "spark_audit")


def modules() -> dict[str, Path]:
    """Return the module names of all parts, the package and the tests, with their files.

    Packages are omitted.
    """
    own = {_dotted(path, "mqproof"): path for path in (ROOT / "mqproof").glob("*.py")}
    own |= {_dotted(path, "mqproof"): path for path in (ROOT / "mqproof" / "demo").glob("*.py")}
    for part in PARTS:
        own |= {f"mqproof.{_dotted(path)}": path for path in (ROOT / part).rglob("*.py")}
    own |= {_dotted(path): path for path in (ROOT / "tests").rglob("*.py")}
    return own


def reached(start: str, known: dict[str, Path], seen: dict[str, frozenset[str]]) -> frozenset[str]:
    """Return the modules that `start` reaches, with itself. `seen` caches the names in each module."""
    found, waiting = {start}, [start]
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen[name] = frozenset(_named(known[name], known))
        new = seen[name] - found
        found |= new
        waiting += new
    return frozenset(found)


def _named(path: Path, known: dict[str, Path]) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names: list[str] = []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            names = _named_in(node.value, known)
        yield from (name for name in names if name in known)


def _named_in(text: str, known: dict[str, Path]) -> list[str]:
    """Return the modules that a string names:

    `mqproof.a.b:Class`, or the prefix `mqproof.a.` of a package.
    """
    if text.startswith("mqproof.") and text.endswith("."):
        return [name for name in known if name.startswith(text)]
    return [text.partition(":")[0]]


def _dotted(path: Path, under: str = "") -> str:
    folder = ROOT / under if under else ROOT
    name = ".".join(path.relative_to(folder).with_suffix("").parts).removesuffix(".__init__")
    return f"{under}.{name}" if under else name
