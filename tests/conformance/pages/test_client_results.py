"""The page of real clients is generated from the results that are kept."""

from mqproof.conformance.client_scenarios.matrix import Cell, read, text
from mqproof.conformance.client_scenarios.scenarios import SCENARIOS
from mqproof.conformance.pages.client_results import PAGE, RESULTS, page


def test_the_page_and_the_file_are_those_of_the_results() -> None:
    kept = read(RESULTS)
    assert {cell.scenario for cell in kept} == {scenario.name for scenario in SCENARIOS}
    assert PAGE.read_text(encoding="utf-8") == page(kept)
    assert RESULTS.read_text(encoding="utf-8") == text(kept)


def test_a_cell_shows_what_differs() -> None:
    cells = [
        Cell("go", "mqproof", "sends", "violated", 9, 7, 3, 1, 0, 2, 1.0, "bad"),
        Cell("go", "mqproof", "tags", "held", 9, 10, 0, 1, 0, 2, 1.0),
        Cell("go", "mqproof", "recalls", "not tested", 0, 0, 0, 0, 0, 0, 1.0, "no handle"),
    ]
    shown = page(cells)
    assert "| **violated**: 7 of 9, 3 lost, 1 twice |" in shown
    assert "| tag filter | 10 of 9, 1 twice |" in shown
    assert "| recall of timed messages | – |" in shown
    assert "| orderly consumption | not run |" in shown
    assert "| 2 | 1 | bad |" in shown
