"""Valid claims are proved, invalid claims have a counterexample, and the proofs match the models."""

import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import z3

from mqproof.reference.proofs import selection, step_correspondence
from mqproof.reference.proofs.judge import counterexample, judge_mutant
from mqproof.reference.proofs.logic import Scope
from mqproof.reference.proofs.mutants import MUTANTS
from mqproof.reference.proofs.mutants.mutant import Mutant
from mqproof.reference.proofs.proof import INIT, INVARIANT, Obligation, Outcome, Proof, obligations, prove
from mqproof.reference.proofs.state_correspondence import CORRESPONDENCES, Correspondence, mismatches
from mqproof.report.model import Verdict

PROOFS = list(selection.PROOFS.values())
QUICK = [proof for proof in PROOFS if proof.name != "Election-5"]


@pytest.mark.parametrize("proof", QUICK, ids=lambda proof: proof.name)
def test_the_invariant_holds_initially_and_implies_the_safety_properties(proof: Proof) -> None:
    selected = [o for o in obligations(proof) if o.premise in (INIT, INVARIANT, "Lemma")]
    assert selected
    assert {prove(proof, obligation).outcome for obligation in selected} == {Outcome.PROVED}


def test_append_dispatch_crash_and_redispatch_preserve_the_invariant_of_flush() -> None:
    proof = selection.PROOFS["Flush"]
    actions = {"AppendRecord", "Dispatch", "OsCrash", "Redispatch"}
    answers = [prove(proof, obligation) for obligation in obligations(proof) if obligation.premise in actions]
    assert [a.obligation for a in answers if a.outcome is not Outcome.PROVED] == []
    assert len(answers) == len(actions) * (len(proof.clauses) + len(proof.step_safety))


DEEP = pytest.mark.deep("Z3 proves every obligation; those of Replication are proved in every run")


@pytest.mark.parametrize(
    "proof",
    [proof if proof.name == "Replication" else pytest.param(proof, marks=DEEP) for proof in PROOFS],
    ids=lambda proof: proof.name,
)
def test_each_proof_obligation_is_proved(proof: Proof) -> None:
    answers = [prove(proof, obligation) for obligation in obligations(proof)]
    assert [a.obligation for a in answers if a.outcome is not Outcome.PROVED] == []


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.full_name)
def test_each_mutant_action_has_a_counterexample_to_induction(mutant: Mutant) -> None:
    result, (table,) = judge_mutant(mutant)
    assert result.verdict is Verdict.HELD, result.detail
    assert mutant.action in table.title


@pytest.mark.parametrize("proof", QUICK, ids=lambda proof: proof.name)
def test_each_proved_invariant_has_a_mutant(proof: Proof) -> None:
    broken = {mutant.invariant for mutant in MUTANTS if mutant.proof is proof}
    assert broken == {*proof.safety, *proof.step_safety}


@pytest.mark.parametrize("pair", CORRESPONDENCES, ids=lambda pair: pair.proof.name)
def test_the_proof_agrees_with_the_reference_model_on_reachable_states(pair: Correspondence) -> None:
    assert list(mismatches(pair, _walked(pair, 40))) == []


def _walked(pair: Correspondence, count: int) -> Iterator[Any]:
    """Yield the states of random walks: to visit all reachable states would take most of the time."""
    chance = random.Random(0)
    after: list[Any] = []
    for _ in range(count):
        state = chance.choice(after or list(pair.model.initial(pair.config)))
        yield state
        after = [state for _, _, state in pair.model.steps(pair.config, state)]


@pytest.mark.deep("2,000 states; 40 are compared in every run")
def test_the_replication_proof_agrees_with_the_reference_model_on_many_states() -> None:
    for pair in CORRESPONDENCES:
        if pair.proof.name == "Replication":
            assert list(mismatches(pair, pair.sample(2000))) == []


@pytest.mark.parametrize("pair", CORRESPONDENCES, ids=lambda pair: pair.proof.name)
def test_each_action_of_the_model_is_in_the_proof(pair: Correspondence) -> None:
    assert {action.name for action in pair.proof.actions} == set(pair.model.actions)


def test_a_proof_of_a_different_model_is_detected() -> None:
    pair = CORRESPONDENCES[0]
    other = replace(pair, proof=next(m for m in MUTANTS if m.name == "AckBeforeFlush").broken())
    (first, *_) = mismatches(other, pair.sample(300))
    assert first.what.startswith("AnswerOk: 0 next states are the reference's alone")


def test_the_proof_allows_each_step_of_a_random_walk_of_the_election_model() -> None:
    assert list(step_correspondence.walk(0, steps=30)) == []


def test_a_step_that_the_proof_does_not_allow_is_detected() -> None:
    broken = next(m for m in MUTANTS if m.name == "LeaderOverwrites").broken()
    differences = list(step_correspondence.walk(2, steps=40, proof=broken))
    assert any("AppendEntry" in each for each in differences)


def test_an_invariant_that_is_too_strong_is_detected() -> None:
    pair = CORRESPONDENCES[0]
    clauses: dict[str, Any] = {"nothing_is_appended": lambda _scope, s: s.log_length == 0}
    strong = replace(pair, proof=replace(pair.proof, clauses=clauses))
    assert any(each.what.endswith("nothing_is_appended") for each in mismatches(strong, pair.sample(100)))


def _nothing_is_torn(_scope: Scope, s: Any) -> Any:
    return s.log_message(1) >= 0


def _something_is_stored(_scope: Scope, s: Any) -> Any:
    return s.log_length >= 1


def test_an_invalid_claim_about_the_initial_state_is_refuted_by_it() -> None:
    proof = replace(selection.PROOFS["Flush"], safety={"SomethingIsStored": _something_is_stored})
    answer = prove(proof, Obligation(INIT, "SomethingIsStored"))
    assert answer.outcome is Outcome.REFUTED
    shown = {row[0]: row[1] for row in counterexample("x", proof, answer).rows}
    assert shown["phase"] == "running"
    assert shown["log_length"] == "0"


@pytest.mark.deep("13 CPU seconds; the mutants above are refuted by readable steps in every run")
def test_an_invalid_claim_is_refuted_by_a_readable_state() -> None:
    proof = replace(selection.PROOFS["Flush"], safety={"NothingIsTorn": _nothing_is_torn})
    answer = prove(proof, Obligation(INVARIANT, "NothingIsTorn"))
    assert answer.outcome is Outcome.REFUTED
    shown = {row[0]: row[1] for row in counterexample("x", proof, answer).rows}
    assert shown["phase"] in ("running", "down", "log_recovered", "dispatching")
    assert shown["answer"].startswith("m0: ")


def _no_three_cubes_make_42(_scope: Scope, _s: Any) -> Any:
    """A false claim with a counterexample of 17 digits, which no solver finds, so it stays unknown."""
    x, y, z = z3.Ints("x y z")
    return x * x * x + y * y * y + z * z * z != 42


def test_an_obligation_over_the_time_limit_is_unknown() -> None:
    proof = replace(selection.PROOFS["Flush"], safety={"NoThreeCubesMake42": _no_three_cubes_make_42})
    answer = prove(proof, Obligation(INVARIANT, "NoThreeCubesMake42"), timeout_ms=50)
    assert answer.outcome is Outcome.UNKNOWN
