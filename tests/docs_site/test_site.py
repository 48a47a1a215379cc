"""Goal: the site builds without warnings, and works from a folder without a network."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from docs_site.pages import PAGES
from docs_site.source_links import ROOT, copy_of, linked_files


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site in strict mode: a broken link or a page outside the navigation fails the build.

    With --quiet, MkDocs would not count the warnings, so the build would not fail.
    """
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_the_site_has_every_page_of_docs_and_every_generated_page(site: Path) -> None:
    pages = [path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")]
    expected = [page.replace("README.md", "index.md") for page in [*pages, *PAGES]]
    missing = [page for page in expected if not (site / page).with_suffix(".html").exists()]
    assert missing == []


def test_files_that_pages_link_to_are_copied_into_the_site(site: Path) -> None:
    for file in linked_files():
        assert (site / copy_of(file)).read_bytes() == (ROOT / file).read_bytes()


def test_no_page_or_style_sheet_loads_files_from_the_network(site: Path) -> None:
    loaded = re.compile(r'(?:<script[^>]*\ssrc|<link[^>]*\shref|<img[^>]*\ssrc)="?(?:https?:)?//[^"> ]*')
    for page in site.rglob("*.html"):
        assert loaded.findall(page.read_text(encoding="utf-8")) == [], page
    for style in site.rglob("*.css"):
        assert re.findall(r"url\(\"?https?:", style.read_text(encoding="utf-8")) == [], style


def test_the_search_index_can_be_loaded_without_a_web_server(site: Path) -> None:
    index = (site / "search" / "search_index.js").read_text(encoding="utf-8")
    found = json.loads(index.removeprefix("var __index = "))["docs"]
    pages_found = {each["location"].partition("#")[0] for each in found}
    assert {"glossary.html", "reference/commands.html", "explanation/architecture.html"} <= pages_found
    assert "assets/iframe-worker.js" in (site / "index.html").read_text(encoding="utf-8")


def test_the_id_of_an_invariant_in_a_table_is_kept_on_one_line(site: Path) -> None:
    for page in ("explanation/audit-checks", "reference/catalogue"):
        text = (site / f"{page}.html").read_text(encoding="utf-8")
        assert re.search(r'<td class="id">(<a [^>]*>)?FLUSH-1(</a>)?</td>', text), page
    assert "td.id { white-space: nowrap; }" in (site / "assets" / "site.css").read_text(encoding="utf-8")


def test_a_bar_in_a_table_cell_is_shown_without_a_backslash(site: Path) -> None:
    for page in site.rglob("*.html"):
        cells = re.findall(r"<td[^>]*>.*?</td>", page.read_text(encoding="utf-8"), re.DOTALL)
        assert not [cell for cell in cells if "\\|" in cell], page
