"""Our push consumers as members of a group: the suite's model explains their steps."""

import pytest

from mqproof.conformance.adapters.brokers.push_members import PushMembers, live
from mqproof.conformance.engine.finding import SPEC_1
from mqproof.conformance.mutants import consumers, delivery
from mqproof.conformance.mutants.mutant import Mutant
from mqproof.conformance.mutants.replacement import injected
from mqproof.conformance.mutants.workload import MUTANTS as OF_CLIENTS
from mqproof.conformance.suites.delivery.checkers import CHECKERS
from mqproof.conformance.suites.delivery.steps import Change, Membership
from mqproof.report.model import Verdict

SEEDS = range(1, 7)


def violated(group: PushMembers) -> set[str]:
    return {id_ for id_, finding in group.findings().items() if finding.verdict is Verdict.VIOLATED}


@pytest.mark.parametrize("seed", SEEDS)
def test_the_model_explains_every_step_of_our_consumers(seed: int) -> None:
    group = live(seed)
    findings = group.findings()
    assert {id_: f.verdict for id_, f in findings.items()} == dict.fromkeys((*CHECKERS, SPEC_1), Verdict.HELD)
    assert {"Store", "Rebalance", "Start", "Deliver", "CommitOffset"} <= set(group.actions())


def test_the_model_explains_members_that_leave_die_or_fall_silent() -> None:
    steps = [step for seed in SEEDS for step in live(seed).run.operations if isinstance(step, Membership)]
    assert {step.change for step in steps} == set(Change) - {Change.RETURNS}
    assert all(step.notified for step in steps if step.change in (Change.DIES, Change.SILENT))


@pytest.mark.parametrize(
    ("mutant", "breaks"),
    [
        (OF_CLIENTS["everybody-owns-everything"], "DELIV-6"),
        (delivery.MUTANTS["group-begins-ahead"], "DELIV-1"),
        (delivery.MUTANTS["group-begins-behind"], "DELIV-3"),
        (delivery.MUTANTS["members-not-notified"], SPEC_1),
        (delivery.MUTANTS["dead-member-stays"], "DELIV-6"),
        (consumers.MUTANTS["reset-not-notified"], SPEC_1),
        (consumers.MUTANTS["reset-not-obeyed"], SPEC_1),
        (consumers.MUTANTS["taken-over-too-low"], SPEC_1),
    ],
    ids=lambda each: each.name if isinstance(each, Mutant) else each,
)
def test_a_defect_of_the_client_or_the_broker_is_detected(mutant: Mutant, breaks: str) -> None:
    with injected(mutant):
        assert any(breaks in violated(live(seed)) for seed in SEEDS)
