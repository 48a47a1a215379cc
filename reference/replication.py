"""How a master streams its log to a slave, action for action as in spec/tla/Replication.tla.

The order is the same: rules, frames, state, a send, a connection, the consumer, ends of a broker's life,
safety. The model makes the same abstractions as the TLA+ module. Positions count records.

The rules are plain functions of their arguments, for proofs and for comparison with the broker:

    put_status(flush: str, replica: str) -> str
    request_status(request: str, reached: bool) -> str
    slave_usable(connected: bool, end: int, acked: int, fall_behind_max: int) -> bool
    acked_position(acked: int, reported: int, end: int) -> int
    first_report(length: int) -> int
    merged_offset(own: int, masters: int) -> int
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from mqproof.reference.liveness import FIRST, Obligations, leads_to, weak
from mqproof.reference.model import Action, Model, Parameters, by_name, each, named, once
from mqproof.reference.tlc_terms import configuration, operators
from mqproof.reference.updates import with_item

SYNC_FLUSH: Final = "SYNC_FLUSH"
ASYNC_FLUSH: Final = "ASYNC_FLUSH"
SYNC_MASTER: Final = "SYNC_MASTER"
ASYNC_MASTER: Final = "ASYNC_MASTER"

NODES: Final = ("master", "slave")
MASTER: Final = 0
SLAVE: Final = 1


@dataclass(frozen=True, slots=True)
class Config:
    messages: tuple[str, ...] = ("m1", "m2")
    flush_modes: tuple[str, ...] = (SYNC_FLUSH, ASYNC_FLUSH)
    roles: tuple[str, ...] = (SYNC_MASTER, ASYNC_MASTER)
    fall_behind_max: int = 2
    crashes_max: int | None = 1
    """The maximum number of process and system crashes, as MCReplication bounds them; None for no bound."""
    cuts_max: int | None = 0
    strangers_max: int | None = 0
    """The maximum number of acknowledgements by strangers."""
    commits: bool = False
    """Whether the consumer commits its offset."""


# Rules that are functions of their arguments only


def is_prefix(shorter: tuple[str, ...], longer: tuple[str, ...]) -> bool:
    """IsPrefix: whether the first log is a prefix of the second."""
    return shorter == longer[: len(shorter)]


def longer_of(a: tuple[str, ...], b: tuple[str, ...]) -> tuple[str, ...]:
    """Longer: `b` if it continues `a`, otherwise `a`."""
    return b if is_prefix(a, b) else a


def put_status(flush: str, replica: str) -> str:
    """PutStatus: the status sent to the producer; the replica's status overrides the flush's."""
    if replica != "PUT_OK":
        return replica
    return flush if flush != "PUT_OK" else "SEND_OK"


def request_status(request: str, reached: bool) -> str:
    """RequestStatus: a request that timed out stays so, even if its position is reached later."""
    if request != "waiting":
        return request
    return "PUT_OK" if reached else "waiting"


def slave_usable(connected: bool, end: int, acked: int, fall_behind_max: int) -> bool:
    """SlaveUsable: whether a send that ends at `end` may wait for the slave."""
    return connected and end - acked < fall_behind_max


def acked_position(acked: int, reported: int, end: int) -> int:
    """AckedPosition: the slave's position; an acknowledgement beyond the log's end is ignored."""
    return max(acked, reported) if reported <= end else acked


def first_report(length: int) -> int:
    """FirstReport: the start of the last record of a log of this length, which is then compared."""
    return max(length - 1, 0)


def merged_offset(own: int, masters: int) -> int:
    """MergedOffset: the consumer offset of a slave, from its own commits and its master's offset."""
    return max(own, masters)


# Frames


class Frame(NamedTuple):
    kind: str  # report and ack go to the master, transfer to the slave
    position: int
    message: str = ""  # of a transfer: the record that follows the position in the master's log


# State


class Request(NamedTuple):
    """The state of a send's waits: which of them timed out."""

    flush: str = "waiting"  # waiting | FLUSH_DISK_TIMEOUT
    replica: str = "waiting"  # waiting | FLUSH_SLAVE_TIMEOUT | SLAVE_NOT_AVAILABLE


WAITS: Final = Request()
NOT_REQUESTED: Final = -1


