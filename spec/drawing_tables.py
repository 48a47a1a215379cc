"""How each model's actions are drawn, for models where the general rule of drawing.py is not enough."""

from collections.abc import Callable
from typing import Final

from mqproof.report.sequence import Lifeline, Mark
from mqproof.spec.drawing import Shown, Table
from mqproof.spec.tlc.values import Function, State


def _key_of(variable: str) -> Callable[[State, State], str]:
    """Return a function that finds the keys whose values changed in this variable, a function."""

    def found(before: State, after: State) -> str:
        old, new = _function(before, variable), _function(after, variable)
        return ", ".join(str(key) for key in new if old[key] != new[key])

    return found


def _last_of(variable: str) -> Callable[[State, State], str]:
    """Return a function that finds the last element of the changed sequence in this variable."""

    def found(before: State, after: State) -> str:
        old, new = _function(before, variable), _function(after, variable)
        changed = [value for key, value in new.items() if old[key] != value]
        return ", ".join(str(value[-1]) for value in changed if isinstance(value, tuple) and value)

    return found


def _function(state: State, variable: str) -> Function:
    value = state[variable]
    assert isinstance(value, Function), f"{variable} is not a function: {value}"
    return value


def _new_answer(before: State, after: State) -> str:
    """Return the new answer's status and the message it answers."""
    old, new = _function(before, "answer"), _function(after, "answer")
    return ", ".join(f"{status} {message}" for message, status in new.items() if old[message] != status)


def _last_seen(_before: State, after: State) -> str:
    seen = after["seen"]
    return str(seen[-1]) if isinstance(seen, tuple) and seen else ""


def _flush_action(before: State, after: State) -> str:
    changed = {str(name) for name in after if before[name] != after[name]}
    if changed == {"flushed"}:
        return "FlushLog"
    if changed == {"queueFlushed"}:
        return "FlushQueues"
    return "OsCrash" if "crashes" in changed else ""


_PRODUCER, _BROKER, _CACHE, _DISK, _CONSUMER = "producer", "broker", "page cache", "disk", "consumer"

_FLUSH: Final = Table(
    lifelines=(
        Lifeline(_PRODUCER),
        Lifeline(_BROKER, "process and its memory"),
        Lifeline(_CACHE, "survives the process"),
        Lifeline(_DISK, "survives the machine"),
        Lifeline(_CONSUMER),
    ),
    actions={
        "AppendRecord": Shown((_PRODUCER,), "send {}", to=_CACHE, subject=_key_of("answer")),
        "FlushLog": Shown((_CACHE,), "fsync of the log", to=_DISK),
        "AnswerOk": Shown((_BROKER,), "SEND_OK {}", to=_PRODUCER, subject=_key_of("answer")),
        "AnswerTimeout": Shown((_BROKER,), "FLUSH_DISK_TIMEOUT {}", to=_PRODUCER, subject=_key_of("answer")),
        "Dispatch": Shown((_BROKER,), "queue entry", to=_CACHE),
        "FlushQueues": Shown((_CACHE,), "fsync of the queues", to=_DISK),
        "WriteCheckpoint": Shown((_BROKER,), "checkpoint", to=_DISK),
        "Deliver": Shown((_BROKER,), "{}", to=_CONSUMER, subject=_last_of("seen")),
        "CorrectOffset": Shown((_BROKER,), "offset beyond the end", to=_CONSUMER),
        "CommitOffset": Shown((_CONSUMER,), "commit offset", to=_BROKER),
        "PersistOffsets": Shown((_BROKER,), "consumer offsets", to=_DISK),
        "Shutdown": Shown((_BROKER,), "clean exit", mark=Mark.CRASH),
        "ProcessCrash": Shown((_BROKER,), "process killed", mark=Mark.CRASH),
        "OsCrash": Shown((_BROKER, _CACHE), "system crash", mark=Mark.CRASH),
        "PowerLoss": Shown((_BROKER, _CACHE), "power loss", mark=Mark.CRASH),
        "RecoverLog": Shown((_BROKER, _CACHE), "the log is recovered", mark=Mark.RESTART),
        "TruncateQueues": Shown((_BROKER,), "queues cut to the log"),
        "Redispatch": Shown((_BROKER,), "dispatch again"),
        "Start": Shown((_BROKER,), "serves again"),
    },
    vague=frozenset({"Next", "Serve", "Crash"}),
    named=_flush_action,
    hidden=frozenset({"appended", "crashes"}),
)

_MASTER, _SLAVE, _OTHER = "master", "slave", "another master"


def _answered(status: str) -> Shown:
    return Shown((_MASTER,), f"{status} {{}}", to=_PRODUCER, subject=_key_of("answer"))


def _fault(text: str, *more: str) -> Shown:
    """Draw a fault that hits a node, and possibly its disk."""
    return Shown(("{}", *more), text, mark=Mark.CRASH, subject=_faulty_node)


def _faulty_node(_before: State, after: State) -> str:
    struck = after["struck"]
    assert isinstance(struck, tuple)
    last = struck[-1]
    assert isinstance(last, Function)
    return str(last["node"])


def _reported(_before: State, after: State) -> str:
    return str(after["reported"])


