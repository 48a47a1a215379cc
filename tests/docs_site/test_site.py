"""Goal: the site builds without a warning, and works from a folder without a network."""

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
    """The site, built strictly: a broken link, or a page outside the navigation, ends the build.

    With --quiet MkDocs would not count the warnings, and so would not fail.
    """
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_every_page_of_docs_and_every_generated_page_is_there(site: Path) -> None:
    pages = [path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")]
    places = [page.replace("README.md", "index.md") for page in [*pages, *PAGES]]
    missing = [place for place in places if not (site / place).with_suffix(".html").exists()]
    assert missing == []


def test_files_that_pages_link_to_are_copied(site: Path) -> None:
    for file in linked_files():
        assert (site / copy_of(file)).read_bytes() == (ROOT / file).read_bytes()


def test_nothing_is_loaded_from_the_network(site: Path) -> None:
    loaded = re.compile(r'(?:<script[^>]*\ssrc|<link[^>]*\shref|<img[^>]*\ssrc)="?(?:https?:)?//[^"> ]*')
    for page in site.rglob("*.html"):
        assert loaded.findall(page.read_text(encoding="utf-8")) == [], page
    for style in site.rglob("*.css"):
        assert re.findall(r"url\(\"?https?:", style.read_text(encoding="utf-8")) == [], style


def test_the_search_works_from_files(site: Path) -> None:
    index = (site / "search" / "search_index.js").read_text(encoding="utf-8")
    found = json.loads(index.removeprefix("var __index = "))["docs"]
    places = {each["location"].partition("#")[0] for each in found}
    assert {"glossary.html", "reference/commands.html", "explanation/architecture.html"} <= places
    assert "assets/iframe-worker.js" in (site / "index.html").read_text(encoding="utf-8")


def test_a_bar_in_the_code_of_a_table_has_no_backslash(site: Path) -> None:
    for page in site.rglob("*.html"):
        cells = re.findall(r"<td[^>]*>.*?</td>", page.read_text(encoding="utf-8"), re.DOTALL)
        assert not [cell for cell in cells if "\\|" in cell], page