class State(NamedTuple):
    """The state of the model.

    Tuples by node are in the order of NODES, by message in that of the configuration.
    """

    flush_mode: str
    role: str
    phase: tuple[str, str]  # by node: up | down | gone
    log: tuple[tuple[str, ...], tuple[str, ...]]  # by node: page cache over disk
    flushed: tuple[int, int]  # by node: durable records
    connected: tuple[bool, bool]  # by node: its end of the connection is open
    intact: bool  # the connection carries frames
    network: frozenset[Frame]  # sent frames, each of which may arrive once or several times
    sent: int  # master's memory: the position up to which it has sent on this connection
    acked: int  # master's memory: the highest acknowledged position
    request: tuple[Request, ...]  # master's memory, by message
    verified: bool  # slave's memory: on this connection its log was compared and equals the master's
    refused: bool  # slave's memory: it has data that its master lacks, and no longer follows
    committed: tuple[int, int]  # by node: the consumer offset it stores
    answer: tuple[str, ...]  # by message: unsent | waiting | unknown | one of the four statuses
    seen: tuple[str, ...]  # the messages delivered to the consumer
    held: frozenset[str]  # history: messages that have been in the slave's log
    forked: bool  # history: a master that lost its tail served while its slave had that tail
    recalled: bool  # history: a fault removed a message that had been delivered to the consumer
    process_crashes: int  # history
    system_crashes: tuple[int, int]  # history, by node
    cuts: int  # history
    strangers: int  # history: acknowledgements by peers without the secret


def initial(config: Config) -> tuple[State, ...]:
    """Init: one state for each flush mode and role."""
    return tuple(
        State(
            flush_mode=flush_mode,
            role=role,
            phase=("up", "up"),
            log=((), ()),
            flushed=(0, 0),
            connected=(False, False),
            intact=False,
            network=frozenset(),
            sent=NOT_REQUESTED,
            acked=0,
            request=(WAITS,) * len(config.messages),
            verified=False,
            refused=False,
            committed=(0, 0),
            answer=("unsent",) * len(config.messages),
            seen=(),
            held=frozenset(),
            forked=False,
            recalled=False,
            process_crashes=0,
            system_crashes=(0, 0),
            cuts=0,
            strangers=0,
        )
        for flush_mode in config.flush_modes
        for role in config.roles
    )


# A send, in the order of its life


def position(state: State, message: str) -> int:
    """Return the position of a message in the master's log, from 1. Raises ValueError if it is not there."""
    return state.log[MASTER].index(message) + 1


def new_request(config: Config, state: State) -> Request:
    """NewRequest: without a usable slave the request for a replica fails immediately."""
    end = len(state.log[MASTER]) + 1
    usable = slave_usable(state.connected[MASTER], end, state.acked, config.fall_behind_max)
    return Request(replica="SLAVE_NOT_AVAILABLE") if state.role == SYNC_MASTER and not usable else WAITS


def append_record(config: Config, state: State, m: int) -> State | None:
    """AppendRecord: messages are sent in the order of the configuration."""
    if state.phase[MASTER] != "up" or state.answer[m] != "unsent" or "unsent" in state.answer[:m]:
        return None
    return state._replace(
        log=with_item(state.log, MASTER, (*state.log[MASTER], config.messages[m])),
        request=with_item(state.request, m, new_request(config, state)),
        answer=with_item(state.answer, m, "waiting"),
    )


def flush_log(_config: Config, state: State, n: int) -> State | None:
    """FlushLog: an fsync returns."""
    if state.phase[n] != "up" or state.flushed[n] == len(state.log[n]):
        return None
    return state._replace(flushed=with_item(state.flushed, n, len(state.log[n])))


def flush_reached(config: Config, state: State, m: int) -> bool:
    """FlushReached: whether the flush that a message must wait for has happened."""
    return state.flush_mode != SYNC_FLUSH or position(state, config.messages[m]) <= state.flushed[MASTER]


def replica_reached(config: Config, state: State, m: int) -> bool:
    """ReplicaReached: whether the acknowledgement that a message must wait for has arrived."""
    return state.role != SYNC_MASTER or position(state, config.messages[m]) <= state.acked