_GUARANTEE: Final = Table(
    lifelines=(
        Lifeline(_PRODUCER),
        Lifeline(_MASTER, "process and page cache"),
        Lifeline("master's disk"),
        Lifeline(_SLAVE, "process and page cache"),
        Lifeline("slave's disk"),
        Lifeline(_OTHER),
    ),
    actions={
        "Send": Shown((_PRODUCER,), "sends {}", subject=_key_of("answer")),
        "Retry": Shown((_PRODUCER,), "{} again", to=_OTHER, subject=_key_of("answer")),
        "GiveUp": Shown((_PRODUCER,), "receives an error: {}", subject=_key_of("answer")),
        "AppendRecord": Shown((_PRODUCER,), "{}", to=_MASTER, subject=_key_of("answer")),
        "FlushLog": Shown(("{}",), "fsync", to="{}'s disk", subject=_key_of("flushed")),
        "Transfer": Shown((_MASTER,), "{}", to=_SLAVE, subject=_last_of("log")),
        "Report": Shown((_SLAVE,), "I have the log up to {}", to=_MASTER, subject=_reported),
        "AnswerOk": _answered("SEND_OK"),
        "AnswerDiskTimeout": _answered("FLUSH_DISK_TIMEOUT"),
        "AnswerSlaveTimeout": _answered("FLUSH_SLAVE_TIMEOUT"),
        "CleanStop": _fault("orderly stop"),
        "ProcessCrash": _fault("process killed"),
        "OsCrash": _fault("system crash"),
        "PowerLoss": _fault("power loss"),
        "DiskLost": _fault("disk destroyed", "{}'s disk"),
        "MachineLost": _fault("machine destroyed", "{}'s disk"),
        "DamageBlock": Shown(("{}'s disk",), "damages a record", subject=_key_of("damaged")),
        "RepairRecord": Shown(("{}",), "repairs a record", to="{}'s disk", subject=_key_of("damaged")),
        "Restart": Shown(("{}", "{}'s disk"), "restarts", mark=Mark.RESTART, subject=_key_of("up")),
    },
    extras=frozenset({_SLAVE, "slave's disk", _OTHER}),
    hidden=frozenset({"struck", "flush", "replication", "producer"}),
)


def _election_action(before: State, after: State) -> str:
    """Return the action of a step that received a message, inferred from the variables that it changed."""
    changed = {str(name) for name in after if before[name] != after[name]}
    if "faults" in changed:
        lost = _function(before, "faults")["losses"] != _function(after, "faults")["losses"]
        return "Lose" if lost else "Crash"
    if changed & {"ballots", "votedFor"} or changed == {"answers"}:
        return "HandleVote"
    if changed & {"watermark", "log"} and "role" not in changed:
        return "HandlePush"
    if changed == {"network"}:
        return "HandlePush"
    if changed == {"commit"}:
        return "HandleCommit"
    roles = _function(after, "role")
    followed = any(role == "FOLLOWER" != _function(before, "role")[node] for node, role in roles.items())
    if followed:
        return "HandleHeartBeat"
    return "HandleVote" if "answers" in changed else "HandleHeartBeat"


_CLIENT: Final = "client"

_ELECTION: Final = Table(
    lifelines=(Lifeline(_CLIENT),),
    nodes=True,
    actions={
        "AppendEntry": Shown((_CLIENT,), "{}", to="{node}", subject=_key_of("answer")),
        "Refuse": Shown((_CLIENT,), "NOT_LEADER {}", subject=_key_of("answer")),
        "Acknowledge": Shown((_CLIENT,), "SUCCESS {}", subject=_key_of("answer")),
        "Fail": Shown((_CLIENT,), "gives up on {}", subject=_key_of("answer")),
        "Calm": Shown((_CLIENT,), "the faults are over"),
    },
    named=_election_action,
    receivers=frozenset({"HandleVote", "HandleHeartBeat", "HandlePush", "HandleCommit"}),
    extras=frozenset({_CLIENT}),
    hidden=frozenset({"ballots", "winners", "committed", "faults", "calm"}),
)


def _replication_action(before: State, after: State) -> str:
    """Return the action of a step that received a frame, inferred from the variables that it changed."""
    changed = {str(name) for name in after if before[name] != after[name]}
    if "faults" in changed:
        return "Cut" if "phase" not in changed else "SystemCrash"
    if "refused" in changed:
        return "RefuseTransfer"
    if "acked" in changed:
        return "ReceiveAck"
    if "verified" in changed or "log" in changed:
        return "ReceiveTransfer"
    if "sent" in changed:
        return "AcceptReport"
    return "RefuseReport" if "connected" in changed else "ReceiveTransfer"


_REPLICATION: Final = Table(
    lifelines=(Lifeline(_PRODUCER), Lifeline(_CONSUMER)),
    nodes=True,
    actions={
        "AppendRecord": Shown((_PRODUCER,), "{}", to=_MASTER, subject=_key_of("answer")),
        "AnswerSend": Shown((_MASTER,), "{}", to=_PRODUCER, subject=_new_answer),
        "FlushTimeout": Shown((_MASTER,), "no fsync in time"),
        "SlaveTimeout": Shown((_MASTER,), "no slave in time"),
        "Deliver": Shown((_CONSUMER,), "reads {}", subject=_last_seen),
        "CorrectOffset": Shown((_CONSUMER,), "moves back to the end"),
    },
    named=_replication_action,
    receivers=frozenset({"AcceptReport", "RefuseReport", "ReceiveTransfer", "RefuseTransfer", "ReceiveAck"}),
    extras=frozenset({_CONSUMER}),
    hidden=frozenset({"held", "forked", "recalled", "faults"}),
)

_ROUTING: Final = Table(
    nodes=True,
    # Timer variables: the action already shows their changes, which would clutter the drawing.
    hidden=frozenset({"silence", "heartbeatAge", "scanAge", "pollAge", "faults"}),
)

TABLES: Final[dict[str, Table]] = {
    "Flush": _FLUSH,
    "Guarantee": _GUARANTEE,
    "Election": _ELECTION,
    "Replication": _REPLICATION,
    "Routing": _ROUTING,
}
"""The tables by model name, as in models.toml."""


def table(model: str) -> Table | None:
    """Return the model's table; a variant as shipped is drawn like the model it is derived from."""
    return TABLES.get(model.removesuffix("Shipped"))
