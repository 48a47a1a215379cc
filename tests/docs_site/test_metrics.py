"""Tests that the page of metrics describes every metric that a server exports."""

from docs_site import metrics
from tests.impl.metrics.scrapes import all_pages, parsed

PAGE = metrics.page()


def test_every_metric_of_a_scrape_has_a_row() -> None:
    exported = {
        line.split()[2] for page in all_pages() for line in page.splitlines() if line.startswith("# TYPE")
    }
    assert len(exported) >= len({name for page in all_pages() for name in parsed(page)})
    assert [name for name in exported if f"| `{name}` |" not in PAGE] == []


def test_every_row_has_a_meaning_that_is_a_sentence() -> None:
    for _, _, declared in metrics.PARTS:
        for metric in declared:
            assert metric.meaning[0].isupper() or metric.meaning[0].isdigit(), metric.name
            assert metric.meaning.endswith("."), metric.name