def flush_status(config: Config, state: State, m: int) -> str:
    """FlushStatus: the status of a message's flush, waiting or decided."""
    return request_status(state.request[m].flush, flush_reached(config, state, m))


def replica_status(config: Config, state: State, m: int) -> str:
    """ReplicaStatus: the status of a message's replication, waiting or decided."""
    return request_status(state.request[m].replica, replica_reached(config, state, m))


def flush_timeout(config: Config, state: State, m: int) -> State | None:
    """FlushTimeout: a send no longer waits for its flush."""
    if state.answer[m] != "waiting" or flush_status(config, state, m) != "waiting":
        return None
    request = state.request[m]._replace(flush="FLUSH_DISK_TIMEOUT")
    return state._replace(request=with_item(state.request, m, request))


def slave_timeout(config: Config, state: State, m: int) -> State | None:
    """SlaveTimeout: a send no longer waits for the slave."""
    if state.answer[m] != "waiting" or replica_status(config, state, m) != "waiting":
        return None
    request = state.request[m]._replace(replica="FLUSH_SLAVE_TIMEOUT")
    return state._replace(request=with_item(state.request, m, request))


def answer_send(config: Config, state: State, m: int) -> State | None:
    """AnswerSend: when both flush and replica are decided, the producer gets its answer."""
    if state.answer[m] != "waiting":
        return None
    flush, replica = flush_status(config, state, m), replica_status(config, state, m)
    if "waiting" in (flush, replica):
        return None
    return state._replace(
        answer=with_item(state.answer, m, put_status(flush, replica)),
        request=with_item(state.request, m, WAITS),
    )


# A connection


def connect(_config: Config, state: State) -> State | None:
    """Connect: a connection's first frame is the slave's first report."""
    if state.phase != ("up", "up") or state.connected[SLAVE] or state.refused:
        return None
    return state._replace(
        connected=(True, True),
        intact=True,
        network=frozenset((Frame("report", first_report(len(state.log[SLAVE]))),)),
        sent=NOT_REQUESTED,
        verified=not state.log[SLAVE],
    )


def accept_report(_config: Config, state: State, frame: Frame) -> State | None:
    """AcceptReport: the master sends from the position in the report, which acknowledges nothing."""
    if state.sent != NOT_REQUESTED or frame not in state.network or not state.connected[MASTER]:
        return None
    if frame.kind != "report" or frame.position > len(state.log[MASTER]):
        return None
    return state._replace(sent=frame.position)


def _close(state: State, n: int) -> State:
    """Close: a closed end discards the frames that were sent to it."""
    to_slave = n == SLAVE
    return state._replace(
        connected=with_item(state.connected, n, False),
        intact=False,
        network=frozenset(f for f in state.network if (f.kind == "transfer") != to_slave),
    )


def refuse_report(_config: Config, state: State, frame: Frame) -> State | None:
    """RefuseReport: the slave requests a position beyond the master's end; the master closes."""
    if state.sent != NOT_REQUESTED or frame not in state.network or not state.connected[MASTER]:
        return None
    if frame.kind != "report" or frame.position <= len(state.log[MASTER]):
        return None
    return _close(state, MASTER)


def transfer_record(_config: Config, state: State) -> State | None:
    """TransferRecord: the master sends the next record of its log."""
    if not state.intact or not NOT_REQUESTED < state.sent < len(state.log[MASTER]):
        return None
    frame = Frame("transfer", state.sent, state.log[MASTER][state.sent])
    return state._replace(network=state.network | {frame}, sent=state.sent + 1)


def compares(state: State, frame: Frame) -> bool:
    """Compares: the slave requested its last record again, and this frame contains it."""
    return not state.verified and frame.position == first_report(len(state.log[SLAVE]))


def agrees(state: State, frame: Frame) -> bool:
    """Agrees: whether the frame's record equals the last record of the slave's log."""
    return frame.message == state.log[SLAVE][-1]


def continues(state: State, frame: Frame) -> bool:
    """Continues: a frame that does not begin at the end of the slave's log is an old one."""
    return state.verified and frame.position == len(state.log[SLAVE])


