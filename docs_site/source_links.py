"""Links from pages to files outside docs/: the site has a copy of each such file, as text."""

import os
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
DOCS: Final = ROOT / "docs"
_LINK: Final = re.compile(r"(\]\()([^)#\s]+)")


def linked_files() -> list[str]:
    """Return the files outside docs/ that pages link to, relative to the checkout."""
    found: set[str] = set()
    for page in DOCS.rglob("*.md"):
        at = page.relative_to(DOCS).as_posix()
        found.update(_outside(at, page.read_text(encoding="utf-8")))
    return sorted(found)


def copy_of(file: str) -> str:
    """Return the place of the copy on the site. Browsers show a file with this suffix as text."""
    return f"source/{file}.txt"


def with_copies(page: str, text: str) -> str:
    """Return the text of a page with its links to such files changed to the copies."""

    def replaced(match: re.Match[str]) -> str:
        file = _file(page, match[2])
        if file is None:
            return match[0]
        return match[1] + os.path.relpath(copy_of(file), PurePosixPath(page).parent)

    return _LINK.sub(replaced, text)


def _outside(page: str, text: str) -> Iterator[str]:
    for match in _LINK.finditer(text):
        if (file := _file(page, match[2])) is not None:
            yield file


def _file(page: str, target: str) -> str | None:
    """The file outside docs/ that the target of a link names, if there is one."""
    if "://" in target:
        return None
    path = Path(os.path.normpath(DOCS / PurePosixPath(page).parent / target))
    if path.is_relative_to(DOCS) or not path.is_relative_to(ROOT) or not path.is_file():
        return None
    return path.relative_to(ROOT).as_posix()
