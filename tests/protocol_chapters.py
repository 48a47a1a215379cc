"""The chapters of docs/reference/protocol/ and the references to their sections."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from mqproof.report.markdown import anchor as anchor_of
from tests.import_graph import ROOT

FOLDER: Final = ROOT / "docs" / "reference" / "protocol"
_HEADING: Final = re.compile(r"^#{1,6} (.+)$", re.MULTILINE)
_CODE_BLOCK: Final = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_COMMENT: Final = re.compile(r"\s*\n\s*(?:#|\\\*)?\s*")
_CHAPTER: Final = re.compile(r"reference/protocol/([\w-]+)\.md")
_QUOTED: Final = re.compile(r'(?:, and |, | and )\\?"([^"\\]+)\\?"')
_LINK: Final = re.compile(r"\]\(([^)\s]*?\.md)?(#[^)\s]*)?\)")


def titles(chapter: str) -> frozenset[str]:
    """Return the titles in a chapter, that of the chapter included; none if there is no such chapter."""
    file = FOLDER / f"{chapter}.md"
    return headings(file) if file.is_file() else frozenset()


def headings(page: Path) -> frozenset[str]:
    """Return the headings of a Markdown page."""
    return frozenset(_HEADING.findall(_CODE_BLOCK.sub("", page.read_text(encoding="utf-8"))))


def sections() -> frozenset[str]:
    """Return every section, in the form in which sources and comments cite it."""
    return frozenset(
        f'docs/reference/protocol/{file.stem}.md, "{title}"'
        for file in FOLDER.glob("*.md")
        for title in titles(file.stem)
    )


def citations(text: str) -> Iterator[tuple[str, str]]:
    """Yield (chapter, section title) for each section that a text cites; "" for a chapter without a title.

    One chapter may be followed by several titles: `storing.md, "Segments", "Commit log" and "Flush"`.
    """
    line = _COMMENT.sub(" ", text)
    for chapter in _CHAPTER.finditer(line):
        end, found = chapter.end(), False
        while title := _QUOTED.match(line, end):
            yield chapter[1], title[1]
            end, found = title.end(), True
        if not found:
            yield chapter[1], ""


def unresolved(text: str) -> list[str]:
    """Return the citations of a text that name no chapter, or no section of their chapter."""
    return [
        f'{chapter}.md, "{title}"'
        for chapter, title in citations(text)
        if not (title in titles(chapter) if title else titles(chapter))
    ]


def broken_links(page: Path, text: str) -> list[str]:
    """Return the Markdown links of a page that lead to no chapter, or to no section of their chapter."""
    return [link[0] for link in _LINK.finditer(text) if not _leads_somewhere(page, link[1], link[2])]


def _leads_somewhere(page: Path, path: str | None, anchor: str | None) -> bool:
    target = (page.parent / path).resolve() if path else page
    if target.parent != FOLDER:
        return True
    known = titles(target.stem)
    return bool(known) and (anchor is None or anchor[1:] in map(anchor_of, known))
