"""Goal: a link from a page to a repository file outside docs/ points to a copy on the site."""

import pytest

from docs_site.source_links import ROOT, copy_of, linked_files, with_copies

PAGE = "explanation/conformance/suites.md"


def test_a_link_to_a_file_outside_docs_points_to_its_copy() -> None:
    text = "[Group](../../../spec/tla/Group.tla), again [it](../../../spec/tla/Group.tla#L3)"
    copy = "../../source/spec/tla/Group.tla.txt"
    assert with_copies(PAGE, text) == f"[Group]({copy}), again [it]({copy}#L3)"


@pytest.mark.parametrize(
    "link",
    [
        "[page](workload.md)",
        "[picture](flush.svg)",
        "[site](https://example.org/spec/tla/Group.tla)",
        "[missing](../../../spec/tla/NoSuch.tla)",
        "[beyond](../../../../etc/passwd)",
        "[here](#results)",
    ],
)
def test_other_links_are_unchanged(link: str) -> None:
    assert with_copies(PAGE, link) == link


def test_files_that_pages_link_to_are_found() -> None:
    found = linked_files()
    assert "spec/tla/Group.tla" in found
    assert all((ROOT / file).is_file() for file in found)
    assert copy_of("spec/tla/Group.tla") == "source/spec/tla/Group.tla.txt"
