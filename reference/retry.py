"""Messages that failed, action for action as in spec/tla/Retry.tla.

The order is the same: state, the ladder, the broker, the member, safety. Places in the log count from 1, as
in TLA+.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Final, NamedTuple

from mqproof.reference.liveness import Finite, Obligations, leads_to, weak
from mqproof.reference.model import Action, Model, Parameters, by_name, each, named, once
from mqproof.reference.tlc_terms import configuration, operators


@dataclass(frozen=True)
class Config:
    msgs: tuple[str, ...] = ("m1",)
    level_max: int = 1
    """The highest level of delay; the k-th level has a delay of k ticks."""
    retries_max: int = 1
    """The retries before a message becomes a dead letter."""
    faults_max: int = 1
    records_max: int = 5
    """The most records in the log."""


# State


class Record(NamedTuple):
    """One record of the broker's log."""

    kind: str  # "topic", "delay", "retry" or "dead"
    of: str  # the message
    times: int  # the retries of the message
    origin: int = 0  # the place of the record that this one is a copy of; 0 for the original
    at: int = 0  # the store time of a delayed copy and of its copy in the retry topic
    due: int = 0  # of a delayed copy


Log = tuple[Record, ...]
Places = frozenset[int]

_NONE: Final[Places] = frozenset()


class State(NamedTuple):
    """The state of the model. A named tuple, because the explorer copies and hashes states most often."""

    log: Log = ()
    safe: int = 0  # the length of the prefix that no crash and no takeover removes
    moved: Places = _NONE  # the delayed copies that are in the retry topic, as the broker counts them
    now: int = 0
    calls: Places = _NONE  # the records that the listener processes
    failed: Places = _NONE  # the records that failed, and must be sent back
    sent: Places = _NONE  # the copies whose answers the member awaits
    done: Places = _NONE  # the records that the member consumed or sent back
    consumed: Places = _NONE  # history: the records whose last call of the listener succeeded
    faults: int = 0


def initial(_config: Config) -> tuple[State, ...]:
    """Init: the one initial state."""
    return (State(),)


# The ladder


def level(config: Config, retry: int) -> int:
    """Level: the level of the retry with this number, from 1. It is also its delay in ticks."""
    return min(retry, config.level_max)


def copy(config: Config, state: State, place: int) -> Record:
    """Copy: what the broker stores for a message that was sent back."""
    record = state.log[place - 1]
    retry = record.times + 1
    if record.times >= config.retries_max:
        return Record("dead", record.of, retry, place)
    return Record("delay", record.of, retry, place, state.now, state.now + level(config, retry))


def in_queue(record: Record) -> bool:
    """InQueue: whether the member reads the record."""
    return record.kind in ("topic", "retry")


# The broker


def send(_config: Config, state: State, msg: str) -> State | None:
    """Send: a message is stored in the topic."""
    if any(record.of == msg for record in state.log):
        return None
    return state._replace(log=(*state.log, Record("topic", msg, 0)))


def secure(_config: Config, state: State) -> State | None:
    """Secure: the log is flushed and replicated."""
    return state._replace(safe=len(state.log)) if state.safe < len(state.log) else None


def waits(state: State, place: int) -> bool:
    """Waits: the record is a delayed copy that is not in the retry topic yet."""
    return state.log[place - 1].kind == "delay" and place not in state.moved


def move(config: Config, state: State, place: int) -> State | None:
    """Move: a delayed copy is due, and is stored in the retry topic. A level keeps its order."""
    if place > state.safe or not waits(state, place) or len(state.log) >= config.records_max:
        return None
    record = state.log[place - 1]
    own = level(config, record.times)
    if any(waits(state, p) and level(config, state.log[p - 1].times) == own for p in range(1, place)):
        return None
    if record.due > state.now:
        return None
    added = Record("retry", record.of, record.times, place, state.now)
    return state._replace(log=(*state.log, added), moved=state.moved | {place})


def tick(_config: Config, state: State) -> State | None:
    """Tick: time passes while a safe copy waits for it."""
    if not any(waits(state, p) and state.log[p - 1].due > state.now for p in range(1, state.safe + 1)):
        return None
    return state._replace(now=state.now + 1)


