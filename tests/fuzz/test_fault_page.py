"""Tests the page of single faults: it shows the kept numbers, and reports of one broker are added."""

from collections import Counter

from mqproof.fuzz import fault_campaign, fault_page
from mqproof.fuzz.fault_campaign import Tally
from mqproof.fuzz.fault_page import NUMBERS, PAGE, Judged, Numbers, none, page, recorded
from mqproof.fuzz.store.single_fault import Fault


def _numbers(*reports: Tally) -> Numbers:
    numbers = none()
    for tally in reports:
        numbers.add(fault_campaign.report("mqproof fuzz faults", {"seconds": "1.5"}, tally))
    return numbers


def test_the_page_shows_the_kept_numbers() -> None:
    assert NUMBERS.exists()
    assert PAGE.read_text(encoding="utf-8") == page(recorded())


def test_reports_of_one_broker_are_added() -> None:
    lost = Tally(Counter({("commit log", "zeroed", "violated"): 1}), Counter(NeverSilentlyWrong=1))
    lost.add_finding("commit log", Fault.ZEROED, b"\1\2", "NeverSilentlyLost", "lost without a report: m1")
    sound = Tally(Counter({("commit log", "zeroed", "harmless"): 2}), Counter(NeverSilentlyLost=2))
    numbers = _numbers(lost, sound)
    assert (numbers.points, numbers.seconds) == (3, 3.0)
    assert numbers.invariants["NeverSilentlyLost"] == Judged(3, 1)
    text = page({"4.9.5": numbers})
    assert "| Apache 4.9.5 | 3 | 60 | 1 | 33.3% | 0 |" in text
    assert "| commit log | zeroed | 2 | 1 |" in text
    assert "| NeverSilentlyLost | 1 of 3 |" in text
    row = "| Apache 4.9.5 | commit log | zeroed | NeverSilentlyLost | `lost without a report: mN` | 1 |"
    assert row in text
    assert "- Apache 4.9.5, NeverSilentlyLost: `lost without a report: m1 (point 0102)`" in text


def test_brokers_have_a_fixed_order() -> None:
    shown = page(
        {
            "5.5.0": _numbers(Tally(Counter({("a", "b", "harmless"): 1}))),
            "single": _numbers(Tally(Counter({("a", "b", "harmless"): 1}))),
        }
    )
    assert shown.index("## one broker") < shown.index("## Apache 5.5.0")
    assert next(iter(fault_page.BROKERS)) == "single"
