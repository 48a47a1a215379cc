"""Short scripts that the model explains, and small deviations that it must not explain."""

import pytest

from mqproof.conformance.suites.flush.oracle import Oracle, OracleLimitError
from mqproof.conformance.suites.flush.steps import (
    Bounds,
    Commit,
    Down,
    End,
    Operation,
    Query,
    Restart,
    SyncsFail,
)
from mqproof.conformance.suites.flush.target import Setup
from mqproof.reference.flush import ASYNC_FLUSH, SYNC_FLUSH
from tests.conformance.suites.flush.histories import (
    ASYNC,
    KILLED,
    OS_CRASHED,
    STOPPED,
    SYNC,
    abandoned,
    found,
    nothing,
    refused,
    stored,
)

UP = Restart()
POWER = Down(End.POWER_LOSS)


def first_unexplained(setup: Setup, *operations: Operation) -> int | None:
    """Return the index of the first operation that the model does not explain; None if it explains all."""
    oracle = Oracle(setup, (setup.flush_mode,))
    return next((n for n, operation in enumerate(operations) if not oracle.observe(operation)), None)


COMMITTED = (stored("m1", 0), found(0, "m1", peek=False), Commit(0, 1, True))
TIMED_OUT = stored("m1", 0, "FLUSH_DISK_TIMEOUT")

EXPLAINED = {
    "a send, a delivery, a commit": (SYNC, *COMMITTED, Query(0, 1)),
    "dispatch may lag": (ASYNC, stored("m1", 0), nothing(0), found(0, "m1")),
    "a refusal changes nothing": (SYNC, refused("m1"), Bounds(0, 0, 0), stored("m2", 0)),
    "async loses a tail with the system": (
        ASYNC, stored("m1", 0), stored("m2", 1), OS_CRASHED, UP, found(0, "m1"),
    ),
    "a timed-out flush may be lost": (SYNC, TIMED_OUT, POWER, UP, Bounds(0, 0, 0)),
    "a timed-out flush may survive": (SYNC, TIMED_OUT, POWER, UP, Bounds(0, 0, 1)),
    "an abandoned send may be stored": (SYNC, abandoned("m1"), stored("m2", 1), found(0, "m1", "m2")),
    "an abandoned send may be stored later": (SYNC, abandoned("m1"), stored("m2", 0), found(0, "m2", "m1")),
    "an abandoned send may be lost": (SYNC, abandoned("m1"), stored("m2", 0), found(0, "m2")),
    "a commit may be lost with the process": (
        ASYNC, *COMMITTED, KILLED, UP, Query(0, 0),
    ),
    "a commit may survive the process": (
        ASYNC, *COMMITTED, KILLED, UP, Query(0, 1),
    ),
    "a clean exit makes all durable": (ASYNC, stored("m1", 0), STOPPED, POWER, UP, found(0, "m1")),
}  # fmt: skip
LIES = {
    "an offset left out": (1, SYNC, stored("m1", 0), stored("m2", 2)),
    "an offset given twice": (1, SYNC, stored("m1", 0), stored("m2", 0)),
    "a sync ack that power takes back": (3, SYNC, stored("m1", 0), POWER, UP, Bounds(0, 0, 0)),
    "an async ack that a kill takes back": (3, ASYNC, stored("m1", 0), KILLED, UP, Bounds(0, 0, 0)),
    "a hole in what survived": (4, ASYNC, stored("m1", 0), stored("m2", 1), OS_CRASHED, UP, found(0, "m2")),
    "a delivery taken back by the system": (
        4, SYNC, abandoned("m1"), found(0, "m1"), OS_CRASHED, UP, Bounds(0, 0, 0),
    ),
    "a flush time-out under async": (0, ASYNC, stored("m1", 0, "FLUSH_DISK_TIMEOUT")),
    "a refused message delivered": (1, SYNC, refused("m1"), found(0, "m1")),
    "a queue that grows by itself": (0, SYNC, Bounds(0, 0, 1)),
    "an end that goes back": (2, ASYNC, stored("m1", 0), Bounds(0, 0, 1), Bounds(0, 0, 0)),
    "a commit that went back": (3, SYNC, *COMMITTED, Query(0, 0)),
    "a commit that a clean exit lost": (
        5, SYNC, *COMMITTED, STOPPED, UP, Query(0, 0),
    ),
    "an ack while no fsync works": (1, SYNC, SyncsFail(), stored("m1", 0)),
    "an abandoned send stored after it was settled": (
        2, SYNC, abandoned("m1"), Bounds(0, 0, 0), stored("m2", 2),
    ),
}  # fmt: skip


@pytest.mark.parametrize("script", EXPLAINED)
def test_the_model_explains(script: str) -> None:
    setup, *operations = EXPLAINED[script]
    assert isinstance(setup, Setup)
    assert first_unexplained(setup, *operations) is None  # type: ignore[arg-type]  # a table of mixed tuples


@pytest.mark.parametrize("script", LIES)
def test_the_model_does_not_explain(script: str) -> None:
    step, setup, *operations = LIES[script]
    assert isinstance(setup, Setup)
    assert first_unexplained(setup, *operations) == step  # type: ignore[arg-type]  # a table of mixed tuples


def test_an_unknown_flush_mode_keeps_both_modes_possible_until_an_observation_decides() -> None:
    oracle = Oracle(Setup(ASYNC_FLUSH), (SYNC_FLUSH, ASYNC_FLUSH))
    assert {state.mode for state in oracle.states} == {SYNC_FLUSH, ASYNC_FLUSH}
    assert oracle.observe(stored("m1", 0, "FLUSH_DISK_TIMEOUT"))
    assert {state.mode for state in oracle.states} == {SYNC_FLUSH}


def test_too_many_possible_states_are_reported_and_not_followed() -> None:
    oracle = Oracle(SYNC, (SYNC_FLUSH,))
    operations = [abandoned(f"m{number}") for number in range(12)]
    with pytest.raises(OracleLimitError, match="are possible"):
        [oracle.observe(operation) for operation in operations]