def restorable(state: State) -> Places:
    """Restorable: the progress in the file, which is written after the log was flushed."""
    copied = {record.origin for record in state.log[: state.safe] if record.kind == "retry"}
    return state.moved & copied


def crash(config: Config, state: State, length: int, old: bool) -> State | None:
    """Crash: the broker restarts, or a slave takes over. The file of the progress may be old."""
    if not state.safe <= length <= len(state.log) or state.faults >= config.faults_max:
        return None
    moved = _NONE if old else restorable(state)
    return state._replace(log=state.log[:length], moved=moved, sent=_NONE, faults=state.faults + 1)


# The member


def begun(state: State) -> Places:
    """Begun: the records that the member has begun to process."""
    return state.calls | state.failed | state.done


def before(state: State, place: int) -> Places:
    """Before: the records of the same queue that are before a record."""
    kind = state.log[place - 1].kind
    return frozenset(p for p in range(1, place) if state.log[p - 1].kind == kind)


def deliver(_config: Config, state: State, place: int) -> State | None:
    """Deliver: the listener is called. Calls begin in the order of the queue, and several may run."""
    if place > state.safe or not in_queue(state.log[place - 1]):
        return None
    read = begun(state)
    if place in read or not before(state, place) <= read:
        return None
    return state._replace(calls=state.calls | {place}, consumed=state.consumed - {place})


def succeed(_config: Config, state: State, place: int) -> State | None:
    """Succeed: the listener has consumed the message."""
    if place not in state.calls:
        return None
    return state._replace(
        calls=state.calls - {place}, done=state.done | {place}, consumed=state.consumed | {place}
    )


def fail(_config: Config, state: State, place: int) -> State | None:
    """Fail: the listener returns a failure."""
    if place not in state.calls:
        return None
    return state._replace(calls=state.calls - {place}, failed=state.failed | {place})


def send_back(config: Config, state: State, place: int) -> State | None:
    """SendBack: the broker stores the copy. Its answer waits until the copy is safe."""
    if place not in state.failed or len(state.log) >= config.records_max:
        return None
    if any(state.log[p - 1].origin == place for p in state.sent):
        return None
    log = (*state.log, copy(config, state, place))
    return state._replace(log=log, sent=state.sent | {len(log)})


def confirm(_config: Config, state: State, place: int) -> State | None:
    """Confirm: the member receives SUCCESS for the copy at this place."""
    if place not in state.sent or place > state.safe:
        return None
    origin = state.log[place - 1].origin
    return state._replace(
        failed=state.failed - {origin}, done=state.done | {origin}, sent=state.sent - {place}
    )


def lose(config: Config, state: State, place: int) -> State | None:
    """Lose: the answer is lost, late or an error. The member sends the message back again."""
    if place not in state.sent or state.faults >= config.faults_max:
        return None
    return state._replace(sent=state.sent - {place}, faults=state.faults + 1)


def passed(state: State) -> Places:
    """Passed: the records before the offsets; an offset is that of the first record that is not done."""
    return frozenset(place for place in state.done if before(state, place) <= state.done)


def member_ends(config: Config, state: State, old: bool) -> State | None:
    """MemberEnds: the next member begins at the committed offsets, which may be old."""
    if state.faults >= config.faults_max:
        return None
    done = _NONE if old else passed(state)
    return state._replace(calls=_NONE, failed=_NONE, sent=_NONE, done=done, faults=state.faults + 1)


# Actions


def _places(config: Config) -> Iterable[Parameters]:
    return ((place,) for place in range(1, config.records_max + 1))


def _lengths(config: Config) -> Iterable[Parameters]:
    return product(range(config.records_max + 1), (False, True))


def _olds(_config: Config) -> Iterable[Parameters]:
    return ((False,), (True,))


def _records(_config: Config, state: State) -> Iterator[Parameters]:
    return ((place,) for place in range(1, state.safe + 1))


def _calls(_config: Config, state: State) -> Iterator[Parameters]:
    return ((place,) for place in sorted(state.calls))


def _failed(_config: Config, state: State) -> Iterator[Parameters]:
    return ((place,) for place in sorted(state.failed))


