"""Broken variants of retries; spec/tla/mutants explains each bug under the same name."""

from functools import partial
from typing import Final

from mqproof.reference import retry
from mqproof.reference.mutants.mutant import Mutant
from mqproof.reference.retry import Config, Record, State


def _commits_failed(_config: Config, state: State, old: bool) -> State | None:
    done = frozenset() if old else state.done | state.failed
    return _ended(state, done)


def _commits_the_last(_config: Config, state: State, old: bool) -> State | None:
    """The offset of a queue is after the last message that is done."""
    last = {state.log[place - 1].kind: place for place in sorted(state.done)}
    places = frozenset(
        place
        for place, record in enumerate(state.log[: state.safe], 1)
        if retry.in_queue(record) and place <= last.get(record.kind, 0)
    )
    return _ended(state, frozenset() if old else places)


def _ended(state: State, done: frozenset[int]) -> State:
    none: frozenset[int] = frozenset()
    return state._replace(calls=none, failed=none, sent=none, done=done, faults=state.faults + 1)


def _confirmed_before_safe(config: Config, state: State, place: int) -> State | None:
    after = retry.confirm(config, state._replace(safe=len(state.log)), place)
    return after and after._replace(safe=state.safe)


def _with_copy(config: Config, state: State, place: int, retries_max: int) -> State | None:
    """Send back under another limit of retries."""
    limits = Config(config.msgs, config.level_max, retries_max, config.faults_max, config.records_max)
    return retry.send_back(limits, state, place)


def _dead_too_early(config: Config, state: State, place: int) -> State | None:
    return _with_copy(config, state, place, config.retries_max - 1)


def _dead_too_late(config: Config, state: State, place: int) -> State | None:
    return _with_copy(config, state, place, config.retries_max + 1)


def _dropped_at_the_end(config: Config, state: State, place: int) -> State | None:
    if place in state.failed and state.log[place - 1].times >= config.retries_max:
        return state._replace(failed=state.failed - {place}, done=state.done | {place})
    return retry.send_back(config, state, place)


def _times_not_counted(config: Config, state: State, place: int) -> State | None:
    after = retry.send_back(config, state, place)
    if after is None:
        return None
    record: Record = after.log[-1]
    return after._replace(log=(*state.log, record._replace(times=record.times - 1)))


def _first_level_always(config: Config, state: State, place: int) -> State | None:
    after = retry.send_back(config, state, place)
    if after is None or after.log[-1].kind == "dead":
        return after
    return after._replace(log=(*state.log, after.log[-1]._replace(due=state.now + 1)))


def _moved_early(config: Config, state: State, place: int) -> State | None:
    later = state.now + config.level_max
    after = retry.move(config, state._replace(now=later), place)
    if after is None:
        return None
    return after._replace(log=(*state.log, after.log[-1]._replace(at=state.now)), now=state.now)


def _delayed_skipped(config: Config, state: State, place: int) -> State | None:
    """The copies of the level before this one are passed over."""
    skipped = frozenset(p for p in range(1, min(place, len(state.log) + 1)) if retry.waits(state, p))
    return retry.move(config, state._replace(moved=state.moved | skipped), place)


def _file_ahead_of_log(config: Config, state: State, length: int, old: bool) -> State | None:
    after = retry.crash(config, state, length, old)
    return after if after is None or old else after._replace(moved=state.moved)


def _one_topic_read(config: Config, state: State, place: int) -> State | None:
    """The member does not read the retry topic."""
    other = place <= len(state.log) and state.log[place - 1].kind != "topic"
    return None if other else retry.deliver(config, state, place)


_retry = partial(Mutant, retry.MODEL, invariant="RetryThenDeadLetter")
_one = partial(_retry, config=Config())
_calm = Config(faults_max=0, records_max=8)

MUTANTS: Final[tuple[Mutant, ...]] = (
    _one("CommitsFailed", action="MemberEnds", apply=_commits_failed),
    _retry(
        "CommitsTheLast",
        action="MemberEnds",
        apply=_commits_the_last,
        config=Config(msgs=("m1", "m2"), records_max=6),
    ),
    _one("ConfirmedBeforeSafe", action="Confirm", apply=_confirmed_before_safe),
    _one("DeadTooEarly", action="SendBack", apply=_dead_too_early),
    _retry("DeadTooLate", action="SendBack", apply=_dead_too_late, config=_calm),
    _retry(
        "DelayedSkipped",
        action="Move",
        apply=_delayed_skipped,
        config=Config(msgs=("m1", "m2"), faults_max=0, records_max=6),
    ),
    _one("DroppedAtTheEnd", action="SendBack", apply=_dropped_at_the_end),
    _retry(
        "FirstLevelAlways",
        action="SendBack",
        apply=_first_level_always,
        config=Config(level_max=2, retries_max=2, faults_max=0, records_max=6),
    ),
    _one("MovedEarly", action="Move", apply=_moved_early),
    _one("FileAheadOfLog", action="Crash", apply=_file_ahead_of_log),
    _retry("TimesNotCounted", action="SendBack", apply=_times_not_counted, config=_calm),
    _one(
        "OneTopicRead",
        invariant="FailedEnds",
        action="Deliver",
        apply=_one_topic_read,
        config=Config(faults_max=0),
    ),
)
