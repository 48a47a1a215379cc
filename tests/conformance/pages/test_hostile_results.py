"""Tests the page of the suite hostile against its kept results and the list of attacks."""

from mqproof.conformance.hostile.attacks import ATTACKS
from mqproof.conformance.pages.hostile_results import BROKERS, PAGE, Outcome, outcomes, page, recorded
from mqproof.report import json_file
from mqproof.report.model import Report, Result, Verdict


def test_the_page_has_the_kept_results_of_every_attack_at_every_broker() -> None:
    """`python -m mqproof.conformance.pages.hostile_results` writes the page again."""
    known = recorded()
    assert tuple(known) == BROKERS
    assert all(list(of) == [one.name for one in ATTACKS] for of in known.values())
    assert PAGE.read_text(encoding="utf-8") == page(known)


def test_our_broker_withstands_every_attack() -> None:
    assert {one.verdict for one in recorded()["ours"].values()} == {Verdict.HELD}


def test_a_report_becomes_rows_with_the_reasons() -> None:
    result = Result(
        "hostile/code-unknown", "about", "hostile", Verdict.VIOLATED, {"connections": 1}, detail="a | b"
    )
    other = Result("FLUSH-1", "other", "flush", Verdict.NOT_TESTED)
    found = outcomes(json_file.render(Report("run", (result, other))), "run.json")
    assert found == {"code-unknown": Outcome("violated", "a | b")}
    text = page({"4.9.5": found})
    assert "| code-unknown | a request code that no broker knows |" in text
    assert "| not run | **violated** | not run |" in text
    assert "| code-unknown | a \\| b |" in text
