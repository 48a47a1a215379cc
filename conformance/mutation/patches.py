"""Reads a folder of patches of `impl/`, so that defects written by hand are judged as mutants are."""

import difflib
import re
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from mqproof.conformance.engine.coverage_feedback import IMPL_FOLDER
from mqproof.conformance.mutation.loading import modules
from mqproof.conformance.mutation.operators import Mutant

OPERATOR: Final = "patch"
"""The operator of a patch, in the place of those that make mutants."""
_CHANGED: Final = re.compile(r"^\+\+\+ (?:b/)?(impl/\S+\.py)", re.MULTILINE)


class PatchError(ValueError):
    """A patch does not apply, or it changes another file than a module of `impl/`."""


@dataclass(frozen=True, slots=True)
class Patch:
    mutant: Mutant
    """The patch as a mutant of its first module: `before` is its name, `after` its first new line."""
    lines: Mapping[str, frozenset[int]]
    """Maps each changed module to the changed lines of the original."""
    sources: Mapping[str, str]
    """The changed source text of each module."""


def read(folder: Path) -> tuple[Patch, ...]:
    """Return the files of the folder that end in `.patch`, in the order of their names.

    Raises:
        PatchError: there is none, or one cannot be used.
    """
    files = sorted(folder.glob("*.patch"))
    if not files:
        raise PatchError(f"{folder}: no file ends in .patch")
    return tuple(_patch(number, file) for number, file in enumerate(files))


def _patch(number: int, file: Path) -> Patch:
    root = IMPL_FOLDER.parent
    folders = [each.name for each in IMPL_FOLDER.iterdir() if each.is_dir()]
    known = {path.relative_to(root).as_posix(): name for name, path in modules(folders).items()}
    changed = dict.fromkeys(_CHANGED.findall(file.read_text(encoding="utf-8")))
    if not changed or (unknown := [each for each in changed if each not in known]):
        found = unknown[0] if changed else "nothing"
        raise PatchError(f"{file}: changes {found}; expected modules in folders of impl/")
    originals = {known[each]: (root / each).read_text(encoding="utf-8") for each in changed}
    sources = dict(
        zip(originals, _applied(file, dict(zip(changed, originals.values(), strict=True))), strict=True)
    )
    lines = {name: _lines(originals[name], sources[name]) for name in originals}
    first = next(iter(originals))
    added = next(_added(originals[first], sources[first]), "")
    mutant = Mutant(first, number, OPERATOR, min(lines[first], default=1), file.stem, added)
    return Patch(mutant, lines, sources)


def _applied(file: Path, originals: Mapping[str, str]) -> Iterator[str]:
    """Yield the texts of the changed files after the patch."""
    with tempfile.TemporaryDirectory(prefix="mqproof-patch-") as name:
        for path, text in originals.items():
            (Path(name) / path).parent.mkdir(parents=True, exist_ok=True)
            (Path(name) / path).write_text(text, encoding="utf-8")
        command = ["git", "apply", "--include=impl/*", str(file.resolve())]
        ran = subprocess.run(command, cwd=name, capture_output=True, text=True, check=False)
        if ran.returncode:
            raise PatchError(f"{file}: {ran.stderr.strip()}")
        yield from [(Path(name) / path).read_text(encoding="utf-8") for path in originals]


def _lines(original: str, changed: str) -> frozenset[int]:
    """Return the lines of the original that are changed, and those beside an insertion."""
    found: set[int] = set()
    for tag, begin, end, _, _ in _differences(original, changed):
        found.update(range(begin + 1, end + 1) if tag != "insert" else (begin, begin + 1))
    return frozenset(found)


def _added(original: str, changed: str) -> Iterator[str]:
    for _, _, _, begin, end in _differences(original, changed):
        yield from (line.strip() for line in changed.splitlines()[begin:end])


def _differences(original: str, changed: str) -> list[tuple[str, int, int, int, int]]:
    matcher = difflib.SequenceMatcher(None, original.splitlines(), changed.splitlines(), autojunk=False)
    return [each for each in matcher.get_opcodes() if each[0] != "equal"]