def _sent(_config: Config, state: State) -> Iterator[Parameters]:
    return ((place,) for place in sorted(state.sent))


def _crashes(_config: Config, state: State) -> Iterable[Parameters]:
    return product(range(state.safe, len(state.log) + 1), (False, True))


ACTIONS: Final[dict[str, Action[Config, State]]] = by_name(
    Action("Send", send, each("msgs")),
    Action("Secure", secure, once),
    Action("Tick", tick, once),
    Action("Move", move, _places, _records),
    Action("Deliver", deliver, _places, _records),
    Action("Succeed", succeed, _places, _calls),
    Action("Fail", fail, _places, _calls),
    Action("SendBack", send_back, _places, _failed),
    Action("Confirm", confirm, _places, _sent),
    Action("Lose", lose, _places, _sent),
    Action("Crash", crash, _lengths, _crashes),
    Action("MemberEnds", member_ends, _olds),
)


# Safety


def retries(log: Log, place: int) -> int:
    """Retries: how often the message was sent back before this record."""
    count = 0
    while place:
        record = log[place - 1]
        count += record.kind == "delay"
        place = record.origin
    return count


def lives(state: State, place: int) -> bool:
    """Lives: the record is consumed, a dead letter, still to be read, or still to be moved."""
    kind = state.log[place - 1].kind
    if kind == "dead":
        return True
    if kind == "delay":
        return place not in state.moved
    return place in state.consumed or place not in state.done


def retry_then_dead_letter(config: Config, state: State) -> bool:
    """DELIV-7 RetryThenDeadLetter: a failing message is retried later and later, then a dead letter."""
    log = state.log
    alive = {log[place - 1].of for place in range(1, len(log) + 1) if lives(state, place)}
    if not all(record.of in alive for record in log[: state.safe]):
        return False
    for place, record in enumerate(log, 1):
        count = retries(log, place)
        if count > config.retries_max or (record.kind == "dead" and count != config.retries_max):
            return False
        if record.kind == "retry":
            delayed = log[record.origin - 1]
            if delayed.kind != "delay" or record.at < delayed.at + min(count, config.level_max):
                return False
    return True


# Liveness


def _without_bounds(config: Config) -> Config:
    return replace(config, records_max=config.records_max + 2)


FAIRNESS: Final = (
    weak("Secure", "Secure"),
    weak("Tick", "Tick"),
    weak("Move", "Move", unbounded=_without_bounds),
    weak("Deliver", "Deliver"),
    weak("Return", "Succeed", "Fail"),
    weak("SendBack", "SendBack", unbounded=_without_bounds),
    Finite("EndOfFaults", lambda _config, before, _action, after: after.faults != before.faults),
)


def failed_ends(config: Config) -> Obligations[State]:
    """FailedEnds: a message is eventually consumed or a dead letter."""

    def ended(state: State, msg: str) -> bool:
        return any(
            record.of == msg and (place in state.consumed or record.kind == "dead")
            for place, record in enumerate(state.log[: state.safe], 1)
        )

    return leads_to(
        lambda s, msg: any(record.of == msg for record in s.log[: s.safe]), ended, of=each("msgs")(config)
    )


# The model in TLC's terms


def from_tla(_config: Config, variables: Mapping[str, Any]) -> State:
    """Return the state that TLC prints."""
    sets = ("moved", "calls", "failed", "sent", "done", "consumed")
    return State(
        log=tuple(
            Record(r["kind"], r["of"], r["times"], r["from"], r["at"], r["due"]) for r in variables["log"]
        ),
        safe=variables["safe"],
        now=variables["now"],
        faults=variables["faults"],
        **{name: frozenset(variables[name]) for name in sets},
    )


MODEL: Final = Model(
    name="Retry",
    initial=initial,
    actions=ACTIONS,
    invariants=named(retry_then_dead_letter),
    fairness=FAIRNESS,
    liveness=named(failed_ends),
    from_constants=configuration(
        Config,
        msgs="Msgs",
        level_max="LevelMax",
        retries_max="RetriesMax",
        faults_max="FaultsMax",
        records_max="RecordsMax",
    ),
    from_tla=from_tla,
    operator=operators(("Move", "SendBack", "Lose", "Crash", "MemberEnds")),
)
