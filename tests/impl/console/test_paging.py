"""Tests the division of a list into pages."""

import pytest

from mqproof.impl.console.form_values import FormError, FormValues
from mqproof.impl.console.page_parts import Links
from mqproof.impl.console.paging import Paging


def page(number: str, total: int) -> Paging:
    return Paging.of(FormValues([("page", number)] if number else []), total, 10)


@pytest.mark.parametrize(
    ("number", "total", "part"),
    [("", 25, (0, 10)), ("2", 25, (10, 20)), ("3", 25, (20, 25)), ("9", 25, (20, 25)), ("1", 0, (0, 0))],
)
def test_a_page_has_its_part_of_the_list(number: str, total: int, part: tuple[int, int]) -> None:
    assert page(number, total).part(range(total)) == range(*part)


@pytest.mark.parametrize("number", ["0", "-1", "x"])
def test_a_page_that_cannot_be_is_refused(number: str) -> None:
    with pytest.raises(FormError, match="page is"):
        page(number, 25)


@pytest.mark.parametrize(
    ("number", "names"),
    [
        ("1", ["Page 1 of 4", "Next", "Last"]),
        ("2", ["Previous", "Page 2 of 4", "Next", "Last"]),
        ("3", ["First", "Previous", "Page 3 of 4", "Last"]),
        ("4", ["First", "Previous", "Page 4 of 4"]),
    ],
)
def test_links_lead_to_the_pages_around(number: str, names: list[str]) -> None:
    (links,) = page(number, 40).links("/topics", search="a b")
    assert isinstance(links, Links)
    assert [name for name, _ in links.links] == names
    assert all(href.startswith("/topics?search=a+b&page=") for _, href in links.links)


def test_one_page_has_no_links() -> None:
    assert page("1", 10).links("/topics") == []
