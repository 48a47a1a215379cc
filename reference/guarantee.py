"""What happens to a message under each configuration and fault: spec/tla/Guarantee.tla, action for action.

The order is the same: state, the producer, the master, faults, outcomes for a message, safety. The model
makes the same abstractions as the TLA+ module. Pairs are (of the master, of the slave).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any, Final, NamedTuple

from mqproof.reference.model import Action, Model, Parameters, by_name, each, named, once
from mqproof.reference.tlc_terms import configuration, operators
from mqproof.reference.updates import replace

SYNC_FLUSH: Final = "SYNC_FLUSH"
SYNC_MASTER: Final = "SYNC_MASTER"
MASTER, SLAVE = 0, 1
NODES: Final = ("master", "slave")
RUNNING, DOWN, GONE = "running", "down", "gone"


@dataclass(frozen=True, slots=True)
class Config:
    messages: tuple[str, ...] = ("m1",)
    flush_modes: tuple[str, ...] = ("ASYNC_FLUSH", SYNC_FLUSH)
    replication_modes: tuple[str, ...] = ("ASYNC_MASTER", SYNC_MASTER, "SYNC_MASTER_5X", "none")
    producer_modes: tuple[str, ...] = ("async", "oneway", "sync")
    faults: tuple[str, ...] = ("clean", "disk", "machine", "os", "power", "process")
    faults_max: int | None = 1
    """The bound of MCGuarantee; None for no bound."""


# State


class Struck(NamedTuple):
    fault: str
    node: str


@dataclass(frozen=True, slots=True)
class State:
    flush: str  # never changes, like the next two
    replication: str
    producer: str
    up: tuple[str, str]  # running | down: will be started again | gone: will not
    log: tuple[tuple[str, ...], tuple[str, ...]]  # as a reader of the files sees it: page cache over disk
    flushed: tuple[int, int]  # durable records
    reported: int  # memory of the master: the furthest position that a slave ever reported
    answer: tuple[str, ...]  # by message: its state as the producer knows it
    struck: tuple[Struck, ...]  # history: the faults and their nodes, in order


STORED: Final = frozenset({"SEND_OK", "FLUSH_DISK_TIMEOUT", "FLUSH_SLAVE_TIMEOUT", "SLAVE_NOT_AVAILABLE"})


def initial(config: Config) -> tuple[State, ...]:
    """Init: one state for each combination of modes."""
    modes = product(config.flush_modes, config.replication_modes, config.producer_modes)
    return tuple(
        State(
            flush=flush,
            replication=replication,
            producer=producer,
            up=(RUNNING, GONE if replication == "none" else RUNNING),
            log=((), ()),
            flushed=(0, 0),
            reported=0,
            answer=("unsent",) * len(config.messages),
            struck=(),
        )
        for flush, replication, producer in modes
    )


def _with(pair: tuple[Any, Any], node: int, value: Any) -> tuple[Any, Any]:
    return (value, pair[SLAVE]) if node == MASTER else (pair[MASTER], value)


def _answered(state: State, m: int, status: str) -> tuple[str, ...]:
    return (*state.answer[:m], status, *state.answer[m + 1 :])


# The producer


def send(config: Config, state: State, message: str) -> State | None:
    """Send: without a running master the call fails immediately."""
    m = config.messages.index(message)
    if state.answer[m] != "unsent":
        return None
    refused = "error" if state.producer == "oneway" else "broken"
    return replace(state, answer=_answered(state, m, "sent" if state.up[MASTER] == RUNNING else refused))


def retry(config: Config, state: State, message: str) -> State | None:
    """Retry: another master stores the message."""
    m = config.messages.index(message)
    if state.answer[m] != "broken":
        return None
    return replace(state, answer=_answered(state, m, "elsewhere"))


def give_up(config: Config, state: State, message: str) -> State | None:
    """GiveUp: an asynchronous send reports an error to its callback."""
    m = config.messages.index(message)
    if state.answer[m] != "broken" or state.producer != "async":
        return None
    return replace(state, answer=_answered(state, m, "error"))


# The master, in the order of a message's life


def append_record(config: Config, state: State, message: str) -> State | None:
    """AppendRecord: a send does not wait for a slave that is not connected; a oneway send never waits."""
    m = config.messages.index(message)
    if state.up[MASTER] != RUNNING or state.answer[m] != "sent":
        return None
    status = "waiting"
    if state.producer == "oneway":
        status = "silence"
    elif state.replication == SYNC_MASTER and state.up[SLAVE] != RUNNING:
        status = "SLAVE_NOT_AVAILABLE"
    log = _with(state.log, MASTER, (*state.log[MASTER], message))
    return replace(state, log=log, answer=_answered(state, m, status))


def flush_log(_config: Config, state: State, node: int) -> State | None:
    """FlushLog: an fsync returns."""
    end = len(state.log[node])
    if state.up[node] != RUNNING or state.flushed[node] == end:
        return None
    return replace(state, flushed=_with(state.flushed, node, end))


def _connected(state: State) -> bool:
    return state.up == (RUNNING, RUNNING)


def transfer(_config: Config, state: State) -> State | None:
    """Transfer: the slave receives the record after its end. The bytes before it are not compared."""
    master, slave = state.log
    if not _connected(state) or len(slave) >= len(master):
        return None
    return replace(state, log=(master, (*slave, master[len(slave)])))


def report(_config: Config, state: State) -> State | None:
    """Report: the slave reports its page cache. The master accepts the position, even beyond its own end."""
    end = len(state.log[SLAVE])
    if not _connected(state) or end <= state.reported:
        return None
    return replace(state, reported=end)


def flushed_for(state: State, message: str) -> bool:
    """FlushedFor: whether a message needs no flush, or is flushed on the master."""
    return state.flush != SYNC_FLUSH or state.log[MASTER].index(message) < state.flushed[MASTER]


def replicated_for(state: State, message: str) -> bool:
    """ReplicatedFor: whether a message needs no replica, or the slave has reported it."""
    return state.replication != SYNC_MASTER or state.log[MASTER].index(message) < state.reported


def _waiting(config: Config, state: State, message: str) -> bool:
    return state.up[MASTER] == RUNNING and state.answer[config.messages.index(message)] == "waiting"


def _answer(config: Config, state: State, message: str, status: str) -> State:
    return replace(state, answer=_answered(state, config.messages.index(message), status))


def answer_ok(config: Config, state: State, message: str) -> State | None:
    """AnswerOk: a flushed and replicated message is answered SEND_OK."""
    if not _waiting(config, state, message) or not flushed_for(state, message):
        return None
    return _answer(config, state, message, "SEND_OK") if replicated_for(state, message) else None


def answer_disk_timeout(config: Config, state: State, message: str) -> State | None:
    """AnswerDiskTimeout: a message that is not flushed is answered FLUSH_DISK_TIMEOUT."""
    if not _waiting(config, state, message) or flushed_for(state, message):
        return None
    return _answer(config, state, message, "FLUSH_DISK_TIMEOUT")


def answer_slave_timeout(config: Config, state: State, message: str) -> State | None:
    """AnswerSlaveTimeout: a message that is not replicated is answered FLUSH_SLAVE_TIMEOUT."""
    if not _waiting(config, state, message) or replicated_for(state, message):
        return None
    return _answer(config, state, message, "FLUSH_SLAVE_TIMEOUT")


# Faults


def _strike(config: Config, state: State, fault: str, node: int, becomes: str, kept: int) -> State | None:
    """Strike: the process of the node ends. Sends that wait for the master fail without a status."""
    if fault not in config.faults or (
        config.faults_max is not None and len(state.struck) >= config.faults_max
    ):
        return None
    answer = state.answer
    if node == MASTER:
        broken = "silence" if state.producer == "oneway" else "broken"
        answer = tuple(broken if status in ("sent", "waiting") else status for status in answer)
    return replace(
        state,
        up=_with(state.up, node, becomes),
        log=_with(state.log, node, state.log[node][:kept]),
        flushed=_with(state.flushed, node, min(state.flushed[node], kept)),
        reported=0 if node == MASTER else state.reported,
        answer=answer,
        struck=(*state.struck, Struck(fault, NODES[node])),
    )


def clean_stop(config: Config, state: State, node: int) -> State | None:
    """CleanStop: pending sends are answered, everything is durable."""
    end = len(state.log[node])
    if state.up[node] != RUNNING or state.flushed[node] != end:
        return None
    if node == MASTER and "waiting" in state.answer:
        return None
    return _strike(config, state, "clean", node, DOWN, end)


def process_crash(config: Config, state: State, node: int) -> State | None:
    """ProcessCrash: the page cache is kept."""
    if state.up[node] != RUNNING:
        return None
    return _strike(config, state, "process", node, DOWN, len(state.log[node]))


def os_crash(config: Config, state: State, node: int, kept: int) -> State | None:
    """OsCrash: any part of the page cache may have been written out."""
    if state.up[node] == GONE or not state.flushed[node] <= kept <= len(state.log[node]):
        return None
    return _strike(config, state, "os", node, DOWN, kept)


def power_loss(config: Config, state: State, node: int) -> State | None:
    """PowerLoss: the page cache is lost."""
    if state.up[node] == GONE:
        return None
    return _strike(config, state, "power", node, DOWN, state.flushed[node])


def disk_lost(config: Config, state: State, node: int) -> State | None:
    """DiskLost: the broker may be started again with a new disk, which is empty."""
    return None if state.up[node] == GONE else _strike(config, state, "disk", node, DOWN, 0)


def machine_lost(config: Config, state: State, node: int) -> State | None:
    """MachineLost: the machine and its disk are destroyed, and it does not restart."""
    return None if state.up[node] == GONE else _strike(config, state, "machine", node, GONE, 0)


def restart(_config: Config, state: State, node: int) -> State | None:
    """Restart: recovery syncs what it found. A master restarts as master, whatever its slave has."""
    if state.up[node] != DOWN:
        return None
    flushed = _with(state.flushed, node, len(state.log[node]))
    return replace(state, up=_with(state.up, node, RUNNING), flushed=flushed)


# Actions


def _each_node(_config: Config) -> Iterator[Parameters]:
    return iter(((MASTER,), (SLAVE,)))


ACTIONS: Final = by_name(
    Action("Send", send, each("messages")),
    Action("Retry", retry, each("messages")),
    Action("GiveUp", give_up, each("messages")),
    Action("AppendRecord", append_record, each("messages")),
    Action("FlushLog", flush_log, _each_node),
    Action("Transfer", transfer, once),
    Action("Report", report, once),
    Action("AnswerOk", answer_ok, each("messages")),
    Action("AnswerDiskTimeout", answer_disk_timeout, each("messages")),
    Action("AnswerSlaveTimeout", answer_slave_timeout, each("messages")),
    Action("CleanStop", clean_stop, _each_node),
    Action("ProcessCrash", process_crash, _each_node),
    Action("OsCrash", os_crash, lambda c: product((MASTER, SLAVE), range(len(c.messages) + 1))),
    Action("PowerLoss", power_loss, _each_node),
    Action("DiskLost", disk_lost, _each_node),
    Action("MachineLost", machine_lost, _each_node),
    Action("Restart", restart, _each_node),
)
_BOUNDED: Final = frozenset({"CleanStop", "ProcessCrash", "OsCrash", "PowerLoss", "DiskLost", "MachineLost"})


# Outcomes for a message, from bad to worse


def settled(state: State) -> bool:
    """Settled: no node is about to restart."""
    return DOWN not in state.up


def readable(state: State, message: str, answer: str) -> bool:
    """Readable: from the master while it runs, otherwise from the slave."""
    if answer == "elsewhere":
        return True
    if state.up[MASTER] == RUNNING:
        return message in state.log[MASTER]
    return state.up[SLAVE] == RUNNING and message in state.log[SLAVE]


def kept(state: State, message: str, answer: str) -> bool:
    """Kept: whether any node has the message, whether it runs or not."""
    return answer == "elsewhere" or message in state.log[MASTER] or message in state.log[SLAVE]


def _none_lost(config: Config, state: State, answers: frozenset[str]) -> bool:
    if not settled(state):
        return True
    return all(
        answer not in answers or readable(state, message, answer)
        for message, answer in zip(config.messages, state.answer, strict=True)
    )


def no_loss(config: Config, state: State) -> bool:
    """NoLoss: every message with a final outcome, even an error, can be read."""
    return _none_lost(config, state, STORED | {"silence", "error"})


def no_acked_lost(config: Config, state: State) -> bool:
    """DELIV-1 NoAckedLost: every message answered SEND_OK can be read."""
    return _none_lost(config, state, frozenset({"SEND_OK"}))


def no_acked_gone(config: Config, state: State) -> bool:
    """NoAckedGone: at least one node has every acknowledged message, so that an operator can recover it."""
    return all(
        answer != "SEND_OK" or kept(state, message, answer)
        for message, answer in zip(config.messages, state.answer, strict=True)
    )


# Invariants of every cell


def kinds(state: State) -> frozenset[str]:
    """Kinds: the kinds of faults that have happened."""
    return frozenset(struck.fault for struck in state.struck)


def quiet_loses_nothing(config: Config, state: State) -> bool:
    """QuietLosesNothing: without faults no message is lost."""
    return bool(state.struck) or no_loss(config, state)


def acked_survives_process(config: Config, state: State) -> bool:
    """AckedSurvivesProcess: clean stops and process crashes lose no message answered SEND_OK."""
    return not kinds(state) <= {"clean", "process"} or no_acked_lost(config, state)


def sync_flush_survives_power(config: Config, state: State) -> bool:
    """SyncFlushSurvivesPower: with SYNC_FLUSH, power loss and weaker faults lose no acknowledged message."""
    if state.flush != SYNC_FLUSH or not kinds(state) <= {"clean", "process", "os", "power"}:
        return True
    return no_acked_lost(config, state)


def sync_master_survives_one(config: Config, state: State) -> bool:
    """SyncMasterSurvivesOne: with SYNC_MASTER, one fault leaves each acknowledged message on some node."""
    return state.replication != SYNC_MASTER or len(state.struck) > 1 or no_acked_gone(config, state)


def slave_serves_for_master(config: Config, state: State) -> bool:
    """SlaveServesForMaster: with SYNC_MASTER, the slave of a destroyed master has each acknowledged message.

    This holds if there was only that one fault.
    """
    if state.replication != SYNC_MASTER or len(state.struck) > 1 or state.up[MASTER] != GONE:
        return True
    return no_acked_lost(config, state)


def sync_send_stored(_config: Config, state: State) -> bool:
    """SyncSendStored: a synchronous send ends neither with an error nor without an answer."""
    return state.producer != "sync" or not {"error", "silence"} & set(state.answer)


def clean_stop_loses_nothing(config: Config, state: State) -> bool:
    """CleanStopLosesNothing: clean stops lose no message of a synchronous producer."""
    return state.producer != "sync" or not kinds(state) <= {"clean"} or no_loss(config, state)


# The model in TLC's terms


def from_tla(config: Config, variables: Mapping[str, Any]) -> State:
    """Return the state that TLC prints: records and functions are mappings, sequences are tuples."""

    def pair(name: str) -> tuple[Any, Any]:
        return (variables[name]["master"], variables[name]["slave"])

    return State(
        flush=variables["flush"],
        replication=variables["replication"],
        producer=variables["producer"],
        up=pair("up"),
        log=pair("log"),
        flushed=pair("flushed"),
        reported=variables["reported"],
        answer=tuple(variables["answer"][m] for m in config.messages),
        struck=tuple(Struck(strike["fault"], strike["node"]) for strike in variables["struck"]),
    )


_TAKES_NODE: Final = _BOUNDED | {"FlushLog", "Restart"}


def _arguments(_config: Config, name: str, parameters: Parameters) -> Parameters:
    return (NODES[parameters[0]], *parameters[1:]) if name in _TAKES_NODE else parameters


MODEL: Final = Model(
    name="Guarantee",
    initial=initial,
    actions=ACTIONS,
    invariants=named(
        quiet_loses_nothing,
        acked_survives_process,
        sync_flush_survives_power,
        sync_master_survives_one,
        slave_serves_for_master,
        sync_send_stored,
        clean_stop_loses_nothing,
    ),
    from_constants=configuration(
        Config,
        messages="Messages",
        flush_modes="FlushModes",
        replication_modes="ReplicationModes",
        producer_modes="ProducerModes",
        faults="Faults",
        faults_max="MaxFaults",
    ),
    from_tla=from_tla,
    operator=operators(_BOUNDED, _arguments),
)