def receive_transfer(_config: Config, state: State, frame: Frame) -> State | None:
    """ReceiveTransfer: the slave compares or appends, and acknowledges."""
    if frame not in state.network or not state.connected[SLAVE]:
        return None
    if continues(state, frame):
        log = (*state.log[SLAVE], frame.message)
    elif compares(state, frame) and agrees(state, frame):
        log = state.log[SLAVE]
    else:
        return None
    forks = not state.intact and not is_prefix(log, state.log[MASTER])
    forks = forks and (state.phase[MASTER] == "up" or not is_prefix(state.log[MASTER], log))
    return state._replace(
        log=(state.log[MASTER], log),
        verified=True,
        network=state.network | {Frame("ack", len(log))} if state.intact else state.network,
        held=state.held | frozenset(log),
        forked=state.forked or forks,
    )


def refuse_transfer(_config: Config, state: State, frame: Frame) -> State | None:
    """RefuseTransfer: the slave's last record differs from its master's; it follows no longer."""
    if frame not in state.network or not state.connected[SLAVE]:
        return None
    if not compares(state, frame) or agrees(state, frame):
        return None
    return _close(state, SLAVE)._replace(refused=True)


def receive_ack(_config: Config, state: State, frame: Frame) -> State | None:
    """ReceiveAck: the master receives an acknowledgement that advances the acknowledged position."""
    if frame not in state.network or not state.connected[MASTER]:
        return None
    acked = acked_position(state.acked, frame.position, len(state.log[MASTER]))
    return None if acked == state.acked else state._replace(acked=acked)


def cut(config: Config, state: State) -> State | None:
    """Cut: the connection carries nothing any more; neither end knows yet."""
    if not state.intact or (config.cuts_max is not None and state.cuts >= config.cuts_max):
        return None
    return state._replace(intact=False, network=frozenset(), cuts=state.cuts + 1)


def stranger_acknowledges(config: Config, state: State) -> State | None:
    """StrangerAcknowledges: a peer without the secret acknowledges records, which does not count."""
    if config.strangers_max is not None and state.strangers >= config.strangers_max:
        return None
    if state.phase[MASTER] != "up" or not state.log[MASTER]:
        return None
    return state._replace(strangers=state.strangers + 1)


def housekeeping(_config: Config, state: State, n: int) -> State | None:
    """Housekeeping: nothing was received for haHousekeepingInterval."""
    if not state.connected[n] or state.intact:
        return None
    return _close(state, n)._replace(verified=state.verified and n != SLAVE)


# The consumer


def read_limit(state: State, n: int) -> int:
    """ReadLimit: under SYNC_FLUSH the master delivers no record that a crash could remove."""
    return state.flushed[n] if n == MASTER and state.flush_mode == SYNC_FLUSH else len(state.log[n])


def deliver(_config: Config, state: State, n: int) -> State | None:
    """Deliver: a pull, from either broker, returns the record at the consumer's next offset."""
    offset = len(state.seen)
    if state.phase[n] != "up" or offset >= read_limit(state, n):
        return None
    return state._replace(seen=(*state.seen, state.log[n][offset]))


def correct_offset(_config: Config, state: State) -> State | None:
    """CorrectOffset: a pull beyond the master's end; the consumer goes back to the end."""
    end = len(state.log[MASTER])
    if state.phase[MASTER] != "up" or len(state.seen) <= end:
        return None
    return state._replace(seen=state.seen[:end], committed=(end, end))


def commit_offset(config: Config, state: State, n: int) -> State | None:
    """CommitOffset: the consumer commits to the broker that it reads from."""
    if not config.commits or state.phase[n] != "up" or state.committed[n] >= len(state.seen):
        return None
    return state._replace(committed=with_item(state.committed, n, len(state.seen)))


def sync_offsets(_config: Config, state: State) -> State | None:
    """SyncOffsets: every 10 s the slave requests its master's offsets."""
    if state.phase != ("up", "up"):
        return None
    master, slave = state.committed
    merged = merged_offset(slave, master)
    return None if merged == slave else state._replace(committed=(master, merged))


# Ends of a broker's life, and its beginning


def _may_crash(config: Config, state: State) -> bool:
    return (
        config.crashes_max is None or state.process_crashes + sum(state.system_crashes) < config.crashes_max
    )


