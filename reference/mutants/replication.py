"""Broken variants of the replication model; spec/tla/mutants explains each bug under the same name."""

from functools import partial
from typing import Final

from mqproof.reference import replication
from mqproof.reference.mutants.mutant import Mutant
from mqproof.reference.replication import (
    ASYNC_FLUSH,
    ASYNC_MASTER,
    MASTER,
    SLAVE,
    SYNC_FLUSH,
    SYNC_MASTER,
    Config,
    Frame,
    State,
)


def _waits_for_no_slave(config: Config, state: State, m: int) -> State | None:
    after = replication.answer_send(config, state._replace(acked=len(state.log[MASTER])), m)
    return after and after._replace(acked=state.acked)


def _not_compared(config: Config, state: State, frame: Frame) -> State | None:
    return replication.receive_transfer(config, state._replace(verified=True), frame)


def _position_not_checked(config: Config, state: State, frame: Frame) -> State | None:
    if frame not in state.network or not state.verified:
        return replication.receive_transfer(config, state, frame)
    here = frame._replace(position=len(state.log[SLAVE]))
    after = replication.receive_transfer(config, state._replace(network=state.network | {here}), here)
    return after and after._replace(network=after.network - {here} | state.network)


def _flush_status_wins(config: Config, state: State, m: int) -> State | None:
    after = replication.answer_send(config, state, m)
    if after is None or replication.flush_status(config, state, m) == "PUT_OK":
        return after
    answer = (*state.answer[:m], replication.flush_status(config, state, m), *state.answer[m + 1 :])
    return after._replace(answer=answer)


def _stuck_behind_another(config: Config, state: State, m: int) -> State | None:
    return replication.slave_timeout(config, state._replace(acked=0), m)


def _slave_starts_over(config: Config, state: State, n: int) -> State | None:
    after = replication.housekeeping(config, state, n)
    return after and (after if n == MASTER else after._replace(log=(after.log[MASTER], ()), flushed=(0, 0)))


def _old_offsets_win(_config: Config, state: State) -> State | None:
    master, slave = state.committed
    return None if "down" in state.phase or master == slave else state._replace(committed=(master, master))


def _ack_of_replica_alone(config: Config, state: State, m: int) -> State | None:
    durable = state._replace(flushed=(len(state.log[MASTER]), state.flushed[SLAVE]))
    after = replication.answer_send(config, durable, m)
    return after and after._replace(flushed=state.flushed)


def _acked_when_sent(config: Config, state: State) -> State | None:
    after = replication.transfer_record(config, state)
    return after and after._replace(acked=max(after.acked, after.sent))


def _read_beyond_end(config: Config, state: State, n: int) -> State | None:
    after = replication.deliver(config, state, n)
    if after is None and state.phase[n] == "up" and len(state.seen) < len(config.messages):
        return state._replace(seen=(*state.seen, "zeroes"))
    return after


def _read_not_durable(config: Config, state: State, n: int) -> State | None:
    after = replication.deliver(config, state._replace(flush_mode=ASYNC_FLUSH), n)
    return after and after._replace(flush_mode=state.flush_mode)


def _slave_read_from_max(config: Config, state: State, n: int) -> State | None:
    after = replication.deliver(config, state, n)
    return after and (after._replace(seen=(*state.seen, state.log[n][-1])) if n == SLAVE else after)


def _stranger_counted(config: Config, state: State) -> State | None:
    after = replication.stranger_acknowledges(config, state)
    return after and after._replace(acked=len(after.log[MASTER]))


def _timed_out_not_answered(config: Config, state: State, m: int) -> State | None:
    late = state.request[m].replica == "FLUSH_SLAVE_TIMEOUT"
    return None if late else replication.answer_send(config, state, m)


def _slave_never_hangs_up(config: Config, state: State, n: int) -> State | None:
    return None if n == SLAVE else replication.housekeeping(config, state, n)


def _consumer_waits_for_master(config: Config, state: State, n: int) -> State | None:
    return None if n == SLAVE else replication.deliver(config, state, n)


_replication = partial(Mutant, replication.MODEL)
_ONE: Final = Config(messages=("m1",))
_STEADY: Final = Config(crashes_max=0)
_CRASH: Final = Config(messages=("m1",), flush_modes=(ASYNC_FLUSH,), roles=(SYNC_MASTER,))

MUTANTS: Final[tuple[Mutant, ...]] = (
    _replication("WaitsForNoSlave", "SyncAckedOnSlave", "AnswerSend", _waits_for_no_slave, _ONE),
    _replication(
        "NotCompared",
        "SlaveIsPrefix",
        "ReceiveTransfer",
        _not_compared,
        Config(messages=("m1", "m2", "m3"), flush_modes=(ASYNC_FLUSH,), roles=(ASYNC_MASTER,)),
    ),
    _replication("PositionNotChecked", "SlaveIsPrefix", "ReceiveTransfer", _position_not_checked, _STEADY),
    _replication("FlushStatusWins", "StatusHonest", "AnswerSend", _flush_status_wins, _ONE),
    _replication("StuckBehindAnother", "StatusHonest", "SlaveTimeout", _stuck_behind_another, _STEADY),
    _replication("SlaveStartsOver", "ReadableWithoutMaster", "Housekeeping", _slave_starts_over, _ONE),
    _replication(
        "OldOffsetsWin",
        "OffsetMonotone",
        "SyncOffsets",
        _old_offsets_win,
        Config(messages=("m1",), commits=True),
    ),
    _replication("AckOfReplicaAlone", "SyncAckedDurable", "AnswerSend", _ack_of_replica_alone, _ONE),
    _replication("AckedWhenSent", "NoAckedLost", "TransferRecord", _acked_when_sent, _ONE),
    _replication("ReadBeyondEnd", "NoPhantom", "Deliver", _read_beyond_end, _ONE),
    _replication(
        "ReadNotDurable",
        "QueueOrder",
        "Deliver",
        _read_not_durable,
        Config(messages=("m1",), flush_modes=(SYNC_FLUSH,), roles=(ASYNC_MASTER,)),
    ),
    _replication(
        "StrangerCounted",
        "StrangerNotCounted",
        "StrangerAcknowledges",
        _stranger_counted,
        Config(messages=("m1",), crashes_max=0, strangers_max=1),
    ),
    _replication("SlaveReadFromMax", "QueueOrder", "Deliver", _slave_read_from_max, _STEADY),
    _replication("TimedOutNotAnswered", "SendAnswered", "AnswerSend", _timed_out_not_answered, _CRASH),
    _replication("SlaveNeverHangsUp", "SlaveCatchesUp", "Housekeeping", _slave_never_hangs_up, _CRASH),
    _replication("ConsumerWaitsForMaster", "AckedDelivered", "Deliver", _consumer_waits_for_master, _CRASH),
)
