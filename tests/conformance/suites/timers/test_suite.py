"""The timers suite's oracle and checkers on handwritten histories."""

import pytest

from mqproof.conformance.engine.broker_faults import BrokerFault, InjectFault
from mqproof.conformance.engine.stepped_run import Stepped
from mqproof.conformance.suites.timers.checkers import CHECKERS
from mqproof.conformance.suites.timers.oracle import explanation
from mqproof.conformance.suites.timers.steps import Operation, Read, Recall, Send
from mqproof.conformance.suites.timers.target import Answer
from mqproof.report.model import Verdict


def send(delay_s: float = 10.0, answer: Answer = Answer.OK) -> Send:
    return Send("m0", delay_s, answer, 0.0, 0.1)


def recall(at_s: float, answer: Answer = Answer.OK) -> Recall:
    return Recall("m0", answer, at_s)


def read(at_s: float, *names: str) -> Read:
    return Read(names, at_s)


def fault(at_s: float, kind: BrokerFault = BrokerFault.KILL) -> InjectFault:
    return InjectFault(kind, at_s)


def violated(*operations: Operation) -> set[str]:
    seen = Stepped("a broker", explanation(), CHECKERS)
    for operation in operations:
        seen.observe(operation)
    return {i for i, finding in seen.findings().items() if finding.verdict is Verdict.VIOLATED}


@pytest.mark.parametrize(
    "operations",
    [
        (send(), read(9.9), read(10.5), read(11, "m0"), fault(20), read(21, "m0")),
        (send(), recall(5), recall(6, Answer.REFUSED), read(60)),
        (send(), recall(10.05, Answer.REFUSED), read(12, "m0")),
        (send(300_000, Answer.REFUSED), read(1)),
        # The final message is lost with the power, and the message is delivered again.
        (send(), read(11, "m0"), fault(12, BrokerFault.POWER_LOSS), read(12), read(13.4, "m0")),
        # An outage at its time.
        (send(), fault(100), read(101), read(102, "m0")),
    ],
)
def test_a_correct_history_is_explained(operations: tuple[Operation, ...]) -> None:
    assert violated(*operations) == set()


@pytest.mark.parametrize(
    ("operations", "expected"),
    [
        ((send(), read(9.9, "m0")), {"DELIV-8"}),
        ((send(), read(50)), {"TIMER-1", "TIMER-4"}),
        ((send(), fault(20), read(22)), {"TIMER-4"}),
        ((send(), read(12, "m0", "m0")), {"TIMER-2"}),
        ((send(), recall(5), fault(6), read(12, "m0")), {"TIMER-3"}),
        ((send(300_000), read(1)), {"TIMER-5"}),
        ((send(10, Answer.REFUSED),), {"TIMER-5"}),
        ((send(), recall(5, Answer.REFUSED)), {"SPEC-1"}),
        ((send(), read(12, "m0"), recall(13)), {"SPEC-1"}),
        ((send(), read(12, "m9")), {"TIMER-4"}),
    ],
)
def test_a_wrong_history_violates_the_named_invariant(
    operations: tuple[Operation, ...], expected: set[str]
) -> None:
    assert violated(*operations) == expected
