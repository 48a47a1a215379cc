"""Goal: the rules are those of docs/reference/protocol/replication.md, "Replication"; TLC has the same graph.

Method: tables, sequences of actions, TLC's state graph.
"""

from pathlib import Path

import pytest

from mqproof import spec
from mqproof.reference import replication
from mqproof.reference.equivalence.equiv import compare
from mqproof.reference.replication import ASYNC_FLUSH, MASTER, SLAVE, SYNC_MASTER, Config, Frame, State

SMALL = """
CONSTANTS
    Messages = {"m1"}
    FlushModes = {"ASYNC_FLUSH"}
    Roles = {"SYNC_MASTER"}
    FallBehindMax = 2
    MaxCrashes = 1
    MaxCuts = 0
    MaxStrangers = 1
    Commits = FALSE
"""

CONFIG = Config(flush_modes=(ASYNC_FLUSH,), roles=(SYNC_MASTER,))


def run(*actions: tuple[object, ...]) -> State:
    """Return the state after these actions; each action must be enabled."""
    (state,) = replication.initial(CONFIG)
    for name, *parameters in actions:
        after = replication.ACTIONS[str(name)].apply(CONFIG, state, *parameters)
        assert after is not None, f"{name}{tuple(parameters)} is disabled"
        state = after
    return state


FIRST_SENT = (("Connect",), ("AcceptReport", Frame("report", 0)), ("AppendRecord", 0), ("TransferRecord",))
FIRST_STORED = (*FIRST_SENT, ("ReceiveTransfer", Frame("transfer", 0, "m1")))
MASTER_LOST_TAIL = (*FIRST_STORED, ("SystemCrash", MASTER, 0), ("Housekeeping", SLAVE), ("Start", MASTER))


def test_the_replication_model_has_the_same_state_graph_as_tlc() -> None:
    tla = Path(spec.__file__).parent / "tla"
    equivalence = compare(replication.MODEL, "MCReplication", SMALL, (tla,), next_name="MCNext")
    assert equivalence.equal
    assert equivalence.violation is None
    assert equivalence.states > 2000


@pytest.mark.parametrize(
    ("flush", "replica", "status"),
    [
        ("PUT_OK", "PUT_OK", "SEND_OK"),
        ("FLUSH_DISK_TIMEOUT", "PUT_OK", "FLUSH_DISK_TIMEOUT"),
        ("PUT_OK", "SLAVE_NOT_AVAILABLE", "SLAVE_NOT_AVAILABLE"),
        ("FLUSH_DISK_TIMEOUT", "FLUSH_SLAVE_TIMEOUT", "FLUSH_SLAVE_TIMEOUT"),
    ],
)
def test_the_replica_status_overrides_the_flush_status(flush: str, replica: str, status: str) -> None:
    assert replication.put_status(flush, replica) == status


def test_an_acknowledgement_beyond_the_end_of_the_log_is_ignored() -> None:
    assert replication.acked_position(1, 3, end=2) == 1
    assert replication.acked_position(1, 2, end=2) == 2
    assert replication.acked_position(2, 1, end=2) == 2


def test_without_a_slave_the_producer_gets_its_response_immediately() -> None:
    assert run(("AppendRecord", 0), ("AnswerSend", 0)).answer == ("SLAVE_NOT_AVAILABLE", "unsent")


def test_a_send_gets_send_ok_only_after_the_slave_has_acknowledged_it() -> None:
    stored = run(*FIRST_STORED)
    assert replication.answer_send(CONFIG, stored, 0) is None
    assert run(*FIRST_STORED, ("ReceiveAck", Frame("ack", 1)), ("AnswerSend", 0)).answer[0] == "SEND_OK"


def test_a_slave_with_records_that_its_master_lost_stops_replicating() -> None:
    diverged = run(
        *MASTER_LOST_TAIL,
        ("Connect",),
        ("AcceptReport", Frame("report", 0)),
        ("AppendRecord", 1),
        ("TransferRecord",),
        ("RefuseTransfer", Frame("transfer", 0, "m2")),
    )
    assert diverged.forked
    assert diverged.refused
    assert diverged.log == (("m2",), ("m1",))
    assert replication.connect(CONFIG, diverged) is None


def test_an_acknowledged_message_is_delivered_by_the_slave_after_the_master_is_lost() -> None:
    acked = (*FIRST_STORED, ("ReceiveAck", Frame("ack", 1)), ("AnswerSend", 0))
    read = run(*acked, ("MachineLoss",), ("Deliver", SLAVE))
    assert read.seen == ("m1",)
    assert replication.no_acked_lost(CONFIG, read)
