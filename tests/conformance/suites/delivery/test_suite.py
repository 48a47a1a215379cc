"""The delivery suite's oracle and checkers on handwritten histories."""

import pytest

from mqproof.conformance.engine.shared_steps import Query
from mqproof.conformance.engine.stepped_run import Stepped
from mqproof.conformance.suites.delivery.checkers import CHECKERS
from mqproof.conformance.suites.delivery.oracle import EXPLANATION, assigned_queues
from mqproof.conformance.suites.delivery.steps import (
    Change,
    Commit,
    Deliver,
    Membership,
    Operation,
    Rebalance,
    Send,
    Settled,
)
from mqproof.conformance.suites.delivery.target import Message
from mqproof.report.model import Verdict

M1, M2 = Message("m1", 0), Message("m2", 1)
ALL = frozenset({0, 1, 2})
NONE: frozenset[str] = frozenset()


ONE_MEMBER: tuple[Operation, ...] = (
    Send(0, M1),
    Send(0, M2),
    Membership("c1", Change.JOINS, NONE),
    Rebalance("c1", frozenset({"c1"}), ALL, ((0, 0), (1, None), (2, None))),
)


C2_JOINS = Membership("c2", Change.JOINS, frozenset({"c1"}))


def violated(*operations: Operation) -> set[str]:
    seen = Stepped("a group", EXPLANATION, CHECKERS)
    for operation in operations:
        seen.observe(operation)
    return {i for i, finding in seen.findings().items() if finding.verdict is Verdict.VIOLATED}


def test_queues_are_assigned_as_clients_assign_them() -> None:
    assert [assigned_queues({"c1", "c2"}, member) for member in ("c1", "c2", "c3")] == [{0, 1}, {2}, set()]


@pytest.mark.parametrize(
    ("operations", "broken"),
    [
        ((Deliver("c1", 0, 0, (M1, M2)), Commit("c1", 0, 2, oneway=False), Query(0, 2), Settled()), set()),
        ((Deliver("c1", 0, 0, (M1,)), Settled()), {"DELIV-1", "DELIV-12"}),
        ((Deliver("c1", 0, 0, (Message("m9", 0),)),), {"DELIV-2"}),
        ((Deliver("c1", 1, 0, (M1,)),), {"DELIV-2"}),
        ((Deliver("c1", 0, 0, (M2,)),), {"DELIV-4"}),
        ((Deliver("c1", 0, 0, ()),), {"SPEC-1"}),
        ((Commit("c1", 0, 2, oneway=False), Query(0, 1)), {"DELIV-5"}),
        ((Commit("c1", 0, 2, oneway=True), Query(0, 0), Query(0, 2)), set()),
        ((Commit("c1", 0, 2, oneway=True), Query(0, 1)), {"SPEC-1"}),
        ((Commit("c1", 0, 1, oneway=True), Commit("c1", 0, 2, oneway=False), Query(0, 1)), set()),
        # The second member joins: the present member is notified.
        ((C2_JOINS, Rebalance("c1", frozenset({"c1", "c2"}), frozenset({0, 1}), ())), set()),
        ((Membership("c2", Change.JOINS, NONE),), {"SPEC-1"}),
        ((C2_JOINS, Rebalance("c2", frozenset({"c2"}), ALL, ())), {"SPEC-1"}),
        ((C2_JOINS, Rebalance("c2", frozenset({"c2"}), ALL, ()), Deliver("c1", 0, 0, (M1, M2)), Settled()),
         {"DELIV-6"}),
        # A member that takes over a queue begins at the group's offset.
        ((Commit("c1", 0, 1, oneway=False), Membership("c0", Change.JOINS, NONE),
          Rebalance("c0", NONE, frozenset(), ((0, 0),))), {"DELIV-3"}),
        ((Commit("c1", 0, 1, oneway=False), Membership("c0", Change.JOINS, NONE),
          Rebalance("c0", NONE, frozenset(), ((0, 2),))), {"DELIV-1"}),
    ],
)  # fmt: skip
def test_a_run_that_the_model_forbids_names_the_invariant(
    operations: tuple[Operation, ...], broken: set[str]
) -> None:
    assert violated(*ONE_MEMBER, *operations) == broken
