"""Damage of durable bytes in one store, action for action as in spec/tla/Damage.tla.

The order is the same: state, a broker without damage, faults, a start, reads and repairs, safety. Positions
in the log and queue offsets count from 1, as in TLA+.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any, Final, NamedTuple

from mqproof.reference.liveness import FIRST, Obligations, leads_to, strong, weak
from mqproof.reference.model import Action, Model, Parameters, by_name, named
from mqproof.reference.tlc_terms import configuration, operators
from mqproof.reference.updates import with_item

NOTHING: Final = 0
"""No message; as a queue entry: bytes that were never written."""
COPIES: Final = ("main", "backup")


@dataclass(frozen=True)
class Config:
    messages: int = 1
    """The most messages that producers send."""
    faults: tuple[str, ...] = ("flip", "lost")
    """The kinds of faults that may occur: "flip", "lost", "missing"."""
    has_peer: bool = True
    """Whether there is a slave."""
    faults_max: int = 1


# State


class Record(NamedTuple):
    """One record of the log."""

    message: int
    content: str = "good"  # or "flipped", "blank"


class Checkpoint(NamedTuple):
    """How much of the log it counts as durable, and whether its own checksum is right."""

    counted: int = 0
    sound: bool = True


class Read(NamedTuple):
    """The last read: its queue offset, and what the consumer received."""

    offset: int = 0
    message: int = NOTHING
    content: str = "nothing"


NO_READ: Final = Read()

Log = tuple[Record, ...]


class State(NamedTuple):
    """The state of the model. A named tuple, because the explorer copies and hashes states most often."""

    phase: str = "running"  # or "down"; "refused": the broker does not start, with an error
    log: Log = ()
    queue: tuple[int, ...] = ()  # the entry of each queue offset: the position of a record
    checkpoint: Checkpoint = Checkpoint()
    table: tuple[str, str] = ("new", "new")  # by copy: "new", "old" or "bad"
    topic: bool = True  # whether the broker knows the topic
    peer: tuple[int, ...] = ()  # the log of the slave, by message
    read: Read = NO_READ
    reported: frozenset[int] = frozenset()  # the positions that the error log names
    named: str = "none"  # the file that the error of a refused start names
    offsets: tuple[int, ...] = ()  # the queue offset of each message that was sent
    covered: frozenset[int] = frozenset()  # the messages that a checkpoint has counted
    struck: tuple[str, ...] = ()  # the files that were damaged, in order


def initial(_config: Config) -> tuple[State, ...]:
    """Init: the one initial state."""
    return (State(),)


def good(log: Log, position: int) -> bool:
    """Good: the bytes at this position are the record that was written."""
    return 1 <= position <= len(log) and log[position - 1].content == "good"


# A broker without damage


def send(config: Config, state: State) -> State | None:
    """Send: a message is stored, durable, and in its queue."""
    if state.phase != "running" or len(state.offsets) >= config.messages:
        return None
    position = len(state.log) + 1
    return state._replace(
        log=(*state.log, Record(len(state.offsets) + 1)),
        queue=(*state.queue, position),
        offsets=(*state.offsets, position),
        read=NO_READ,
    )


def _counting(state: State, log: Log) -> State:
    """Counting: a checkpoint counts these records."""
    return state._replace(
        checkpoint=Checkpoint(len(log)), covered=state.covered | {record.message for record in log}
    )


def checkpoint(_config: Config, state: State) -> State | None:
    """Checkpoint: the checkpoint counts the whole log."""
    if state.phase != "running" or state.checkpoint == Checkpoint(len(state.log)):
        return None
    return _counting(state, state.log)


def copy(config: Config, state: State) -> State | None:
    """Copy: the slave copies the next record, which it checks."""
    place = len(state.peer)
    if not config.has_peer or state.phase != "running" or not good(state.log, place + 1):
        return None
    return state._replace(peer=(*state.peer, state.log[place].message))


def stop(_config: Config, state: State) -> State | None:
    """Stop: a clean exit or a crash."""
    return state._replace(phase="down", topic=False, read=NO_READ) if state.phase == "running" else None


# Faults


def _struck(config: Config, state: State, fault: str, file: str) -> State | None:
    """Strike: the fault happens to the file, if it may."""
    if fault not in config.faults or state.phase == "refused" or len(state.struck) >= config.faults_max:
        return None
    return state._replace(struck=(*state.struck, file))


def damage_record(config: Config, state: State, position: int, becomes: str) -> State | None:
    """DamageRecord: a record is altered, or earlier bytes are there."""
    struck = _struck(config, state, "flip" if becomes == "flipped" else "lost", "log")
    if struck is None or not good(state.log, position):
        return None
    record = state.log[position - 1]._replace(content=becomes)
    return struck._replace(log=with_item(state.log, position - 1, record))


def damage_entry(config: Config, state: State, offset: int, at: int) -> State | None:
    """DamageEntry: an entry points at another position, or was never written."""
    struck = _struck(config, state, "lost" if at == NOTHING else "flip", "queue")
    if struck is None or offset > len(state.queue) or state.queue[offset - 1] != offset or at == offset:
        return None
    return struck._replace(queue=with_item(state.queue, offset - 1, at))


def damage_checkpoint(config: Config, state: State, count: int, sound: bool) -> State | None:
    """DamageCheckpoint: the checkpoint is altered, or has an earlier content."""
    struck = _struck(config, state, "lost" if sound else "flip", "checkpoint")
    old = state.checkpoint
    if struck is None or not old.sound or (count >= old.counted if sound else count == old.counted):
        return None
    return struck._replace(checkpoint=Checkpoint(count, sound))


def damage_table(config: Config, state: State, which: str, becomes: str) -> State | None:
    """DamageTable: a copy of the table is altered, or lacks its last write."""
    struck = _struck(config, state, "flip" if becomes == "bad" else "lost", "table")
    index = COPIES.index(which)
    if struck is None or state.table[index] != "new":
        return None
    return struck._replace(table=with_item(state.table, index, becomes))


def lose_segments(config: Config, state: State, kept: int) -> State | None:
    """LoseSegments: the files of the log after the first `kept` ones are missing."""
    struck = _struck(config, state, "missing", "log")
    if struck is None or state.phase != "down" or kept >= len(state.log):
        return None
    return struck._replace(log=state.log[:kept])


def lose_queue(config: Config, state: State) -> State | None:
    """LoseQueue: the files of the queue are missing."""
    struck = _struck(config, state, "missing", "queue")
    if struck is None or state.phase != "down" or not state.queue:
        return None
    return struck._replace(queue=())


# A start


def known(state: State) -> int:
    """Known: how much of the log was durable; a checkpoint whose checksum is wrong counts nothing."""
    return state.checkpoint.counted if state.checkpoint.sound else 0


def end_of_log(state: State) -> int:
    """End: where the log ends; damage before the known position does not end it."""
    end = known(state)
    while good(state.log, end + 1):
        end += 1
    return end


def cut_places(state: State, end: int) -> frozenset[int]:
    """CutPlaces: what follows the end is cut and named, by its bytes or by its entries in the queue."""
    return frozenset(range(end + 1, max(len(state.log), len(state.queue)) + 1))


def problem(state: State) -> str:
    """Problem: the file because of which the broker does not start, or "none"."""
    if all(each == "bad" for each in state.table):
        return "table"
    if len(state.log) < known(state):
        return "log"
    lacking = range(len(state.queue) + 1, end_of_log(state) + 1)
    return "none" if all(good(state.log, place) for place in lacking) else "queue"


def recovered(state: State, end: int, reported: frozenset[int], has_topic: bool) -> State:
    """Return the state after a start that keeps the log up to this end."""
    log = state.log[:end]
    trusted = state.queue[: min(known(state), end)]
    return _counting(state, log)._replace(
        phase="running",
        log=log,
        queue=(*trusted, *range(len(trusted) + 1, end + 1)),
        topic=has_topic,
        table=("new", "new") if has_topic else ("old", "old"),
        reported=state.reported | reported,
    )


def recover(_config: Config, state: State) -> State | None:
    """Recover: the broker starts."""
    if state.phase != "down" or problem(state) != "none":
        return None
    end = end_of_log(state)
    return recovered(state, end, cut_places(state, end), "new" in state.table)


def refuse(_config: Config, state: State) -> State | None:
    """Refuse: the broker does not start, and its error names a file."""
    if state.phase != "down" or (name := problem(state)) == "none":
        return None
    return state._replace(phase="refused", named=name)


# Reads and repairs


def consume(_config: Config, state: State, offset: int) -> State | None:
    """Consume: a consumer reads; the entry is repaired, or a damaged record is reported."""
    if state.phase != "running" or offset not in state.offsets:
        return None
    if state.topic and good(state.log, offset):
        return state._replace(
            read=Read(offset, *state.log[offset - 1]), queue=with_item(state.queue, offset - 1, offset)
        )
    is_damaged = state.topic and offset <= len(state.log)
    return state._replace(
        read=Read(offset), reported=state.reported | {offset} if is_damaged else state.reported
    )


def peer_has(state: State, position: int) -> bool:
    """PeerHas: the slave has the record of this position."""
    return position <= len(state.peer) and state.peer[position - 1] == state.log[position - 1].message


def repair(_config: Config, state: State, position: int) -> State | None:
    """Repair: the slave's record replaces a damaged one that was found."""
    if (
        state.phase != "running"
        or position not in state.reported
        or not damaged(state, position)
        or not peer_has(state, position)
    ):
        return None
    record = state.log[position - 1]._replace(content="good")
    return state._replace(log=with_item(state.log, position - 1, record))


