"""The results that a fault explains, suite by suite: oracles and checkers on handwritten histories."""

from collections.abc import Iterable
from typing import Any

import pytest

from mqproof.conformance.engine.broker_faults import BrokerFault, InjectFault
from mqproof.conformance.engine.shared_steps import Query, Span
from mqproof.conformance.engine.stepped_run import Explanation, Stepped
from mqproof.conformance.suites.admin import checkers as admin_checkers
from mqproof.conformance.suites.admin import oracle as admin_oracle
from mqproof.conformance.suites.admin import steps as admin
from mqproof.conformance.suites.delivery import checkers as delivery_checkers
from mqproof.conformance.suites.delivery import oracle as delivery_oracle
from mqproof.conformance.suites.delivery import steps as delivery
from mqproof.conformance.suites.delivery.target import Message as Delivered
from mqproof.conformance.suites.offsets import checkers as offsets_checkers
from mqproof.conformance.suites.offsets import oracle as offsets_oracle
from mqproof.conformance.suites.offsets import steps as offsets
from mqproof.conformance.suites.offsets.target import Message
from mqproof.conformance.suites.ordering import checkers as ordering_checkers
from mqproof.conformance.suites.ordering import oracle as ordering_oracle
from mqproof.conformance.suites.ordering import steps as ordering
from mqproof.conformance.suites.retry import checkers as retry_checkers
from mqproof.conformance.suites.retry import oracle as retry_oracle
from mqproof.conformance.suites.retry import steps as retry
from mqproof.conformance.suites.retry.target import Answer, Copy, Place, Setup
from mqproof.reference.rules.administration import READ, WRITE, Topic
from mqproof.report.model import Verdict

KILLED, STOPPED = InjectFault(BrokerFault.KILL), InjectFault(BrokerFault.RESTART)
CUT, FROZEN = InjectFault(BrokerFault.CUT), InjectFault(BrokerFault.FREEZE)


def violated(explanation: Explanation[Any, Any], checkers: Any, operations: Iterable[Any]) -> set[str]:
    seen: Stepped[Any, Any] = Stepped("a broker", explanation, checkers)
    for operation in operations:
        seen.observe(operation)
    return {i for i, finding in seen.findings().items() if finding.verdict is Verdict.VIOLATED}


TWO_SENT = (offsets.Send(0, Message("m1", "", 0)), offsets.Send(0, Message("m2", "", 1)))
ONE_THEN_TWO = (*TWO_SENT, offsets.Commit(0, 1, oneway=False), offsets.Commit(0, 2, oneway=False))


@pytest.mark.parametrize(
    ("operations", "broken"),
    [
        # After a crash, any offset since the last write is possible; after a clean exit, only the last one.
        ((*ONE_THEN_TWO, KILLED, Query(0, 1)), set()),
        ((*ONE_THEN_TWO, KILLED, Query(0, 0), Query(0, 1)), {"SPEC-1"}),
        ((*ONE_THEN_TWO, KILLED, Query(0, 3)), {"SPEC-1"}),
        ((*ONE_THEN_TWO, offsets.Write(), KILLED, Query(0, 1)), {"DELIV-5"}),
        ((*ONE_THEN_TWO, STOPPED, Query(0, 1)), {"DELIV-5"}),
        ((*ONE_THEN_TWO, STOPPED, KILLED, Query(0, 1)), {"DELIV-5"}),
        ((*ONE_THEN_TWO, CUT, Query(0, 1)), {"DELIV-5"}),
        # The offsets of all queues are written together.
        (
            (*TWO_SENT, offsets.Commit(0, 1, oneway=False), offsets.Commit(1, 4, oneway=False), KILLED,
             Query(0, 0), Query(1, 4)),
            {"SPEC-1"},
        ),
        # A commit in progress is stored before the process ends, or never.
        ((*TWO_SENT, offsets.Commit(0, 2, oneway=True), FROZEN, Query(0, 0), Query(0, 2)),
         set()),
        ((*TWO_SENT, offsets.Commit(0, 2, oneway=True), STOPPED, Query(0, 0), Query(0, 2)),
         {"SPEC-1"}),
        # No message is lost.
        ((*TWO_SENT, KILLED, offsets.Bounds(0, 0, 1)), {"SPEC-1"}),
    ],
)  # fmt: skip
def test_offsets_after_a_fault(operations: tuple[Any, ...], broken: set[str]) -> None:
    assert violated(offsets_oracle.EXPLANATION, offsets_checkers.CHECKERS, operations) == broken


