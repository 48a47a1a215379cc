"""Scenarios meet all pairs of each suite's table within 100 examples; what they do not meet is reported."""

import re
from dataclasses import replace
from functools import partial
from typing import cast

import pytest

from mqproof.conformance.adapters.brokers.factories import EXAMINEES
from mqproof.conformance.adapters.producers.factories import ReferenceProducer
from mqproof.conformance.adapters.reference import ReferenceTarget
from mqproof.conformance.adapters.routing.name_servers import ImplNameServer
from mqproof.conformance.engine import suite_run
from mqproof.conformance.engine.broker_faults import ANY_FAULT
from mqproof.conformance.engine.directed_scenarios import PLAIN_EXAMPLES, DirectedScenarios
from mqproof.conformance.engine.suite_definition import Session, Suite, TargetFactory
from mqproof.conformance.engine.suite_run import examine
from mqproof.conformance.engine.value_pairs import Dimension, Dimensions, Value, shown
from mqproof.conformance.suites.flush.suite import FLUSH
from mqproof.conformance.suites.offsets.session import OffsetsSession
from mqproof.conformance.suites.offsets.target import OffsetsTarget
from mqproof.conformance.suites.producers.suite import PRODUCERS
from mqproof.conformance.suites.routing.suite import ROUTING

SUITES: dict[str, tuple[Suite, TargetFactory]] = {
    "flush": (FLUSH, ReferenceTarget),
    "producers": (PRODUCERS, ReferenceProducer),
    "routing": (ROUTING, ImplNameServer),
    **{name: (each.suite, each.reference) for name, each in EXAMINEES.items()},
}
SLOW = {"admin", "routing", "timers", "transactions"}
"""The suites for which a hundred examples cost more than half a second."""
_DEEP = pytest.mark.deep("a hundred examples of this suite cost more than half a second")
OFFSETS, OFFSETS_TARGET = SUITES["offsets"]


@pytest.fixture(autouse=True)
def _few_drawn_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """The drawn steps come before the scenarios and are not the subject of these tests."""
    monkeypatch.setattr(suite_run, "STEPS_MAX", 3)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[_DEEP] if name in SLOW else []) for name in SUITES]
)
def test_a_hundred_examples_meet_all_feasible_pairs(name: str) -> None:
    suite, target = SUITES[name]
    examination = examine(target, 100, 3, suite=suite)
    assert not examination.failures
    assert examination.pairs is not None
    assert examination.pairs.feasible
    assert [shown(pair) for pair in examination.pairs.missing] == []


def test_a_value_that_is_never_drawn_is_reported() -> None:
    never = Dimension("moon", (Value("full", "the moon is full"),))
    table = replace(OFFSETS.dimensions, dimensions=(*OFFSETS.dimensions.dimensions, never))
    examination = examine(OFFSETS_TARGET, 40, 0, suite=replace(OFFSETS, dimensions=table))
    assert examination.pairs is not None
    assert {other for _, other in examination.pairs.missing} >= {("moon", "full")}
    (missing, *_) = examination.pairs.tables()
    assert any("moon: full" in row[0] for row in missing.rows)
    evidence = examination.pairs.evidence()
    assert evidence["pairs covered"] < evidence["pairs feasible"]


def test_a_scenario_that_does_nothing_covers_nothing() -> None:
    examination = examine(
        OFFSETS_TARGET, PLAIN_EXAMPLES + 5, 0, suite=replace(OFFSETS, scenario=lambda *_: None)
    )
    assert examination.pairs is not None
    met = {cell for pair in examination.pairs.covered for cell in pair}
    assert not met & {("batch", "two"), ("commit", "awaited"), ("fault", "kill")}


def _keep(found: list[list[str]], _: int, session: Session) -> None:
    found.append(session.script())


def test_scenarios_change_no_drawn_step() -> None:
    scripts: list[list[list[str]]] = []
    for suite in (OFFSETS, replace(OFFSETS, dimensions=Dimensions())):
        found: list[list[str]] = []
        examine(OFFSETS_TARGET, PLAIN_EXAMPLES + 3, 0, suite=suite, on_example=partial(_keep, found))
        scripts.append(found)
    directed, drawn = scripts
    assert [each[: len(other)] for each, other in zip(directed, drawn, strict=True)] == drawn
    assert directed[:PLAIN_EXAMPLES] == drawn[:PLAIN_EXAMPLES]
    assert not [script for script in directed[PLAIN_EXAMPLES:] if script in drawn]


class Forgets(OFFSETS_TARGET):  # type: ignore[misc, valid-type]  # a class of the reference
    """Reports another offset after a commit beyond the end, which only a scenario makes by a thousand."""

    def query(self, queue_id: int) -> int | None:
        offset: int | None = super().query(queue_id)
        return offset if offset is None or offset < 1000 else 0


def test_a_scenario_that_fails_is_shrunk_to_the_values_that_matter() -> None:
    failures = examine(Forgets, 100, 0, suite=OFFSETS).failures
    (found, *_) = failures.values()
    script = "\n".join(found.script)
    assert found.examples > PLAIN_EXAMPLES
    assert re.search(r"commit(ting)? 1\d{3}\b", script)
    assert not re.search(f"{ANY_FAULT}|and wait; then|^old messages expire|without waiting", script, re.M)
    assert len(found.script) < 25


def test_a_scenario_without_which_the_example_fails_is_left_out() -> None:
    scenarios = DirectedScenarios(OFFSETS, 0, None)
    scenarios.fit(OFFSETS_TARGET().capabilities)
    session = _opened()
    for _ in range(PLAIN_EXAMPLES):
        scenarios.count()
    scenarios.perform(session)
    directed = len(session.script())
    scenarios.keep()
    scenarios.simplify(lambda: True)
    scenarios.perform(session)
    assert len(session.script()) == directed > 1


def _opened() -> Session:
    return OffsetsSession(cast("OffsetsTarget", OFFSETS_TARGET()))
