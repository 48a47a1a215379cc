"""Goal: each expectation of models.toml can fail. Method: Counter, with one expectation changed at a time."""

from dataclasses import replace
from pathlib import Path

import pytest

from mqproof.report.model import Result, Verdict
from mqproof.spec import models
from mqproof.spec.model_file import Band, Models, Question, load
from mqproof.spec.tlc.errors import Reason, TlcError

COUNTER = load(Path(__file__).parent / "models.toml")


def question(name: str) -> Question:
    return next(question for question in COUNTER.questions["Counter"] if question.name == name)


def results_of(run: Question) -> dict[str, Result]:
    return {result.name: result for result in models.ask(COUNTER, run).results}


def test_a_held_run_has_one_result_per_property_and_one_for_its_recorded_size() -> None:
    results = results_of(question("Counter"))
    assert set(results) == {"TypeOK", "WithinMax", "NeverDown", "RecordedSize"}
    assert {result.verdict for result in results.values()} == {Verdict.HELD}
    assert results["TypeOK"].counts["states"] == 57
    assert results["TypeOK"].replay.startswith("mqproof check Counter --only Counter --models ")


@pytest.mark.parametrize(
    ("states", "depth", "detail"),
    [
        (Band(58, 60), Band(9, 9), "57 distinct states, 58 to 60 recorded"),
        (Band(57, 57), Band(10, 10), "depth 9, 10 recorded"),
    ],
)
def test_a_size_that_differs_from_the_recorded_size_has_the_verdict_violated(
    states: Band, depth: Band, detail: str
) -> None:
    results = results_of(replace(question("Counter"), states=states, depth=depth, workers=1))
    assert results["RecordedSize"].verdict is Verdict.VIOLATED
    assert results["RecordedSize"].detail == detail
    assert results["TypeOK"].verdict is Verdict.HELD


def test_a_violated_property_has_steps_as_witnesses_and_the_others_are_unknown() -> None:
    base = question("Counter")
    # One worker: with two, it is random which of several shortest counterexamples is found.
    broken = base.config.with_section("INVARIANT", "NeverFull")
    results = results_of(replace(base, config=broken, workers=1))
    assert results["NeverFull"].verdict is Verdict.VIOLATED
    assert results["NeverFull"].witnesses[0].text == "step 1 initial state"
    assert "] 0 -> 2, log appended" in results["NeverFull"].witnesses[-1].text
    assert results["TypeOK"].verdict is Verdict.UNKNOWN
    assert "NeverFull was violated" in results["TypeOK"].detail
    assert "RecordedSize" not in results


def test_a_witnessed_probe_is_held_and_reports_the_depth_of_its_witness() -> None:
    results = results_of(question("probes"))
    assert {result.verdict for result in results.values()} == {Verdict.HELD}
    assert results["NeverFull is false somewhere"].counts["first seen at depth"] == 2


def test_a_probe_that_is_never_false_has_the_verdict_violated() -> None:
    results = results_of(replace(question("probes"), probes=("NeverFull", "WithinMax")))
    assert results["NeverFull is false somewhere"].verdict is Verdict.HELD
    assert results["WithinMax is false somewhere"].verdict is Verdict.VIOLATED
    assert "never false in 57 states" in results["WithinMax is false somewhere"].detail


@pytest.mark.parametrize("name", ["NeverDropped", "Spec", "CounterSettles", "Greedy"])
def test_a_violation_that_models_toml_expects_has_the_verdict_held(name: str) -> None:
    (result,) = models.ask(COUNTER, question(name)).results
    assert result.verdict is Verdict.HELD
    assert result.counts["steps"] > 0


def test_a_needless_fairness_clause_has_the_verdict_violated() -> None:
    run = question("Spec")
    (result,) = models.ask(COUNTER, replace(run, config=run.config.specified("FairSpec"))).results
    assert result.verdict is Verdict.VIOLATED
    assert result.detail == "Takes must be violated, but everything held"


def test_a_surviving_mutant_has_the_verdict_violated() -> None:
    tame = replace(
        question("Greedy"), module="Counter", config=question("Counter").config.asking("WithinMax")
    )
    (result,) = models.ask(COUNTER, tame).results
    assert result.verdict is Verdict.VIOLATED
    assert result.name == "WithinMax catches Greedy"


def test_a_mutant_detected_only_by_another_property_has_the_verdict_violated() -> None:
    run = question("Greedy")
    other = run.config.asking("TypeOK")
    (result,) = models.ask(COUNTER, replace(run, config=other)).results
    assert result.verdict is Verdict.VIOLATED
    assert result.detail == "WithinMax must be violated, but TypeOK was"


def test_a_detected_mutant_has_the_verdict_held() -> None:
    (result,) = models.ask(COUNTER, question("Greedy")).results
    assert (result.layer, result.verdict, result.name) == ("tla", Verdict.HELD, "WithinMax catches Greedy")


def test_a_run_over_its_time_limit_has_the_verdict_unknown() -> None:
    (result,) = models.ask(COUNTER, replace(question("Counter"), seconds_max=0)).results
    assert result.verdict is Verdict.UNKNOWN
    assert "time-out" in result.detail


def test_the_error_for_a_model_that_does_not_parse_names_the_run() -> None:
    with pytest.raises(
        TlcError, match=r"Counter Counter: TLC: parse error: Cannot find .* module Lost"
    ) as caught:
        models.ask(COUNTER, replace(question("Counter"), module="Lost"))
    assert caught.value.reason is Reason.PARSE


def test_results_have_the_ids_of_the_catalogue() -> None:
    question = next(q for q in load().questions["Flush"] if q.name == "MCFlush_liveness_smoke")
    results = models.ask(load(), question).results
    assert {r.verdict for r in results} == {Verdict.HELD}
    assert [(r.id, r.name) for r in results] == [
        ("FLUSH-7", "SendAnswered"),
        ("FLUSH-8", "RecoveryEnds"),
        ("DELIV-12", "AckedDelivered"),
        ("SPEC-3", "RefinesDelivery"),
        ("Flush.MCFlush_liveness_smoke", "RecordedSize"),
    ]


def test_progress_is_reported_before_and_after_each_question() -> None:
    calls: list[tuple[str, bool]] = []

    class Follower(models.Progress):
        def started(self, question: Question) -> None:
            calls.append((question.name, False))

        def answered(self, answer: models.Answer) -> None:
            calls.append((answer.question.name, True))

    models.ask_all(Models(COUNTER.file, {}), [question("NeverDropped")], Follower())
    assert calls == [("NeverDropped", False), ("NeverDropped", True)]