def _lose_memory(state: State, n: int, phase: str) -> State:
    """LoseMemory: the process has ended; the result of pending sends is unknown."""
    closed = _close(state, n)._replace(phase=with_item(state.phase, n, phase))
    if n == SLAVE:
        return closed._replace(verified=False, refused=False)
    return closed._replace(
        sent=NOT_REQUESTED,
        acked=0,
        request=(WAITS,) * len(state.request),
        answer=tuple("unknown" if answer == "waiting" else answer for answer in state.answer),
    )


def process_crash(config: Config, state: State, n: int) -> State | None:
    """ProcessCrash: SIGKILL; the page cache is kept."""
    if state.phase[n] != "up" or not _may_crash(config, state):
        return None
    return _lose_memory(state, n, "down")._replace(process_crashes=state.process_crashes + 1)


def kept(state: State) -> tuple[str, ...]:
    """Kept: the messages that the two brokers hold together, while their logs agree."""
    return longer_of(*state.log)


def _recall(state: State) -> State:
    return state._replace(recalled=state.recalled or len(state.seen) > len(kept(state)))


def system_crash(config: Config, state: State, n: int, length: int) -> State | None:
    """SystemCrash: any part of the data that was not durable may be left."""
    if state.phase[n] == "gone" or not state.flushed[n] <= length <= len(state.log[n]):
        return None
    if not _may_crash(config, state):
        return None
    return _recall(
        _lose_memory(state, n, "down")._replace(
            log=with_item(state.log, n, state.log[n][:length]),
            system_crashes=with_item(state.system_crashes, n, state.system_crashes[n] + 1),
        )
    )


def machine_loss(config: Config, state: State) -> State | None:
    """MachineLoss: the master's machine and its disk are destroyed permanently."""
    if state.phase[MASTER] == "gone" or not _may_crash(config, state):
        return None
    return _recall(
        _lose_memory(state, MASTER, "gone")._replace(
            log=with_item(state.log, MASTER, ()),
            flushed=with_item(state.flushed, MASTER, 0),
            committed=with_item(state.committed, MASTER, 0),
        )
    )


def start(_config: Config, state: State, n: int) -> State | None:
    """Start: a node starts. If a master now lacks records that its slave has, the two logs have forked."""
    if state.phase[n] != "down":
        return None
    forks = n == MASTER and not is_prefix(state.log[SLAVE], state.log[MASTER])
    return state._replace(
        phase=with_item(state.phase, n, "up"),
        flushed=with_item(state.flushed, n, len(state.log[n])),
        forked=state.forked or forks,
    )


# Actions


def _each_message(config: Config) -> Iterable[Parameters]:
    return ((m,) for m in range(len(config.messages)))


def _each_node(_config: Config) -> Iterable[Parameters]:
    return iter(((MASTER,), (SLAVE,)))


def _each_commit(config: Config) -> Iterable[Parameters]:
    return _each_node(config) if config.commits else iter(())


def _each_cut(config: Config) -> Iterable[Parameters]:
    return iter(()) if config.cuts_max == 0 else once(config)


def _each_stranger(config: Config) -> Iterable[Parameters]:
    return iter(()) if config.strangers_max == 0 else once(config)


def _each_crash(config: Config) -> Iterable[Parameters]:
    return iter(()) if config.crashes_max == 0 else _each_node(config)


def _each_image(config: Config) -> Iterable[Parameters]:
    lengths = range(len(config.messages) + 1)
    return ((n, length) for (n,) in _each_crash(config) for length in lengths)


def _each_loss(config: Config) -> Iterable[Parameters]:
    return iter(()) if config.crashes_max == 0 else once(config)


def _each_report(config: Config) -> Iterator[Parameters]:
    return ((Frame("report", p),) for p in range(len(config.messages)))


def _each_transfer(config: Config) -> Iterator[Parameters]:
    # The i-th message is never at a place before i: the messages before it can only be lost.
    places = range(len(config.messages))
    return ((Frame("transfer", p, m),) for p in places for m in config.messages[p:])


def _each_ack(config: Config) -> Iterator[Parameters]:
    return ((Frame("ack", p),) for p in range(1, len(config.messages) + 1))