# Actions


def _none(_config: Config) -> tuple[Parameters, ...]:
    return ((),)


def _positions(config: Config) -> tuple[Parameters, ...]:
    return tuple((each,) for each in range(1, config.messages + 1))


def _records(config: Config) -> Iterable[Parameters]:
    return product(range(1, config.messages + 1), ("flipped", "blank"))


def _entries(config: Config) -> Iterable[Parameters]:
    return product(range(1, config.messages + 1), range(config.messages + 2))


def _counts(config: Config) -> Iterable[Parameters]:
    return product(range(config.messages + 1), (False, True))


def _tables(_config: Config) -> Iterator[Parameters]:
    return product(COPIES, ("old", "bad"))


def _kept(config: Config) -> tuple[Parameters, ...]:
    return tuple((each,) for each in range(config.messages + 1))


ACTIONS: Final[dict[str, Action[Config, State]]] = by_name(
    Action("Send", send, _none),
    Action("Checkpoint", checkpoint, _none),
    Action("Copy", copy, _none),
    Action("Stop", stop, _none),
    Action("Recover", recover, _none),
    Action("Refuse", refuse, _none),
    Action("Consume", consume, _positions),
    Action("Repair", repair, _positions),
    Action("DamageRecord", damage_record, _records),
    Action("DamageEntry", damage_entry, _entries),
    Action("DamageCheckpoint", damage_checkpoint, _counts),
    Action("DamageTable", damage_table, _tables),
    Action("LoseSegments", lose_segments, _kept),
    Action("LoseQueue", lose_queue, _none),
)
_BOUNDED: Final = (
    "DamageRecord",
    "DamageEntry",
    "DamageCheckpoint",
    "DamageTable",
    "LoseSegments",
    "LoseQueue",
)


