"""The functions that MkDocs calls while it builds the site; mkdocs.yml names this file."""

import re
from typing import Final

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from docs_site.pages import PAGES
from docs_site.source_links import ROOT, copy_of, linked_files, with_copies

_CELL: Final = re.compile(r"<td[^>]*>.*?</td>", re.DOTALL)
_ID_CELL: Final = re.compile(r"<td>((?:<a [^>]*>)?[A-Z]+-\d+(?:</a>)?)</td>")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages, and copies of the files outside docs/ that pages link to."""
    for place, page in PAGES.items():
        files.append(File.generated(config, place, content=page()))
    for file in linked_files():
        content = (ROOT / file).read_bytes()
        files.append(File.generated(config, copy_of(file), content=content))
    return files


def on_page_content(html: str, **_: object) -> str:
    """Mend the cells of tables.

    The backslash of a bar in code is removed: GitHub needs it, Python-Markdown shows it. An invariant's id is
    not broken at its hyphen (site.css).
    """
    plain = _CELL.sub(lambda cell: cell[0].replace("\\|", "|"), html)
    return _ID_CELL.sub(r'<td class="id">\1</td>', plain)


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Change links that leave docs/ to the copies."""
    return with_copies(page.file.src_uri, markdown)
