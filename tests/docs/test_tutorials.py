"""Goal: the commands of the tutorials have the shown results. Method: run each page in a temporary folder."""

from pathlib import Path

import pytest

from tests.docs.console import ROOT, run_page

TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.md"))


def test_there_is_a_tutorial_for_each_kind_of_user() -> None:
    assert [page.stem for page in TUTORIALS] == [
        "application-developer",
        "broker-implementer",
        "operator",
        "protocol-designer",
        "release-engineer",
    ]


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_the_commands_of_the_tutorial_have_the_shown_results(page: Path, tmp_path: Path) -> None:
    run_page(page, tmp_path)


SLOW = [page for page in TUTORIALS if "<!-- deep: " in page.read_text(encoding="utf-8")]


@pytest.mark.deep("these commands take a minute or more; the page states the reason")
@pytest.mark.parametrize("page", SLOW, ids=lambda page: page.stem)
def test_the_slow_commands_of_the_tutorial_have_the_shown_results(page: Path, tmp_path: Path) -> None:
    run_page(page, tmp_path, deep=True)