# Safety


def _one_fault(state: State) -> bool:
    """OneFault: a second fault can damage the means of the repair."""
    return len(state.struck) <= 1


def never_silently_wrong(_config: Config, state: State) -> bool:
    """ROT-1 NeverSilentlyWrong: a damaged record is never delivered as good."""
    read = state.read
    return read.content == "nothing" or (
        read.content == "good" and state.offsets[read.message - 1] == read.offset
    )


def never_silently_lost(_config: Config, state: State) -> bool:
    """ROT-2 NeverSilentlyLost: a durable message is delivered, or its loss is reported by its place."""
    offset, _, content = state.read
    if not _one_fault(state):
        return True
    return offset == 0 or content != "nothing" or offset in state.reported


def offsets_not_reused(_config: Config, state: State) -> bool:
    """ROT-3 OffsetsNotReused: a new message never gets the offset of an earlier one that was counted."""
    return not _one_fault(state) or all(
        state.offsets[each - 1] not in state.offsets[each:] for each in state.covered
    )


def refused_by_name(_config: Config, state: State) -> bool:
    """ROT-4 RefusedByName: the error of a refused start names a file that was damaged."""
    return (state.phase == "refused") == (state.named in state.struck)


# Liveness


FAIRNESS: Final = (
    weak("Start", "Recover", "Refuse"),
    strong("Consume", "Consume", each=FIRST),
    strong("Repair", "Repair", each=FIRST),
)


def damaged(state: State, position: int) -> bool:
    """Damaged: the log has a damaged record at this position."""
    return position <= len(state.log) and not good(state.log, position)


def damage_settled(config: Config) -> Obligations[State]:
    """ROT-5 DamageSettled: a damaged record is repaired if a peer has it, and reported otherwise."""

    def settled(state: State, position: int) -> bool:
        return (
            not damaged(state, position)
            or state.phase == "refused"
            or (position in state.reported and not peer_has(state, position))
        )

    return leads_to(damaged, settled, of=_positions(config))


# The model in TLC's terms


def from_tla(_config: Config, variables: Mapping[str, Any]) -> State:
    """Return the state that TLC prints."""
    count, read = variables["checkpoint"], variables["read"]
    return State(
        phase=variables["phase"],
        log=tuple(Record(each["message"], each["is"]) for each in variables["log"]),
        queue=tuple(variables["queue"]),
        checkpoint=Checkpoint(count["count"], count["sound"]),
        table=(variables["table"]["main"], variables["table"]["backup"]),
        topic=variables["topic"],
        peer=tuple(variables["peer"]),
        read=Read(read["offset"], read["message"], read["is"]),
        reported=frozenset(variables["reported"]),
        named=variables["named"],
        offsets=tuple(variables["offsets"]),
        covered=frozenset(variables["covered"]),
        struck=tuple(variables["struck"]),
    )


MODEL: Final = Model(
    name="Damage",
    initial=initial,
    actions=ACTIONS,
    invariants=named(never_silently_wrong, never_silently_lost, offsets_not_reused, refused_by_name),
    step_invariants={},
    fairness=FAIRNESS,
    liveness=named(damage_settled),
    from_constants=configuration(
        Config, messages="Messages", faults="Faults", has_peer="HasPeer", faults_max="FaultsMax"
    ),
    from_tla=from_tla,
    operator=operators(bounded=_BOUNDED),
)
