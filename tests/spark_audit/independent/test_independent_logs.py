"""The audit finds in logs of a second writer exactly what is wrong with them.

Goal: recall and precision 1.0 for each kind of anomaly, and no finding in clean logs. Method: a simulated
cluster, written from the documentation of the event log alone, with rebalances, restarts, crashes, retries,
delays and transactions. Clocks differ by up to 5 s. Logs have no beginning, no end, rows out of order, and
files that are given twice. A default run judges a few seeds, the deep profile 100 of each.
"""

from typing import Any

import pytest

from mqproof.spark_audit.checks import EVENT_CHECKS
from tests.spark_audit.independent.judged import outcome

OF_STORES = {
    ("DELIV-1", "not-in-store"),
    ("DELIV-1", "metadata-loss"),
    ("REPL-1", "acked-not-on-slave"),
}
"""Rules of event checks whose violations only store data can show."""


DEEP = pytest.mark.deep("many seeds; the first ones are judged in every run")


def _seeds(few: int) -> list[Any]:
    return [seed if seed < few else pytest.param(seed, marks=DEEP) for seed in range(100)]


@pytest.mark.parametrize("seed", _seeds(1))
def test_every_injected_violation_is_found_and_no_other(seed: int) -> None:
    judged = outcome(seed, clean=False)
    assert (judged.missed, judged.unexpected) == ([], [])
    kinds = {(each.invariant, each.rule) for each in judged.injected}
    rules = {(name, rule) for name, check in EVENT_CHECKS.items() for rule in check.rules}
    assert kinds == rules - OF_STORES, "otherwise a kind of anomaly is not tested"


@pytest.mark.parametrize("seed", _seeds(2))
def test_a_clean_log_has_no_violation(seed: int) -> None:
    assert outcome(seed, clean=True).unexpected == []
