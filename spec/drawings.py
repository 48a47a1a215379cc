"""How each model's actions are drawn, where the general rule of drawing.py tells too little."""

from collections.abc import Callable
from typing import Final

from report.sequence import Lifeline, Mark
from spec.drawing import Shown, Table
from spec.tlc.values import Function, State


def _key_of(variable: str) -> Callable[[State, State], str]:
    """Whose value in this function changed: its key."""

    def found(before: State, after: State) -> str:
        old, new = _function(before, variable), _function(after, variable)
        return ", ".join(str(key) for key in new if old[key] != new[key])

    return found


def _last_of(variable: str) -> Callable[[State, State], str]:
    """The last element of the sequence in this function that changed."""

    def found(before: State, after: State) -> str:
        old, new = _function(before, variable), _function(after, variable)
        changed = [value for key, value in new.items() if old[key] != value]
        return ", ".join(str(value[-1]) for value in changed if isinstance(value, tuple) and value)

    return found


def _function(state: State, variable: str) -> Function:
    value = state[variable]
    assert isinstance(value, Function), f"{variable} is no function: {value}"
    return value


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
        "AppendRecord": Shown((_PRODUCER,), "send {}", to=_CACHE, who=_key_of("answer")),
        "FlushLog": Shown((_CACHE,), "fsync of the log", to=_DISK),
        "AnswerOk": Shown((_BROKER,), "SEND_OK {}", to=_PRODUCER, who=_key_of("answer")),
        "AnswerTimeout": Shown((_BROKER,), "FLUSH_DISK_TIMEOUT {}", to=_PRODUCER, who=_key_of("answer")),
        "Dispatch": Shown((_BROKER,), "queue entry", to=_CACHE),
        "FlushQueues": Shown((_CACHE,), "fsync of the queues", to=_DISK),
        "WriteCheckpoint": Shown((_BROKER,), "checkpoint", to=_DISK),
        "Deliver": Shown((_BROKER,), "{}", to=_CONSUMER, who=_last_of("seen")),
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
    named=_flush_action,
    hidden=frozenset({"appended", "crashes"}),
)

_MASTER, _SLAVE, _OTHER = "master", "slave", "another master"


def _answered(status: str) -> Shown:
    return Shown((_MASTER,), f"{status} {{}}", to=_PRODUCER, who=_key_of("answer"))


def _struck(text: str, *more: str) -> Shown:
    """Something strikes a node, and perhaps its disk."""
    return Shown(("{}", *more), text, mark=Mark.CRASH, who=_node_struck)


def _node_struck(_before: State, after: State) -> str:
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
        "Send": Shown((_PRODUCER,), "sends {}", who=_key_of("answer")),
        "Retry": Shown((_PRODUCER,), "{} again", to=_OTHER, who=_key_of("answer")),
        "GiveUp": Shown((_PRODUCER,), "is told of an error: {}", who=_key_of("answer")),
        "AppendRecord": Shown((_PRODUCER,), "{}", to=_MASTER, who=_key_of("answer")),
        "FlushLog": Shown(("{}",), "fsync", to="{}'s disk", who=_key_of("flushed")),
        "Transfer": Shown((_MASTER,), "{}", to=_SLAVE, who=_last_of("log")),
        "Report": Shown((_SLAVE,), "I have the log up to {}", to=_MASTER, who=_reported),
        "AnswerOk": _answered("SEND_OK"),
        "AnswerDiskTimeout": _answered("FLUSH_DISK_TIMEOUT"),
        "AnswerSlaveTimeout": _answered("FLUSH_SLAVE_TIMEOUT"),
        "CleanStop": _struck("stopped in order"),
        "ProcessCrash": _struck("process killed"),
        "OsCrash": _struck("system crash"),
        "PowerLoss": _struck("power loss"),
        "DiskLost": _struck("disk destroyed", "{}'s disk"),
        "MachineLost": _struck("machine destroyed", "{}'s disk"),
        "Restart": Shown(("{}", "{}'s disk"), "is started again", mark=Mark.RESTART, who=_key_of("up")),
    },
    extras=frozenset({_SLAVE, "slave's disk", _OTHER}),
    hidden=frozenset({"struck", "flush", "replication", "producer"}),
)

TABLES: Final[dict[str, Table]] = {"Flush": _FLUSH, "Guarantee": _GUARANTEE}
"""By model, as models.toml names it."""


def table(model: str) -> Table | None:
    """The model's table; a variant as shipped is drawn as the model that it varies."""
    return TABLES.get(model.removesuffix("Shipped"))