SETUP = Setup("topic", (1.0, 5.0, 10.0, 30.0), slack_s=2.0, clock_s=0.0)
FIRST, AGAIN = Copy("m1", 0, "topic", "", 7), Copy("m1", 1, "topic", "id", 8)
SENT_BACK = (
    retry.Send("m1", 0, "id", Span(0, 0)),
    retry.Read(Place.TOPIC, (FIRST,), Span(0, 0), settled=False),
    retry.SendBack(FIRST, 0, None, Answer.OK, Span(0, 0)),
)


def read(at_s: float, *copies: Copy, settled: bool = False) -> retry.Read:
    return retry.Read(Place.RETRY, copies, Span(at_s, at_s), settled)


def over(fault: BrokerFault, at_s: float) -> InjectFault:
    return InjectFault(fault, at_s)


@pytest.mark.parametrize(
    ("operations", "broken"),
    [
        # The copy arrives late if no broker delivers it, and again after a crash. It must arrive.
        ((over(BrokerFault.KILL, 14), read(15), read(16, AGAIN)), set()),
        ((over(BrokerFault.KILL, 14), read(15), read(17)), {"SPEC-1"}),
        ((over(BrokerFault.KILL, 14), read(99, settled=True)), {"DELIV-7"}),
        ((read(11, AGAIN), over(BrokerFault.KILL, 14), read(16, AGAIN)), set()),
        ((read(11, AGAIN), over(BrokerFault.RESTART, 14), read(16, AGAIN)), {"DELIV-3"}),
        ((read(11, AGAIN), over(BrokerFault.FREEZE, 14), read(16, AGAIN)), {"DELIV-3"}),
        # A message that was never delayed does not arrive again, and no copy arrives early.
        ((over(BrokerFault.KILL, 1), retry.Read(Place.TOPIC, (FIRST,), Span(2, 2), settled=False)),
         {"DELIV-3"}),
        ((over(BrokerFault.FREEZE, 1), read(2, AGAIN)), {"DELIV-8"}),
        # After a crash, a repeated copy cannot be distinguished from a later one that is still pending.
        ((read(11, AGAIN), over(BrokerFault.KILL, 14),
          retry.SendBack(FIRST, 0, None, Answer.OK, Span(15, 15)), read(16, AGAIN), read(25, AGAIN)), set()),
    ],
)  # fmt: skip
def test_retries_after_a_fault(operations: tuple[Any, ...], broken: set[str]) -> None:
    explanation, checkers = retry_oracle.explanation(SETUP, 1), retry_checkers.checkers(SETUP, 1)
    assert violated(explanation, checkers, (*SENT_BACK, *operations)) == broken


NONE: frozenset[str] = frozenset()
ONE_MEMBER = frozenset({"c1"})
READING = (
    delivery.Send(0, Delivered("m1", 0)),
    delivery.Send(0, Delivered("m2", 1)),
    delivery.Membership("c1", delivery.Change.JOINS, NONE),
    delivery.Rebalance("c1", ONE_MEMBER, frozenset({0, 1, 2}), ((0, 0), (1, None), (2, None))),
    delivery.Deliver("c1", 0, 0, (Delivered("m1", 0), Delivered("m2", 1))),
    delivery.Commit("c1", 0, 2, oneway=False),
)
RETURNS = delivery.Membership("c1", delivery.Change.RETURNS, NONE)
JOINS = delivery.Membership("c2", delivery.Change.JOINS, ONE_MEMBER)