ACTIONS: Final = by_name(
    Action("AppendRecord", append_record, _each_message),
    Action("FlushLog", flush_log, _each_node),
    Action("FlushTimeout", flush_timeout, _each_message),
    Action("SlaveTimeout", slave_timeout, _each_message),
    Action("AnswerSend", answer_send, _each_message),
    Action("Connect", connect, once),
    Action("AcceptReport", accept_report, _each_report),
    Action("RefuseReport", refuse_report, _each_report),
    Action("TransferRecord", transfer_record, once),
    Action("ReceiveTransfer", receive_transfer, _each_transfer),
    Action("RefuseTransfer", refuse_transfer, _each_transfer),
    Action("ReceiveAck", receive_ack, _each_ack),
    Action("Cut", cut, _each_cut),
    Action("StrangerAcknowledges", stranger_acknowledges, _each_stranger),
    Action("Housekeeping", housekeeping, _each_node),
    Action("Deliver", deliver, _each_node),
    Action("CorrectOffset", correct_offset, once),
    Action("CommitOffset", commit_offset, _each_commit),
    Action("SyncOffsets", sync_offsets, once),
    Action("ProcessCrash", process_crash, _each_crash),
    Action("SystemCrash", system_crash, _each_image),
    Action("MachineLoss", machine_loss, _each_loss),
    Action("Start", start, _each_node),
)


# Safety


def _answered(config: Config, state: State, status: str) -> Iterator[str]:
    return (m for m, answer in zip(config.messages, state.answer, strict=True) if answer == status)


def master_lost(state: State) -> bool:
    """MasterLost: the master lost, or may have lost, some of its data."""
    return state.phase[MASTER] == "gone" or (
        state.flush_mode == ASYNC_FLUSH and state.system_crashes[MASTER] > 0
    )


def covered(state: State) -> bool:
    """Covered: no fault exceeded what the configuration guarantees against."""
    if not master_lost(state):
        return True
    return state.role == SYNC_MASTER and state.system_crashes[SLAVE] == 0 and not state.forked


def may_recall(state: State) -> bool:
    """MayRecall: a consumer may see messages that are not safe yet."""
    asynchronous = state.flush_mode == ASYNC_FLUSH
    return asynchronous or state.phase[MASTER] == "gone" or state.system_crashes[SLAVE] > 0


def promised(state: State) -> bool:
    """Promised: Covered, and what consumers saw is still stored."""
    return not state.forked and not (state.recalled and may_recall(state)) and covered(state)


def sync_acked_on_slave(config: Config, state: State) -> bool:
    """REPL-1 SyncAckedOnSlave: with SYNC_MASTER, the slave has each message answered SEND_OK.

    A crash of the slave's system may have removed it afterwards.
    """
    if state.role != SYNC_MASTER:
        return True
    return all(
        m in state.log[SLAVE] or (state.system_crashes[SLAVE] > 0 and m in state.held)
        for m in _answered(config, state, "SEND_OK")
    )


def stranger_not_counted(_config: Config, before: State, action: str, after: State) -> bool:
    """TRUST-1 StrangerNotCounted: an acknowledgement of a stranger changes nothing and answers no send."""
    return action != "StrangerAcknowledges" or after == before._replace(strangers=after.strangers)


def following(state: State) -> bool:
    """Following: the slave has compared its log with its master's, and follows."""
    return state.intact and state.verified


def slave_is_prefix(_config: Config, state: State) -> bool:
    """REPL-2 SlaveIsPrefix: the slave's log is a prefix of its master's.

    While the master is down, it may be the reverse. A fork, which the slave no longer follows, is an
    exception.
    """
    master, slave = state.log
    if is_prefix(slave, master) or (state.phase[MASTER] != "up" and is_prefix(master, slave)):
        return True
    return state.forked and not following(state)


def status_honest(config: Config, before: State, _action: str, after: State) -> bool:
    """REPL-3 StatusHonest: each status of a send or request corresponds to what has happened."""
    return all(_honest(config, before, after, m) for m in range(len(config.messages)))


