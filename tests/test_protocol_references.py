"""Every reference to a section of the protocol leads to a section that exists.

Code, models, catalogue, tests and pages cite sections as `docs/reference/protocol/storing.md, "Commit log"`.
"""

import re
import subprocess

import pytest

from tests.import_graph import ROOT
from tests.protocol_chapters import FOLDER, broken_links, citations, sections, titles, unresolved

SUFFIXES = {".py", ".tla", ".cfg", ".toml", ".md", ".html", ".yml", ".txt", ".sh"}
OWN = {"tests/test_protocol_references.py", "tests/protocol_chapters.py"}
HISTORY = "CHANGELOG.md"


def files() -> dict[str, str]:
    """Return the text of each tracked file that may cite a section."""
    names = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    listed = (name for name in names.stdout.splitlines() if name not in OWN)
    paths = {name: ROOT / name for name in listed}
    return {
        name: path.read_text(encoding="utf-8")
        for name, path in paths.items()
        if path.suffix in SUFFIXES and path.is_file() and not path.is_symlink()
    }


def test_every_citation_names_a_section() -> None:
    texts = files()
    wrong = {name: unresolved(text) for name, text in texts.items() if unresolved(text)}
    assert wrong == {}
    assert sum(len(list(citations(text))) for text in texts.values()) > 200


def test_every_link_to_a_chapter_leads_to_a_section() -> None:
    pages = {name: text for name, text in files().items() if name.endswith(".md")}
    wrong = {name: broken for name, text in pages.items() if (broken := broken_links(ROOT / name, text))}
    assert wrong == {}


def test_no_file_cites_the_page_that_was_split() -> None:
    old = [name for name, text in files().items() if "docs/protocol.md" in text and name != HISTORY]
    assert old == []


def test_titles_within_a_chapter_are_distinct() -> None:
    for file in FOLDER.glob("*.md"):
        found = [line for line in file.read_text(encoding="utf-8").splitlines() if line.startswith("#")]
        assert len(found) == len(titles(file.stem)), file.name


def test_the_index_lists_every_chapter_with_its_sections_in_the_order_of_the_navigation() -> None:
    index = (FOLDER / "index.md").read_text(encoding="utf-8")
    listed = dict(re.findall(r"^\| \[[^\]]*\]\((\S+)\) \| (.*) \|$", index, re.MULTILINE))
    assert set(listed) == {file.name for file in FOLDER.glob("*.md")} - {"index.md"}
    for name, shown in listed.items():
        text = (FOLDER / name).read_text(encoding="utf-8")
        assert shown.split(", ") == re.findall(r"^## (.*)$", text, re.MULTILINE), name
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert re.findall(r"- reference/protocol/(\S+)", navigation) == ["index.md", *listed]


@pytest.mark.parametrize(
    "text",
    [
        'See docs/reference/protocol/storing.md, "Comit log".',
        'See docs/reference/protocol/stores.md, "Commit log".',
        'See docs/reference/protocol/storing.md, "Commit log" and "Recovery".',
        'See docs/reference/protocol/storing.md, "Segments", "Flush" and\n    "What is durable when".',
        '# See docs/reference/protocol/storing.md, "Commit\n# log entry".',
        "\\* docs/reference/protocol/stores.md\n",
    ],
)
def test_an_unknown_chapter_or_section_is_found(text: str) -> None:
    assert len(unresolved(text)) == 1


@pytest.mark.parametrize(
    "text",
    [
        'See docs/reference/protocol/storing.md, "Commit log".',
        'See docs/reference/protocol/storing.md, "Segments", "Commit\n    log" and "Flush".',
        '# docs/reference/protocol/storing.md, "Key\n# index"; docs/reference/protocol/recovery.md, "Expiry"',
        "The chapters are in docs/reference/protocol/index.md.",
    ],
)
def test_a_known_section_is_not_reported(text: str) -> None:
    assert unresolved(text) == []


def test_a_link_to_an_unknown_section_is_found() -> None:
    page = FOLDER / "storing.md"
    assert broken_links(page, "[a](recovery.md#expiry), [b](#flush), [c](../../as-shipped.md#x)") == []
    for wrong in ("[a](recovery.md#expiration)", "[b](#flushes)", "[c](stores.md)", "[d](recovery.md#)"):
        assert len(broken_links(page, wrong)) == 1, wrong


def test_sections_have_the_form_of_a_citation() -> None:
    assert 'docs/reference/protocol/storing.md, "Commit log"' in sections()