def begins(offset: int) -> tuple[Any, ...]:
    """Return steps in which c2 takes over the queues of c1 and begins queue 0 at the offset."""
    left = delivery.Membership("c1", delivery.Change.DIES, frozenset({"c2"}))
    queues = ((0, offset), (1, None), (2, None))
    return JOINS, left, delivery.Rebalance("c2", frozenset({"c2"}), frozenset({0, 1, 2}), queues)


@pytest.mark.parametrize(
    ("operations", "broken"),
    [
        ((KILLED, RETURNS, *begins(0)), set()),
        ((STOPPED, RETURNS, *begins(2)), set()),
        ((STOPPED, RETURNS, *begins(0)), {"DELIV-3"}),
        ((STOPPED, KILLED, RETURNS, *begins(0)), {"DELIV-3"}),
        ((CUT, RETURNS, *begins(0)), {"DELIV-3"}),
        ((KILLED, RETURNS, *begins(3)), {"DELIV-1"}),
        # A killed broker forgets its members and is notified again; a frozen one keeps them.
        ((KILLED, RETURNS, delivery.Deliver("c1", 0, 2, ())), set()),
        ((KILLED, JOINS, delivery.Rebalance("c2", frozenset({"c1", "c2"}), frozenset({2}), ((2, None),))),
         {"SPEC-1"}),
        ((FROZEN, delivery.Rebalance("c1", ONE_MEMBER, frozenset({0, 1, 2}), ())), set()),
    ],
)  # fmt: skip
def test_a_group_after_a_fault(operations: tuple[Any, ...], broken: set[str]) -> None:
    found = violated(delivery_oracle.EXPLANATION, delivery_checkers.CHECKERS, (*READING, *operations))
    assert found == broken


def lock(member: str, at_s: float, *, granted: bool) -> ordering.Lock:
    granted_queues = frozenset({0} if granted else ())
    return ordering.Lock("g", member, frozenset({0}), granted_queues, Span(at_s, at_s))


@pytest.mark.parametrize(
    ("fault", "granted", "broken"),
    [
        (KILLED, True, set()),
        (KILLED, False, {"SPEC-1"}),
        (CUT, False, set()),
        (CUT, True, {"DELIV-13"}),
        (FROZEN, True, {"DELIV-13"}),
    ],
)
def test_a_lock_after_a_fault(fault: InjectFault, granted: bool, broken: set[str]) -> None:
    begins = [ordering.Begin("g", "c2", 0, 3)] if granted else []
    seen = (
        lock("c1", 0, granted=True), ordering.Begin("g", "c1", 0, 0), fault, lock("c2", 2, granted=granted),
        *begins,
    )  # fmt: skip
    assert violated(ordering_oracle.explanation(60.0), ordering_checkers.checkers(60.0), seen) == broken


MADE = (
    admin.MakeTopic("t", Topic(1, 1, READ | WRITE)),
    admin.Send("t", 0, "m1", "k", "id1"),
    admin.Commit("g", "t", 0, 1, taken=True),
)


@pytest.mark.parametrize(
    ("operations", "broken"),
    [
        ((KILLED, admin.ShowTopic("t", Topic(1, 1, READ | WRITE), routed=True)), set()),
        ((KILLED, admin.ShowTopic("t", None, routed=False)), {"SPEC-1"}),
        ((KILLED, admin.ByKey("t", "k", ())), {"DELIV-1"}),
        ((KILLED, admin.Query("g", "t", 0, 0)), set()),
        ((STOPPED, admin.Query("g", "t", 0, 0)), {"SPEC-1"}),
        ((STOPPED, KILLED, admin.Query("g", "t", 0, 0)), {"SPEC-1"}),
    ],
)
def test_settings_after_a_fault(operations: tuple[Any, ...], broken: set[str]) -> None:
    assert violated(admin_oracle.EXPLANATION, admin_checkers.CHECKERS, (*MADE, *operations)) == broken