def _honest(config: Config, before: State, after: State, m: int) -> bool:
    if before.answer[m] == after.answer[m] and before.request[m] == after.request[m]:
        return True
    was, now = before.request[m], after.request[m]
    sync = before.role == SYNC_MASTER
    if before.answer[m] == "unsent":
        behind = len(before.log[MASTER]) + 1 - before.acked
        usable = before.connected[MASTER] and behind < config.fall_behind_max
        return (now.replica == "SLAVE_NOT_AVAILABLE") == (sync and not usable)
    durable = position(before, config.messages[m]) <= before.flushed[MASTER]
    acknowledged = position(before, config.messages[m]) <= before.acked
    if after.answer[m] == "waiting":
        flush_late = was.flush == now.flush or (before.flush_mode == SYNC_FLUSH and not durable)
        slave_late = was.replica == now.replica or (sync and not acknowledged)
        return flush_late and slave_late
    replicated = not sync or (acknowledged and config.messages[m] in before.held)
    match after.answer[m]:
        case "SEND_OK":
            return was == WAITS and replicated and (before.flush_mode != SYNC_FLUSH or durable)
        case "FLUSH_DISK_TIMEOUT":
            return was == Request(flush="FLUSH_DISK_TIMEOUT") and replicated
        case "unknown":
            return after.phase[MASTER] != "up"
    return after.answer[m] == was.replica


def readable_without_master(config: Config, state: State) -> bool:
    """REPL-4 ReadableWithoutMaster: the slave serves its next record and has all that it ever had."""
    if state.phase[MASTER] == "up" or state.phase[SLAVE] != "up":
        return True
    if len(state.seen) < len(state.log[SLAVE]) and deliver(config, state, SLAVE) is None:
        return False
    return state.system_crashes[SLAVE] > 0 or state.held <= set(state.log[SLAVE])


def sync_acked_durable(config: Config, state: State) -> bool:
    """FLUSH-1 SyncAckedDurable: under SYNC_FLUSH each message answered SEND_OK is durable on the master."""
    if state.flush_mode != SYNC_FLUSH or state.phase[MASTER] == "gone":
        return True
    durable = state.log[MASTER][: state.flushed[MASTER]]
    return all(m in durable for m in _answered(config, state, "SEND_OK"))


def no_acked_lost(config: Config, state: State) -> bool:
    """DELIV-1 NoAckedLost: a broker has each acknowledged message, and the consumer has not passed it."""
    acked = tuple(_answered(config, state, "SEND_OK"))
    if not acked or not covered(state):
        return True
    if not all(m in state.log[MASTER] or m in state.log[SLAVE] for m in acked):
        return False
    if not promised(state):
        return True
    records = kept(state)
    passed = records[: len(state.seen)]
    return all(m in records and (m not in passed or state.seen[records.index(m)] == m) for m in acked)


def no_phantom(config: Config, state: State) -> bool:
    """DELIV-2 NoPhantom: the consumer sees only messages that were sent."""
    sent = set(config.messages) - set(_answered(config, state, "unsent"))
    return all(message in sent for message in state.seen)


def queue_order(_config: Config, state: State) -> bool:
    """DELIV-4 QueueOrder: the messages that the consumer saw are the log's, in the log's order."""
    return not promised(state) or is_prefix(state.seen, kept(state))


def offset_monotone(_config: Config, before: State, action: str, after: State) -> bool:
    """DELIV-5 OffsetMonotone: offsets decrease only by a correction or when a machine is lost."""
    if action == "CorrectOffset":
        return True
    nodes = zip(before.committed, after.committed, after.phase, strict=True)
    return all(b <= a or phase == "gone" for b, a, phase in nodes)


# Liveness


FAIRNESS: Final = (
    weak("Flush", "FlushLog", each=FIRST, where=lambda _config, _state, n: n == MASTER),
    weak("Timeout", "SlaveTimeout", each=FIRST),
    weak("Answer", "AnswerSend", each=FIRST),
    weak("Connect", "Connect"),
    weak("Connect", "Housekeeping", each=FIRST),
    weak("Transfer", "TransferRecord"),
    weak("Receive", "AcceptReport", "RefuseReport", "ReceiveTransfer", "RefuseTransfer", "ReceiveAck"),
    weak("Deliver", "Deliver", each=FIRST),
    weak("Start", "Start", each=FIRST),
)


