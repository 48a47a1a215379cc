"""Messages that wait for their time, action for action as in spec/tla/Timers.tla.

The order is the same: state, what a log says, the producer, the broker, safety. Places in the log count from
1, as in TLA+. What producers know is in tuples, in the order of the configuration.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any, Final, NamedTuple

from mqproof.reference.liveness import FIRST, Obligations, leads_to, strong, weak
from mqproof.reference.model import Action, Model, Parameters, by_name, each, named, once
from mqproof.reference.tlc_terms import configuration, operators
from mqproof.reference.updates import with_item


@dataclass(frozen=True)
class Config:
    msgs: tuple[str, ...] = ("m1",)
    delays: tuple[int, ...] = (1, 3)
    """The delays that producers ask for."""
    delay_max: int = 1
    """The broker accepts no longer delay."""
    time_max: int = 1
    copies_max: int = 1
    """The most records of a message that waits."""
    points_max: int = 1
    """The most points in the log."""


# State


class Record(NamedTuple):
    """One record of the broker's log."""

    kind: str  # "timer", "final", "recall" or "point"
    of: frozenset[str]  # the message that it belongs to; a point belongs to none
    due: int  # when the message is due; of a point: the messages due by this time are done
    at: int  # the store time
    read: int = 0  # of a point: the length of the log that it covers
    scan: int = 0  # of a point: where the final messages begin that it does not cover


Log = tuple[Record, ...]

_NO_POINT: Final = Record("point", frozenset(), 0, 0)


class State(NamedTuple):
    """The state of the model. A named tuple, because the explorer copies and hashes states most often."""

    log: Log = ()
    begin: int = 0  # the length of the prefix that is deleted
    safe: int = 0  # the length of the prefix that no crash and no takeover removes
    ready: bool = True  # whether the broker has read its log since it started
    read: int = 0  # the length of the prefix that the table in memory contains
    waiting: frozenset[int] = frozenset()  # the table: the places of the messages that wait
    now: int = 0
    asked: tuple[int, ...] = ()  # by message: the time that its producer asked for; 0 if it is not sent
    phase: tuple[str, ...] = ()  # by message: "new", "sent", "acked" or "recalled"


def initial(config: Config) -> tuple[State, ...]:
    """Init: the one initial state."""
    return (State(asked=(0,) * len(config.msgs), phase=("new",) * len(config.msgs)),)


# What a log says


def has(log: Log, kind: str, msg: str, after: int = 0) -> bool:
    """Has: whether the log has a record of this kind for the message after a place."""
    return any(record.kind == kind and msg in record.of for record in log[after:])


def latest(state: State, msg: str) -> int:
    """Latest: the place of the latest copy of a message; 0 if it has none in the log."""
    for place in range(len(state.log), state.begin, -1):
        record = state.log[place - 1]
        if record.kind == "timer" and msg in record.of:
            return place
    return 0


def last_point(state: State) -> Record:
    """LastPoint: the last point, or one that covers nothing."""
    points = [record for record in state.log[state.begin :] if record.kind == "point"]
    return points[-1] if points else _NO_POINT


def covered(state: State, place: int) -> bool:
    """Covered: a point says that the message at this place is done, because it was read, and due."""
    point = last_point(state)
    return place <= point.read and state.log[place - 1].due <= point.due


def evidence(state: State, msg: str) -> bool:
    """Evidence: the log after the point shows that the message is done."""
    after = max(state.begin, last_point(state).scan - 1)
    return has(state.log, "final", msg, after) or has(state.log, "recall", msg, state.begin)


def recovered(state: State) -> frozenset[int]:
    """Recovered: the places of the messages that wait, as the log shows them."""
    msgs = {msg for record in state.log[state.begin :] for msg in record.of}
    places = {msg: latest(state, msg) for msg in msgs}
    return frozenset(
        place
        for msg, place in places.items()
        if place and not covered(state, place) and not evidence(state, msg)
    )


def _append(state: State, kind: str, msg: str, due: int) -> State:
    return state._replace(log=(*state.log, Record(kind, frozenset({msg}), due, state.now)))


def _phase(config: Config, state: State, msg: str) -> str:
    return state.phase[config.msgs.index(msg)]


def _enter(config: Config, state: State, msg: str, phase: str) -> State:
    return state._replace(phase=with_item(state.phase, config.msgs.index(msg), phase))


# The producer


def accepts(config: Config, delay: int) -> bool:
    """Accepts: whether the broker accepts a delay."""
    return delay <= config.delay_max


def send(config: Config, state: State, msg: str, delay: int) -> State | None:
    """Send: the message is appended, and waits."""
    if not state.ready or _phase(config, state, msg) != "new" or not accepts(config, delay):
        return None
    due = state.now + delay
    asked = with_item(state.asked, config.msgs.index(msg), due)
    return _append(_enter(config, state, msg, "sent"), "timer", msg, due)._replace(asked=asked)


