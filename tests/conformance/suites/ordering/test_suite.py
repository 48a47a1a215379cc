"""The ordering suite's oracle and checker on handwritten histories."""

import pytest

from mqproof.conformance.engine.shared_steps import Span
from mqproof.conformance.engine.stepped_run import Stepped
from mqproof.conformance.suites.ordering.checkers import checkers
from mqproof.conformance.suites.ordering.oracle import explanation
from mqproof.conformance.suites.ordering.steps import Begin, End, Lock, Operation, Unlock
from mqproof.report.model import Verdict

LEASE_S = 60.0


def lock(member: str, at_s: float, granted: bool | None = True, until_s: float | None = None) -> Lock:
    queues = None if granted is None else frozenset({0} if granted else ())
    return Lock("g", member, frozenset({0}), queues, Span(at_s, at_s if until_s is None else until_s))


def unlock(member: str, at_s: float) -> Unlock:
    return Unlock("g", member, frozenset({0}), Span(at_s, at_s))


def violated(*operations: Operation) -> set[str]:
    seen = Stepped("a broker", explanation(LEASE_S), checkers(LEASE_S))
    for operation in operations:
        seen.observe(operation)
    return {i for i, finding in seen.findings().items() if finding.verdict is Verdict.VIOLATED}


@pytest.mark.parametrize(
    "operations",
    [
        (lock("c1", 0), lock("c2", 59, granted=False), lock("c1", 59), lock("c2", 100, granted=False)),
        (lock("c1", 0), lock("c2", 61)),
        (lock("c1", 0), unlock("c2", 1), lock("c2", 2, granted=False)),
        (lock("c1", 0), unlock("c1", 1), lock("c2", 2)),
        # Near the end of the lease, it may be over or not.
        (lock("c1", 0, until_s=2), lock("c2", 61)),
        (lock("c1", 0, until_s=2), lock("c2", 61, granted=False)),
        # A request with a lost answer takes the lock, does not take it, or takes it late.
        (lock("c1", 0, granted=None), lock("c2", 1, granted=False)),
        (lock("c1", 0, granted=None), lock("c2", 1), lock("c1", 2, granted=False)),
        (lock("c1", 0, granted=None), lock("c2", 1), unlock("c2", 2), lock("c3", 3, granted=False)),
    ],
)
def test_the_model_explains_an_allowed_run(operations: tuple[Operation, ...]) -> None:
    assert violated(*operations) == set()


@pytest.mark.parametrize(
    "operations",
    [
        (lock("c1", 0), lock("c2", 59)),
        (lock("c1", 0), lock("c2", 61, granted=False)),
        (lock("c1", 0), unlock("c2", 1), lock("c2", 2)),
        (lock("c1", 0), unlock("c1", 1), lock("c2", 2, granted=False)),
        (lock("c1", 0), lock("c1", 1, granted=False)),
        (lock("c1", 0, granted=None), lock("c2", 1, granted=False), lock("c2", 2)),
        # It took the lock once, and cannot take it again.
        (lock("c1", 0, None), lock("c2", 1, False), unlock("c1", 2), lock("c2", 3), lock("c3", 99, False)),
    ],
)
def test_the_model_does_not_explain_a_forbidden_run(operations: tuple[Operation, ...]) -> None:
    assert violated(*operations) == {"SPEC-1"}


def test_two_active_listeners_of_one_queue_are_an_overlap() -> None:
    both = (lock("c1", 0), Begin("g", "c1", 0, 1), lock("c2", 2), Begin("g", "c2", 0, 3))
    assert violated(*both) == {"DELIV-13"}
    assert violated(*both[:2], End("g", "c1", 0), unlock("c1", 1), *both[2:]) == set()


def test_a_listener_that_runs_beyond_its_lease_is_no_overlap() -> None:
    assert violated(lock("c1", 0), Begin("g", "c1", 0, 1), lock("c2", 61), Begin("g", "c2", 0, 62)) == set()
