"""The reference's verdicts on liveness are TLC's, with all fairness clauses and without each of them."""

from dataclasses import replace
from typing import Any

import pytest

from mqproof.reference.constants import constants
from mqproof.reference.explorer import infinite_runs
from mqproof.reference.explorer.lasso import find_lasso
from mqproof.reference.explorer.state_graph import StateGraph, state_graph
from mqproof.reference.liveness import Fair
from mqproof.reference.model import Model
from mqproof.reference.models import MODELS
from mqproof.report.model import Verdict
from mqproof.spec.model_file import Kind, Question, load

MODELS_FILE = load()
LIVE = [model for model in MODELS.values() if model.liveness]
FAIRNESS_RUNS = {
    model.name: [q for q in MODELS_FILE.questions[model.name] if q.kind is Kind.FAIRNESS] for model in LIVE
}
# The runs without a clause have configurations of their own here; another initial state is left out.
FAIRNESS_RUNS["Election"] = [
    question
    for question in MODELS_FILE.questions["Election"]
    if question.violates in MODELS["Election"].liveness
    and question.kind is Kind.CHECK
    and not any("<-" in body for body in question.config.of("CONSTANT"))
]


def _graph(
    model: Model[Any, Any], question: Question, graphs: dict[Any, StateGraph[Any]]
) -> tuple[Any, StateGraph[Any]]:
    config = model.from_constants(constants(question.config.text()))
    if config not in graphs:
        graphs[config] = state_graph(model, config)
    return config, graphs[config]


def _clause(question: Question) -> str:
    (name,) = question.config.names("SPECIFICATION")
    return name.removeprefix("WithWeak").removeprefix("Without").removesuffix("Fairness")


@pytest.mark.parametrize("model", LIVE, ids=lambda model: model.name)
def test_without_a_fairness_clause_the_property_is_violated_that_tlc_finds_violated(
    model: Model[Any, Any],
) -> None:
    graphs: dict[Any, StateGraph[Any]] = {}
    assert FAIRNESS_RUNS[model.name]
    for question in FAIRNESS_RUNS[model.name]:
        config, graph = _graph(model, question, graphs)
        weaker = question.config.names("SPECIFICATION")[0].startswith("WithWeak")
        name = _clause(question)
        changed = graph.weakened(name) if weaker else graph.without(name)
        assert question.violates is not None
        obligations = model.liveness[question.violates](config)
        assert find_lasso(changed, obligations) is not None, question.name
        assert find_lasso(graph, obligations) is None, question.name


@pytest.mark.parametrize("model", LIVE, ids=lambda model: model.name)
def test_each_fairness_clause_of_a_model_has_a_run_without_it(model: Model[Any, Any]) -> None:
    runs = {_clause(question) for question in FAIRNESS_RUNS[model.name]}
    # Timeout has a run in the deep profile, and GiveUp one that begins elsewhere. Retry bounds its faults.
    needed = {"Replication": {"Timeout"}, "Election": {"GiveUp"}, "Retry": {"EndOfFaults"}}
    clauses = {clause.name for clause in model.fairness}
    assert clauses == runs | needed.get(model.name, set())


@pytest.mark.parametrize("model", LIVE, ids=lambda model: model.name)
def test_a_strong_clause_has_a_run_in_which_it_is_weak(model: Model[Any, Any]) -> None:
    """Strong fairness that no run needs is a stronger assumption than the module states."""
    weakened = {
        _clause(question)
        for question in FAIRNESS_RUNS[model.name]
        if question.config.names("SPECIFICATION")[0].startswith("WithWeak")
    }
    strong = {clause.name for clause in model.fairness if isinstance(clause, Fair) and clause.strong}
    unneeded = {"Group": {"Commit"}, "Transactions": {"Advance", "Write"}, "Election": {"Request"}}
    assert strong == weakened | unneeded.get(model.name, set())


@pytest.mark.parametrize("model", LIVE, ids=lambda model: model.name)
def test_each_liveness_property_is_judged_in_each_profile_and_holds(model: Model[Any, Any]) -> None:
    for profile in ("smoke", "mutation", "ci", "deep"):
        runs = infinite_runs.fair_models(MODELS_FILE, model, profile)
        names = {name for question in runs for name in infinite_runs.liveness_of(model, question)}
        assert names == set(model.liveness), profile
    for question in infinite_runs.fair_models(MODELS_FILE, model, "smoke"):
        judged = infinite_runs.judged(model, question, None, lambda _depth, _states: None)
        assert [one.verdict for one in judged] == [Verdict.HELD] * len(judged)
        assert question.states is not None
        assert all(one.states in question.states for one in judged)


def test_a_graph_that_is_too_large_is_unknown_and_never_held() -> None:
    model = MODELS["Flush"]
    (question,) = infinite_runs.fair_models(MODELS_FILE, model, "smoke")
    judged = infinite_runs.judged(model, question, 100, lambda _depth, _states: None)
    results = infinite_runs.results("Flush", judged, "mqproof explore Flush")
    assert {result.verdict for result in results} == {Verdict.UNKNOWN}
    assert {result.detail for result in results} == {"Flush: more than 100 states"}


def test_a_violation_is_reported_with_its_run_and_wins_over_other_verdicts() -> None:
    model = MODELS["Timers"]
    (question,) = infinite_runs.fair_models(MODELS_FILE, model, "smoke")
    unfair = replace(model, fairness=())
    judged = infinite_runs.judged(unfair, question, None, lambda _depth, _states: None)
    (result,) = infinite_runs.results("Timers", judged, "mqproof explore Timers")
    assert (result.id, result.verdict) == ("TIMER-4", Verdict.VIOLATED)
    assert "then for ever: nothing happens (for m1)" in result.witnesses[0].text
    assert infinite_runs.rows(judged).rows[0][:4] == (
        "Timers",
        "MCTimers_liveness_smoke",
        "TimerDelivered",
        "violated",
    )