def acknowledge(config: Config, state: State, msg: str) -> State | None:
    """Acknowledge: SEND_OK is received."""
    if _phase(config, state, msg) != "sent" or not has(state.log[: state.safe], "timer", msg):
        return None
    return _enter(config, state, msg, "acked")


def acknowledge_recall(config: Config, state: State, msg: str) -> State | None:
    """AcknowledgeRecall: the success of a recall is received."""
    if _phase(config, state, msg) not in ("sent", "acked"):
        return None
    if not has(state.log[: state.safe], "recall", msg):
        return None
    return _enter(config, state, msg, "recalled")


# The broker


def waits(state: State, msg: str) -> int:
    """Waits: the place of a message in the table; 0 if it is not there. Mutants may have it twice."""
    return min((place for place in state.waiting if msg in state.log[place - 1].of), default=0)


def learn(_config: Config, state: State) -> State | None:
    """Learn: the next record of the log is read into the table."""
    if not state.ready or state.read >= len(state.log):
        return None
    place = state.read + 1
    new = {place} if state.log[place - 1].kind == "timer" else set()
    return state._replace(read=place, waiting=state.waiting | new)


def _leave(state: State, msg: str, kind: str) -> State | None:
    """Append a record for a message that waits, and remove it from the table."""
    place = waits(state, msg)
    if not state.ready or not place:
        return None
    after = _append(state, kind, msg, state.log[place - 1].due)
    return after._replace(waiting=state.waiting - {place})


def deliver(_config: Config, state: State, msg: str) -> State | None:
    """Deliver: a message that is due is appended for its consumers."""
    place = waits(state, msg)
    if not place or state.log[place - 1].due > state.now:
        return None
    return _leave(state, msg, "final")


def recall(_config: Config, state: State, msg: str) -> State | None:
    """Recall: a message that waits is withdrawn."""
    return _leave(state, msg, "recall")


def copies(state: State, msg: str) -> int:
    """Count("timer", t): the number of records of a message that waits."""
    return sum(record.kind == "timer" and msg in record.of for record in state.log)


def roll(config: Config, state: State, msg: str) -> State | None:
    """MCRoll: a copy is appended for a message whose record is old."""
    return _leave(state, msg, "timer") if copies(state, msg) < config.copies_max else None


def upto(state: State) -> int:
    """Upto: all messages that were read and are due by this time are done."""
    earliest = min((state.log[place - 1].due for place in state.waiting), default=state.now + 1)
    return min(state.now, earliest - 1)


def scan_from(state: State) -> int:
    """ScanFrom: where the final messages begin that the point does not cover."""
    done = upto(state)
    for place in range(state.begin + 1, len(state.log) + 1):
        record = state.log[place - 1]
        if record.kind == "final" and record.due > done:
            return place
    return len(state.log) + 1


def point(config: Config, state: State) -> State | None:
    """MCPoint: a record says which messages are done."""
    written = sum(record.kind == "point" for record in state.log)
    if not state.ready or written >= config.points_max:
        return None
    new = Record("point", frozenset(), upto(state), state.now, state.read, scan_from(state))
    return state._replace(log=(*state.log, new))


def needed(state: State, place: int) -> bool:
    """Needed: a message at this place would be lost without its record."""
    record, safe = state.log[place - 1], state.log[: state.safe]
    return record.kind == "timer" and not any(
        has(safe, kind, msg, place) for msg in record.of for kind in ("timer", "final", "recall")
    )


def delete(_config: Config, state: State) -> State | None:
    """Delete: the first record of the log is deleted."""
    if not state.ready or state.begin >= state.safe or needed(state, state.begin + 1):
        return None
    return state._replace(begin=state.begin + 1)


def secure(_config: Config, state: State) -> State | None:
    """Secure: the log is flushed and replicated."""
    return state._replace(safe=len(state.log)) if state.safe < len(state.log) else None


def tick(config: Config, state: State) -> State | None:
    """MCTick: time goes on."""
    return state._replace(now=state.now + 1) if state.now < config.time_max else None


def crash(_config: Config, state: State, length: int) -> State | None:
    """Crash: the broker restarts with what is left of its log, or the slave takes over."""
    if not state.safe <= length <= len(state.log):
        return None
    return state._replace(log=state.log[:length], ready=False, read=0, waiting=frozenset())


def read_log(_config: Config, state: State) -> State | None:
    """Read: the broker reads its log before it delivers."""
    if state.ready:
        return None
    return state._replace(ready=True, read=len(state.log), waiting=recovered(state))


# Actions


