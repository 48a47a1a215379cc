"""The suite of producers: models hold, mutants are detected; oracle and checkers on handwritten histories."""

import pytest

from mqproof.conformance.adapters.producers.factories import ImplProducer, targets
from mqproof.conformance.engine.shared_steps import Wait
from mqproof.conformance.engine.stepped_run import Stepped
from mqproof.conformance.engine.suite_run import examine, run_suite
from mqproof.conformance.engine.targets import UnknownTargetError
from mqproof.conformance.mutants.producers import MUTANTS
from mqproof.conformance.suites.producers.checkers import checkers
from mqproof.conformance.suites.producers.oracle import explanation
from mqproof.conformance.suites.producers.steps import Operation, Route, Send
from mqproof.conformance.suites.producers.suite import PRODUCERS
from mqproof.conformance.suites.producers.target import Attempt, Fate, Setup
from mqproof.report.model import Verdict

SAMPLE = {mutant.breaks: name for name, mutant in reversed(list(MUTANTS.items()))}.values()
"""The first mutant of each invariant; `mqproof mutants` runs all."""
RESTS = Setup(brokers=3, queues=1, strategy=True)


@pytest.mark.parametrize("target", ["impl", "reference"])
def test_every_invariant_holds(target: str) -> None:
    with targets(target) as factory:
        found = run_suite(factory, 15, seed=1, suite=PRODUCERS)
    assert {result.id: result.verdict for result in found} == dict.fromkeys(PRODUCERS.ids, Verdict.HELD)


@pytest.mark.parametrize("name", SAMPLE)
def test_the_named_invariant_detects_the_mutant(name: str) -> None:
    mutant = MUTANTS[name]
    wanted = frozenset({mutant.breaks})
    with targets(f"mutant:{name}") as factory:
        found = examine(factory, 200, 0, suite=PRODUCERS, wanted=wanted, shrink=False)
    assert mutant.breaks in found.failures, f"{mutant.defect}: not noticed"


def test_every_invariant_of_the_suite_has_a_mutant() -> None:
    assert {mutant.breaks for mutant in MUTANTS.values()} == set(PRODUCERS.ids)


def test_the_same_seed_gives_the_same_run() -> None:
    def seen(seed: int) -> dict[str, dict[str, int]]:
        examination = examine(ImplProducer, 3, seed, suite=PRODUCERS)
        return {i: dict(counts) for i, counts in examination.counts.items()}

    assert seen(3) == seen(3)
    assert seen(3) != seen(4)


def test_an_unknown_target_name_is_refused() -> None:
    for name in ("remoting://127.0.0.1:1", "mutant:none", "no-round-robin"):
        with pytest.raises(UnknownTargetError, match=r"is not a producer|is not a mutant"), targets(name):
            pass


def sent(*attempts: tuple[str, float, Fate], done: bool = True) -> Send:
    return Send(tuple(Attempt(broker, 0, at_s, fate) for broker, at_s, fate in attempts), done)


def violated(setup: Setup, *operations: Operation) -> set[str]:
    seen = Stepped("a producer", explanation(setup), checkers(setup))
    for operation in operations:
        seen.observe(operation)
    return {i for i, finding in seen.findings().items() if finding.verdict is Verdict.VIOLATED}


A_FAILED = (Route(("a", "b")), sent(("a", 0, Fate.BUSY), ("b", 0, Fate.OK)))


@pytest.mark.parametrize(
    ("operations", "broken"),
    [
        ((sent(("b", 0, Fate.OK)), sent(("c", 0, Fate.OK)), sent(("a", 0, Fate.OK))), set()),
        ((sent(("b", 0, Fate.OK)), sent(("a", 0, Fate.OK))), {"SPEC-1"}),
        ((sent(("a", 0, Fate.BUSY), ("b", 0, Fate.OK)),), set()),
        ((sent(("a", 0, Fate.BUSY), ("a", 0, Fate.OK)),), {"ROUTE-5", "ROUTE-6"}),
        ((sent(("a", 0, Fate.BUSY), done=False),), {"SPEC-1"}),
        ((sent(("a", 0, Fate.OK), ("b", 0, Fate.OK)),), {"SPEC-1"}),
        ((sent(("a", 0, Fate.OK), done=False),), {"SPEC-1"}),
        # An answer after 0.7 s causes a rest of 2 s.
        ((Route(("a", "b")), sent(("a", 0, Fate.SLOW)), sent(("b", 0.7, Fate.OK))), set()),
        ((sent(("a", 0, Fate.SLOW)), sent(("a", 2.6, Fate.OK))), {"ROUTE-6"}),
        ((Route(("a",)), sent(("a", 0, Fate.SLOW)), sent(("a", 0.7, Fate.OK))), set()),
        # A failure causes a rest of 10 s; at its exact end, both results are possible.
        ((*A_FAILED, sent(("b", 9, Fate.OK))), set()),
        ((*A_FAILED, sent(("a", 10, Fate.OK))), set()),
        ((*A_FAILED, sent(("b", 10, Fate.OK))), set()),
        ((*A_FAILED, Wait(1), sent(("b", 11, Fate.OK))), {"SPEC-1"}),
    ],
)  # fmt: skip
def test_a_run_that_the_model_forbids_names_the_invariant(
    operations: tuple[Operation, ...], broken: set[str]
) -> None:
    assert violated(RESTS, *operations) == broken


def test_no_broker_is_avoided_without_the_strategy() -> None:
    plain = Setup(brokers=2, queues=1, strategy=False)
    assert (
        violated(plain, sent(("a", 0, Fate.SLOW)), sent(("b", 1, Fate.OK)), sent(("a", 1, Fate.OK))) == set()
    )
