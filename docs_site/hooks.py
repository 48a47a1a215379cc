"""The functions that MkDocs calls while it builds the site; mkdocs.yml names this file."""

from collections.abc import Callable
from typing import Final

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from docs_site import api, catalogue, commands, configuration
from docs_site.source_links import ROOT, copy_of, linked_files, with_copies

PAGES: Final[dict[str, Callable[[], str]]] = {
    "reference/api.md": api.page,
    "reference/catalogue.md": catalogue.page,
    "reference/commands.md": commands.page,
    "reference/configuration.md": configuration.page,
}
"""The generated pages, and the function that writes each one."""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages, and copies of the files outside docs/ that pages link to."""
    for place, page in PAGES.items():
        files.append(File.generated(config, place, content=page()))
    for file in linked_files():
        content = (ROOT / file).read_bytes()
        files.append(File.generated(config, copy_of(file), content=content))
    return files


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Change links that leave docs/ to the copies."""
    return with_copies(page.file.src_uri, markdown)