def _sends(config: Config) -> Iterable[Parameters]:
    return product(config.msgs, config.delays)


def _lengths(config: Config) -> Iterable[Parameters]:
    return ((length,) for length in range(len(config.msgs) * (config.copies_max + 1) + config.points_max + 1))


def _crashes(_config: Config, state: State) -> Iterator[Parameters]:
    return ((length,) for length in range(state.safe, len(state.log) + 1))


ACTIONS: Final[dict[str, Action[Config, State]]] = by_name(
    Action("Send", send, _sends),
    Action("Acknowledge", acknowledge, each("msgs")),
    Action("AcknowledgeRecall", acknowledge_recall, each("msgs")),
    Action("Deliver", deliver, each("msgs")),
    Action("Recall", recall, each("msgs")),
    Action("Roll", roll, each("msgs")),
    Action("Learn", learn, once),
    Action("Point", point, once),
    Action("Delete", delete, once),
    Action("Secure", secure, once),
    Action("Tick", tick, once),
    Action("Read", read_log, once),
    Action("Crash", crash, _lengths, _crashes),
)


# Safety


def not_early(config: Config, state: State) -> bool:
    """DELIV-8 NotEarly: a message is not visible before the time that its producer asked for."""
    asked = dict(zip(config.msgs, state.asked, strict=True))
    return all(record.at >= asked[msg] for record in state.log if record.kind == "final" for msg in record.of)


def timer_kept(config: Config, state: State) -> bool:
    """TIMER-1 TimerKept: an acknowledged message is visible, recalled, or the broker will deliver it."""
    for msg, phase in zip(config.msgs, state.phase, strict=True):
        if phase != "acked" or has(state.log, "final", msg) or has(state.log, "recall", msg):
            continue
        if state.ready:
            if not waits(state, msg) and latest(state, msg) <= state.read:
                return False
        elif not any(msg in state.log[place - 1].of for place in recovered(state)):
            return False
    return True


def timer_once(_config: Config, state: State) -> bool:
    """TIMER-2 TimerOnce: a message becomes visible at most once."""
    finals = [msg for record in state.log if record.kind == "final" for msg in record.of]
    return len(finals) == len(set(finals))


def recall_holds(config: Config, state: State) -> bool:
    """TIMER-3 RecallHolds: a message whose recall succeeded is never visible."""
    return not any(
        phase == "recalled" and has(state.log, "final", msg)
        for msg, phase in zip(config.msgs, state.phase, strict=True)
    )


def delay_bounded(config: Config, before: State, _action: str, after: State) -> bool:
    """TIMER-5 DelayBounded: an accepted message has the delay that was asked for, at most DelayMax."""
    for old, new in zip(before.asked, after.asked, strict=True):
        if old != new and (new - before.now > config.delay_max or after.log[-1].due != new):
            return False
    return True


# Liveness


FAIRNESS: Final = (
    weak("Read", "Read"),
    weak("Learn", "Learn"),
    strong("Deliver", "Deliver", each=FIRST),
    strong("Secure", "Secure"),
)


def timer_delivered(config: Config) -> Obligations[State]:
    """TIMER-4 TimerDelivered: an acknowledged message is visible or recalled eventually, once it is due."""
    return leads_to(
        lambda s, m: _phase(config, s, m) == "acked" and s.now >= s.asked[config.msgs.index(m)],
        lambda s, m: any(r.kind in ("final", "recall") and m in r.of for r in s.log[: s.safe]),
        of=each("msgs")(config),
    )


# The model in TLC's terms


def from_tla(config: Config, variables: Mapping[str, Any]) -> State:
    """Return the state that TLC prints."""
    return State(
        log=tuple(
            Record(r["kind"], frozenset(r["of"]), r["due"], r["at"], r["read"], r["scan"])
            for r in variables["log"]
        ),
        begin=variables["begin"],
        safe=variables["safe"],
        ready=variables["ready"],
        read=variables["read"],
        waiting=frozenset(variables["waiting"]),
        now=variables["now"],
        asked=tuple(variables["asked"][msg] for msg in config.msgs),
        phase=tuple(variables["phase"][msg] for msg in config.msgs),
    )


MODEL: Final = Model(
    name="Timers",
    initial=initial,
    actions=ACTIONS,
    invariants=named(not_early, timer_kept, timer_once, recall_holds),
    step_invariants=named(delay_bounded),
    fairness=FAIRNESS,
    liveness=named(timer_delivered),
    from_constants=configuration(
        Config,
        msgs="Msgs",
        delays="Delays",
        delay_max="DelayMax",
        time_max="TimeMax",
        copies_max="CopiesMax",
        points_max="PointsMax",
    ),
    from_tla=from_tla,
    operator=operators(("Roll", "Point", "Tick")),
)
