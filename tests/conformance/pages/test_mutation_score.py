"""The page of the mutation score is that of its recorded report."""

from mqproof.conformance.pages.mutation_score import PAGE, page, recorded


def test_the_page_shows_the_recorded_report() -> None:
    """`python -m mqproof.conformance.pages.mutation_score` writes the page again."""
    assert PAGE.read_text(encoding="utf-8") == page(recorded())
