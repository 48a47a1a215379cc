"""The transactions suite's oracle and checkers on handwritten histories."""

import pytest

from mqproof.conformance.engine.broker_faults import BrokerFault, InjectFault
from mqproof.conformance.engine.stepped_run import Stepped
from mqproof.conformance.suites.transactions.checkers import checkers
from mqproof.conformance.suites.transactions.oracle import explanation
from mqproof.conformance.suites.transactions.steps import Checked, Operation, Read, Report, SendHalf
from mqproof.conformance.suites.transactions.target import Answer, End
from mqproof.report.model import Verdict

ROUND_S = 30.0


def send(name: str = "t0", at_s: float = 0.0) -> SendHalf:
    return SendHalf(name, at_s)


def commit(at_s: float, answer: Answer = Answer.OK, name: str = "t0") -> Report:
    return Report(name, End.COMMIT, 0, answer, at_s)


def rollback(at_s: float, answer: Answer = Answer.OK) -> Report:
    return Report("t0", End.ROLLBACK, 0, answer, at_s)


def read(at_s: float, *names: str) -> Read:
    return Read(names, at_s)


def kill(at_s: float) -> InjectFault:
    return InjectFault(BrokerFault.KILL, at_s)


def violated(*operations: Operation) -> set[str]:
    seen = Stepped("a broker", explanation(), checkers(ROUND_S))
    for operation in operations:
        seen.observe(operation)
    return {i for i, finding in seen.findings().items() if finding.verdict is Verdict.VIOLATED}


@pytest.mark.parametrize(
    "operations",
    [
        (send(), read(1), commit(2), read(3, "t0"), commit(4), commit(5, Answer.REFUSED), read(6, "t0")),
        (send(), rollback(1), commit(2, Answer.REFUSED), read(3)),
        # The rollback may be lost, because its operation was not written.
        (send(), rollback(1), kill(2), commit(3), read(4, "t0")),
        (send(), commit(1), kill(2), commit(3, Answer.REFUSED), read(4, "t0")),
        (send(), Checked(("t0",), 30), commit(31), read(32, "t0")),
        # Discarded.
        (send(), Checked(("t0",), 30), commit(500, Answer.REFUSED), read(501)),
    ],
)
def test_a_correct_history_is_explained(operations: tuple[Operation, ...]) -> None:
    assert violated(*operations) == set()


@pytest.mark.parametrize(
    ("operations", "expected"),
    [
        ((send(), read(1, "t0")), {"DELIV-9"}),
        ((send(), commit(1), read(2)), {"DELIV-9"}),
        ((send(), commit(1), read(2, "t0", "t0")), {"TXN-1"}),
        ((send(), rollback(1), commit(2), read(3, "t0")), {"TXN-2"}),
        ((send(), commit(1), Checked(("t0",), 30)), {"TXN-2"}),
        ((send(), rollback(1), kill(20), Checked(("t0",), 50)), {"TXN-2"}),
        ((send(), kill(1), commit(2, Answer.REFUSED)), {"TXN-3"}),
        ((send(), Checked(("t0",), 3)), {"TXN-4"}),
        ((send(), Checked(("t9",), 30)), {"TXN-4"}),
        ((send(), read(100)), {"TXN-5"}),
        ((send(), Checked(("t0",), 30), commit(40, Answer.REFUSED), read(41, "t0")), {"SPEC-1"}),
    ],
)
def test_a_wrong_history_violates_the_named_invariant(
    operations: tuple[Operation, ...], expected: set[str]
) -> None:
    assert violated(*operations) == expected