def send_answered(config: Config) -> Obligations[State]:
    """FLUSH-7 SendAnswered: a send that waits is eventually answered, or its master ends."""

    def waits(state: State, message: str) -> bool:
        return state.answer[config.messages.index(message)] == "waiting"

    return leads_to(waits, lambda s, m: not waits(s, m), of=each("messages")(config))


def slave_catches_up(_config: Config) -> Obligations[State]:
    """REPL-5 SlaveCatchesUp: the two logs become equal, unless the master is gone or lost records."""
    return leads_to(
        lambda s: s.log[SLAVE] != s.log[MASTER],
        lambda s: s.log[SLAVE] == s.log[MASTER] or s.forked or s.phase[MASTER] == "gone",
    )


def acked_delivered(config: Config) -> Obligations[State]:
    """DELIV-12 AckedDelivered: an acknowledged message is eventually delivered, while it is promised."""
    return leads_to(
        lambda s, m: s.answer[config.messages.index(m)] == "SEND_OK" and promised(s),
        lambda s, m: m in s.seen or not promised(s),
        of=each("messages")(config),
    )


# The model in TLC's terms


def from_tla(config: Config, variables: Mapping[str, Any]) -> State:
    """Return the state that TLC prints: records and functions are mappings, sets are frozensets."""

    def by_node(name: str) -> tuple[Any, Any]:
        return variables[name]["master"], variables[name]["slave"]

    faults = variables["faults"]
    frames = (Frame(f["kind"], f["position"], f.get("message", "")) for f in variables["network"])
    requests = (variables["request"][m] for m in config.messages)
    return State(
        flush_mode=variables["flushMode"],
        role=variables["role"],
        phase=by_node("phase"),
        log=by_node("log"),
        flushed=by_node("flushed"),
        connected=by_node("connected"),
        intact=variables["intact"],
        network=frozenset(frames),
        sent=variables["sent"],
        acked=variables["acked"],
        request=tuple(Request(r["flush"], r["replica"]) for r in requests),
        verified=variables["verified"],
        refused=variables["refused"],
        committed=by_node("committed"),
        answer=tuple(variables["answer"][m] for m in config.messages),
        seen=variables["seen"],
        held=frozenset(variables["held"]),
        forked=variables["forked"],
        recalled=variables["recalled"],
        process_crashes=faults["process"],
        system_crashes=(faults["master"], faults["slave"]),
        cuts=faults["cuts"],
        strangers=faults["strangers"],
    )


_BOUNDED: Final = (
    "AppendRecord",
    "CommitOffset",
    "ProcessCrash",
    "SystemCrash",
    "MachineLoss",
    "Cut",
    "StrangerAcknowledges",
)
_OF_MESSAGE: Final = ("AppendRecord", "FlushTimeout", "SlaveTimeout", "AnswerSend")


def _arguments(config: Config, name: str, parameters: Parameters) -> Parameters:
    if not parameters:
        return ()
    first, *rest = parameters
    if isinstance(first, Frame):
        return (_tla_frame(first),)
    return (config.messages[first] if name in _OF_MESSAGE else NODES[first], *rest)


def _tla_frame(frame: Frame) -> dict[str, Any]:
    to_slave = frame.kind == "transfer"
    source, target = ("master", "slave") if to_slave else ("slave", "master")
    fields = {"kind": frame.kind, "source": source, "target": target, "position": frame.position}
    return {**fields, "message": frame.message} if to_slave else fields


MODEL: Final = Model(
    name="Replication",
    initial=initial,
    actions=ACTIONS,
    invariants=named(
        sync_acked_on_slave,
        slave_is_prefix,
        readable_without_master,
        sync_acked_durable,
        no_acked_lost,
        no_phantom,
        queue_order,
    ),
    step_invariants=named(stranger_not_counted, status_honest, offset_monotone),
    fairness=FAIRNESS,
    liveness=named(send_answered, slave_catches_up, acked_delivered),
    from_constants=configuration(
        Config,
        messages="Messages",
        flush_modes="FlushModes",
        roles="Roles",
        fall_behind_max="FallBehindMax",
        crashes_max="MaxCrashes",
        cuts_max="MaxCuts",
        strangers_max="MaxStrangers",
        commits="Commits",
    ),
    from_tla=from_tla,
    operator=operators(_BOUNDED, _arguments),
)
