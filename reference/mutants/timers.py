"""Broken variants of timers; spec/tla/mutants explains each bug under the same name."""

from functools import partial
from typing import Final

from mqproof.reference import timers
from mqproof.reference.mutants.mutant import Mutant
from mqproof.reference.timers import Config, Record, State


def _acked_before_safe(config: Config, state: State, msg: str) -> State | None:
    after = timers.acknowledge(config, state._replace(safe=len(state.log)), msg)
    return after and after._replace(safe=state.safe)


def _copy_not_learned(config: Config, state: State) -> State | None:
    after = timers.learn(config, state)
    if after is None:
        return None
    record = state.log[after.read - 1]
    is_copy = any(timers.has(state.log[: state.read], "timer", msg) for msg in record.of)
    return after._replace(waiting=state.waiting) if is_copy else after


def _deleted_before_safe(config: Config, state: State) -> State | None:
    if state.begin >= state.safe:
        return None
    after = timers.delete(config, state._replace(safe=len(state.log)))
    return after and after._replace(safe=state.safe)


def _delay_unbounded(config: Config, state: State, msg: str, delay: int) -> State | None:
    return timers.send(Config(config.msgs, delay_max=delay), state, msg, delay)


def _delivered_early(config: Config, state: State, msg: str) -> State | None:
    after = timers.deliver(config, state._replace(now=state.now + 1), msg)
    if after is None:
        return None
    early = after.log[-1]._replace(at=state.now)
    return after._replace(log=(*after.log[:-1], early), now=state.now)


def _overflow_at_once(config: Config, state: State, msg: str, delay: int) -> State | None:
    after = _delay_unbounded(config, state, msg, delay)
    if after is None or delay <= config.delay_max:
        return after
    return after._replace(log=(*after.log[:-1], after.log[-1]._replace(due=state.now)))


def _final_not_sought(config: Config, state: State) -> State | None:
    other = tuple(r._replace(kind="lost") if r.kind == "final" else r for r in state.log)
    after = timers.read_log(config, state._replace(log=other))
    return after and after._replace(log=state.log)


def _recall_forgotten(config: Config, state: State) -> State | None:
    other = tuple(r._replace(kind="lost") if r.kind == "recall" else r for r in state.log)
    after = timers.read_log(config, state._replace(log=other))
    return after and after._replace(log=state.log)


def _recall_before_safe(config: Config, state: State, msg: str) -> State | None:
    after = timers.acknowledge_recall(config, state._replace(safe=len(state.log)), msg)
    return after and after._replace(safe=state.safe)


def _point_ahead_of_delivery(config: Config, state: State) -> State | None:
    return _point(config, state, state.now, state.read, len(state.log) + 1)


def _point_covers_unread(config: Config, state: State) -> State | None:
    return _point(config, state, timers.upto(state), len(state.log), timers.scan_from(state))


def _scanned_from_point(config: Config, state: State) -> State | None:
    return _point(config, state, timers.upto(state), state.read, len(state.log) + 1)


def _point(config: Config, state: State, upto: int, read: int, scan: int) -> State | None:
    after = timers.point(config, state)
    if after is None:
        return None
    return after._replace(log=(*state.log, Record("point", frozenset(), upto, state.now, read, scan)))


def _rolled_twice(config: Config, state: State, msg: str) -> State | None:
    after = timers.roll(config, state, msg)
    return after and after._replace(waiting=state.waiting)


def _truncated_below(_config: Config, state: State, length: int) -> State | None:
    """The table survives the crash, and counts as read, although the log is shorter."""
    if not state.safe <= length <= len(state.log):
        return None
    kept = frozenset(place for place in state.waiting if place <= length)
    return state._replace(log=state.log[:length], waiting=kept)


def _overdue_skipped(config: Config, state: State, msg: str) -> State | None:
    place = timers.waits(state, msg)
    overdue = place and state.log[place - 1].due < state.now
    return None if overdue else timers.deliver(config, state, msg)


_one = partial(Mutant, timers.MODEL, config=Config(points_max=0))
_pointed = partial(Mutant, timers.MODEL, config=Config(), action="Point")
_two = Config(msgs=("m1", "m2"), points_max=0)

MUTANTS: Final[tuple[Mutant, ...]] = (
    _one("AckedBeforeSafe", invariant="TimerKept", action="Acknowledge", apply=_acked_before_safe),
    Mutant(
        timers.MODEL,
        "CopyNotLearned",
        invariant="TimerKept",
        action="Learn",
        apply=_copy_not_learned,
        config=Config(copies_max=2, points_max=0),
    ),
    _one("DeletedBeforeSafe", invariant="TimerKept", action="Delete", apply=_deleted_before_safe),
    _one("DelayUnbounded", invariant="DelayBounded", action="Send", apply=_delay_unbounded),
    _one("DeliveredEarly", invariant="NotEarly", action="Deliver", apply=_delivered_early),
    _one("OverflowAtOnce", invariant="NotEarly", action="Send", apply=_overflow_at_once),
    _one("FinalNotSought", invariant="TimerOnce", action="Read", apply=_final_not_sought),
    _one("RecallForgotten", invariant="RecallHolds", action="Read", apply=_recall_forgotten),
    _one("RecallBeforeSafe", invariant="RecallHolds", action="AcknowledgeRecall", apply=_recall_before_safe),
    _pointed("PointAheadOfDelivery", invariant="TimerKept", apply=_point_ahead_of_delivery),
    _pointed("PointCoversUnread", invariant="TimerKept", apply=_point_covers_unread),
    Mutant(
        timers.MODEL,
        "ScannedFromPoint",
        invariant="TimerOnce",
        action="Point",
        apply=_scanned_from_point,
        config=Config(msgs=("m1", "m2"), delays=(1,)),
    ),
    Mutant(
        timers.MODEL,
        "RolledTwice",
        invariant="TimerOnce",
        action="Roll",
        apply=_rolled_twice,
        config=Config(copies_max=2, points_max=0),
    ),
    Mutant(
        timers.MODEL,
        "TruncatedBelow",
        invariant="TimerKept",
        action="Crash",
        apply=_truncated_below,
        config=_two,
    ),
    _one(
        "OverdueSkipped",
        invariant="TimerDelivered",
        action="Deliver",
        apply=_overdue_skipped,
        config=Config(time_max=2, points_max=0),
    ),
)
