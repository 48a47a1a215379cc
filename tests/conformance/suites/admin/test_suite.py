"""The admin suite's oracle and checkers on handwritten histories."""

import pytest

from mqproof.conformance.engine.stepped_run import Stepped
from mqproof.conformance.suites.admin.checkers import CHECKERS
from mqproof.conformance.suites.admin.oracle import EXPLANATION
from mqproof.conformance.suites.admin.steps import (
    ById,
    ByKey,
    Clone,
    Commit,
    DeleteGroup,
    DeleteTopic,
    MakeGroup,
    MakeTopic,
    Operation,
    Pull,
    Query,
    Send,
    ShowGroup,
    ShowTopic,
)
from mqproof.reference.rules.administration import READ, WRITE, Group, Topic
from mqproof.report.model import Verdict

TWO = Topic(reads=1, writes=2, perm=READ | WRITE)
MAY, MAY_NOT = Group(consumes=True, retries_max=16), Group(consumes=False, retries_max=16)
MADE: tuple[Operation, ...] = (
    MakeTopic("t", TWO),
    MakeGroup("g", MAY),
    Send("t", 0, "m1", "Aa k", "id1"),
    Send("t", 1, "m2", "BB", "id2"),
    Commit("g", "t", 0, 1, taken=True),
)
COMMITTED_WITHOUT_TOPIC: tuple[Operation, ...] = (
    DeleteTopic("t"),
    Commit("g", "t", 0, 7, taken=True),
    Commit("h", "t", 0, 5, taken=True),
)


def violated(*operations: Operation) -> set[str]:
    seen = Stepped("a broker", EXPLANATION, CHECKERS)
    for operation in (*MADE, *operations):
        seen.observe(operation)
    return {i for i, finding in seen.findings().items() if finding.verdict is Verdict.VIOLATED}


@pytest.mark.parametrize(
    ("operations", "broken"),
    [
        ((ShowTopic("t", TWO, routed=True), ShowGroup("g", MAY), Pull("g", "t", 0, ("m1",))), set()),
        ((ShowTopic("t", None, routed=True),), {"SPEC-1"}),
        ((ShowGroup("g", MAY_NOT),), {"SPEC-1"}),
        ((Send("t", 2, "m3", "", "id3"),), {"SPEC-1"}),
        ((Send("t", 1, "m3", "", None),), {"SPEC-1"}),
        # The topic has one queue to read.
        ((Pull("g", "t", 1, None),), set()),
        ((Pull("g", "t", 1, ("m2",)),), {"SPEC-1"}),
        ((Pull("g", "t", 0, ()),), {"DELIV-1"}),
        ((Pull("g", "t", 0, ("m1", "m2")),), {"DELIV-2"}),
        ((MakeGroup("g", MAY_NOT), Pull("g", "t", 0, None)), set()),
        ((MakeGroup("g", MAY_NOT), Pull("g", "t", 0, ("m1",))), {"SPEC-1"}),
        ((MakeTopic("t", TWO._replace(perm=WRITE)), Pull("g", "t", 0, None)), set()),
        ((ByKey("t", "Aa", ("m1",)), ByKey("t", "m2", ("m2",)), ByKey("t", "x", ())), set()),
        ((ByKey("t", "k", ("m1", "m2")),), {"DELIV-2"}),
        # Aa and BB have the same hash.
        ((ByKey("t", "Aa", ("m1", "m2")),), set()),
        ((ByKey("t", "Aa", ()),), {"DELIV-1"}),
        ((ById("m1", "m1"),), set()),
        ((ById("m1", "m2"),), {"DELIV-1", "DELIV-2"}),
        # Messages of a deleted topic cannot be read. Queries may find them; their offsets may be forgotten.
        ((DeleteTopic("t"), MakeTopic("t", TWO), Pull("g", "t", 0, ())), set()),
        ((DeleteTopic("t"), MakeTopic("t", TWO), Pull("g", "t", 0, ("m1",))), {"SPEC-1"}),
        ((DeleteTopic("t"), ByKey("t", "Aa", ()), ById("m1", None)), set()),
        ((DeleteTopic("t"), ByKey("t", "Aa", ("m1",)), ById("m1", "m1")), set()),
        ((DeleteTopic("t"), Query("g", "t", 0, 0)), set()),
        ((DeleteTopic("t"), Query("g", "t", 0, 1)), set()),
        ((DeleteTopic("t"), Query("g", "t", 0, 0), Query("g", "t", 0, 1)), {"SPEC-1"}),
        ((DeleteGroup("g"), Query("g", "t", 0, 1)), {"SPEC-1"}),
        ((MakeGroup("h", MAY), Clone("g", "h", "t"), Query("h", "t", 0, 1)), set()),
        ((MakeGroup("h", MAY), Clone("g", "h", "t"), Query("h", "t", 0, 0)), {"SPEC-1"}),
        # The other group has an offset only in queue 0.
        ((Commit("h", "t", 1, 1, taken=True), Clone("g", "h", "t"), Query("h", "t", 1, 0)), set()),
        ((Commit("h", "t", 1, 1, taken=True), Clone("g", "h", "t"), Query("h", "t", 1, 1)), {"SPEC-1"}),
        ((Commit("g", "u", 1, 1, taken=True), Clone("h", "g", "u"), Query("g", "u", 1, 1)), set()),
        # For a missing topic, a clone copies offsets or none.
        ((*COMMITTED_WITHOUT_TOPIC, Clone("g", "h", "t"), Query("h", "t", 0, 5)), set()),
        ((*COMMITTED_WITHOUT_TOPIC, Clone("g", "h", "t"), Query("h", "t", 0, 7)), set()),
        ((*COMMITTED_WITHOUT_TOPIC, Clone("g", "h", "t"), Query("h", "t", 0, 0)), {"SPEC-1"}),
    ],
)
def test_a_run_that_the_model_forbids_names_the_invariant(
    operations: tuple[Operation, ...], broken: set[str]
) -> None:
    assert violated(*operations) == broken
