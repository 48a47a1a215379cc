"""coverage.py records the lines that a suite executes."""

import json
from dataclasses import replace

import pytest

from mqproof.conformance.mutation.loading import modules
from mqproof.conformance.mutation.reach import STEPS_KEPT, Hits, Reach, ReachError, durations, measure, spread

_CHOICE = "mqproof.impl.client.producing.queue_choice"
_SUITE = "producers"


def test_reach_names_executed_lines_only() -> None:
    reach = measure(_SUITE, 2, 0)
    lines = reach.by_line[_CHOICE].keys()
    source = modules(("client",))[_CHOICE].read_text(encoding="utf-8").splitlines()
    returns = {at for at, line in enumerate(source, 1) if line.strip().startswith("return")}
    assert lines & returns, "no function of the module ran"
    assert returns - lines, "two examples cannot reach every line"
    assert reach.cpu_s > 0
    assert max(hits.count for hits in reach.by_line[_CHOICE].values()) == 2
    defined = {at for at, line in enumerate(source, 1) if line.startswith("def ")}
    assert defined <= reach.at_import[_CHOICE]
    assert not defined & lines, "the import is no example"
    assert Reach.of(json.loads(json.dumps(reach.stored()))) == reach


def test_a_line_of_the_import_alone_is_judged_by_all_that_executes_its_module() -> None:
    reach = Reach(
        1.0, (), {"m": frozenset({1, 2})}, {"m": {5: Hits(1, (4,)), 6: Hits(3, (0, 1, 2))}, "n": {}}
    )
    assert reach.hits("m", 1) == Hits(4, (0, 1, 2, 4))
    assert reach.hits("m", 5) == Hits(1, (4,))
    assert reach.hits("m", 7) is None
    assert reach.hits("n", 1) is None


def test_any_case_may_show_a_line_of_the_import_alone() -> None:
    lines = {5: Hits(1, (1,))}
    reach = Reach(1.0, ("a", "b", "c"), {"m": frozenset({1}), "n": frozenset({1})}, {"m": lines})
    assert reach.hits("m", 1) == Hits(3, (0, 1, 2))
    assert reach.hits("m", 5) == Hits(1, (1,))
    assert reach.hits("n", 1) is None


def test_cases_that_execute_rare_lines_nearby_alternate_with_the_others() -> None:
    lines = {5: Hits(3, (0, 1, 2)), 9: Hits(1, (2,)), 400: Hits(1, (1,))}
    reach = Reach(1.0, ("a", "b", "c"), {"p.m": frozenset({1})}, {"p.m": lines, "p.n": {7: Hits(1, (0,))}})
    assert reach.closest("p.m", 5, (0, 1, 2)) == (2, 0, 1)
    assert reach.closest("p.m", 401, (0, 1, 2)) == (1, 0, 2)
    assert reach.closest("p.m", 5, (0, 1)) == (1, 0)
    assert reach.closest("p.constants", 9, (0, 1, 2)) == (2, 0, 1), "its package counts"
    assert reach.closest("q.m", 5, (1, 0)) == (1, 0)
    slow = replace(reach, case_s=(0.1, 9.0, 0.1))
    assert slow.closest("p.m", 401, (0, 1, 2)) == (2, 0, 1), "a slow case comes late"


def test_a_case_ends_when_the_next_one_begins() -> None:
    assert durations({0: 1.0, 1: 3.0, 2: 3.5}, 7.5, 3) == (2.0, 0.5, 4.0)
    assert durations({0: 1.0, 1: 3.0, 2: 3.5}, 7.5, 2) == (2.0, 0.5), "progress after the last one"
    assert durations({0: 1.0}, 2.0, 0) == ()


def test_a_module_of_constants_is_judged_by_all_that_executes_its_package() -> None:
    reach = Reach(
        1.0, (), {"p.codes": frozenset({1})}, {"p.codes": {}, "p.user": {5: Hits(1, (0,))}, "q.user": {}}
    )
    assert reach.hits("p.codes", 1) == Hits(1, (0,))
    assert reach.hits("p.codes", 2) is None


def test_only_some_of_many_steps_are_kept() -> None:
    hits = spread(range(1000))
    assert (hits.count, len(hits.steps), hits.steps[0]) == (1000, STEPS_KEPT, 0)
    assert hits.steps[-1] > 950
    assert spread([3, 1]) == Hits(2, (1, 3))


def test_unknown_suite_is_no_reach() -> None:
    with pytest.raises(ReachError, match="suite nothing"):
        measure("nothing", 2, 0)
