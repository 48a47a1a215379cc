"""The oracle and checkers of the suite of requests and replies on handwritten histories."""

import pytest

from mqproof.conformance.engine.broker_faults import BrokerFault, InjectFault
from mqproof.conformance.engine.stepped_run import Stepped
from mqproof.conformance.suites.request_reply.checkers import checkers
from mqproof.conformance.suites.request_reply.oracle import explanation
from mqproof.conformance.suites.request_reply.steps import Ended, Look, Lost, Operation, Reply, Request
from mqproof.conformance.suites.request_reply.target import Answer, End
from mqproof.report.model import Verdict


def request(call: str = "r0", at_s: float = 0.0, client: str = "c1", *, stored: bool = True) -> Request:
    return Request(call, client, 10.0, stored, at_s)


def reply(at_s: float, answer: Answer = Answer.OK, call: str = "r0") -> Reply:
    return Reply(call, answer, at_s, at_s)


def got(at_s: float, body: str = "r0") -> Ended:
    return Ended("r0", End.REPLY, body, at_s)


def timeout(at_s: float, call: str = "r0") -> Ended:
    return Ended(call, End.TIMEOUT, "", at_s)


def kill(at_s: float) -> InjectFault:
    return InjectFault(BrokerFault.KILL, at_s)


def violated(*operations: Operation) -> set[str]:
    seen = Stepped("a broker", explanation(), checkers())
    for operation in operations:
        seen.observe(operation)
    return {i for i, finding in seen.findings().items() if finding.verdict is Verdict.VIOLATED}


@pytest.mark.parametrize(
    "operations",
    [
        (request(), reply(1), got(1), reply(2), Look(20)),
        (request(), timeout(10), reply(11), Look(20)),
        (request(stored=False), Ended("r0", End.REFUSED, "", 1), Look(20)),
        # A fault may disconnect the client, or lose the confirmation of a reply that it received.
        (request(), kill(1), reply(2, Answer.REFUSED), reply(3), got(3)),
        (request(), kill(1), reply(2, Answer.REFUSED), got(2)),
        # Near the end of the limit, the reply may come too late.
        (request(), reply(9.9), timeout(10)),
        # A lost client gives no result. Its next process takes the reply.
        (request(), Lost("c1"), reply(1, Answer.REFUSED), Look(20)),
        (request(), Lost("c1"), request("r1", 1), reply(2), Look(5)),
    ],
)
def test_a_correct_history_is_explained(operations: tuple[Operation, ...]) -> None:
    assert violated(*operations) == set()


@pytest.mark.parametrize(
    ("operations", "expected"),
    [
        ((request(), request("r1"), reply(1, call="r1"), got(1, "r1")), {"REPLY-1"}),
        ((request(), reply(1), timeout(10)), {"REPLY-1"}),
        ((request(), reply(1), got(1), got(2)), {"REPLY-2"}),
        ((request(), reply(11), got(11)), {"REPLY-2"}),
        ((request(), Lost("c1"), reply(1)), {"REPLY-3"}),
        ((request(), Look(20)), {"REPLY-4"}),
        ((request(), reply(1, Answer.REFUSED)), {"SPEC-1"}),
        ((request(), timeout(3)), {"SPEC-1"}),
        ((request(), Ended("r0", End.REFUSED, "", 1)), {"SPEC-1"}),
    ],
)
def test_a_wrong_history_violates_the_named_invariant(
    operations: tuple[Operation, ...], expected: set[str]
) -> None:
    assert violated(*operations) == expected
