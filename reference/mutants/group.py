"""Broken variants of the group model; spec/tla/mutants explains each bug under the same name."""

from functools import partial
from typing import Final

from mqproof.reference import group
from mqproof.reference.delivery import changed
from mqproof.reference.group import Config, State
from mqproof.reference.mutants.mutant import Mutant
from mqproof.reference.updates import replace


def _starts_at(config: Config, state: State, consumer: str, queue: str, offset: int) -> State | None:
    after = group.start(config, state, consumer, queue)
    if after is None:
        return None
    c, q = config.consumers.index(consumer), config.service.queues.index(queue)
    return replace(after, position=changed(after.position, c, changed(after.position[c], q, offset)))


def _starts_at_the_end(config: Config, state: State, consumer: str, queue: str) -> State | None:
    q = config.service.queues.index(queue)
    return _starts_at(config, state, consumer, queue, len(state.service.queue[q]))


def _starts_at_zero(config: Config, state: State, consumer: str, queue: str) -> State | None:
    return _starts_at(config, state, consumer, queue, 0)


def _drops_the_cached(config: Config, state: State, consumer: str, queue: str) -> State | None:
    q = config.service.queues.index(queue)
    behind = min(group.start_offset(state, q) + 1, len(state.service.queue[q]))
    return _starts_at(config, state, consumer, queue, behind)


def _pulls_the_same_again(config: Config, state: State, consumer: str, queue: str) -> State | None:
    if any(due < 0 for queues in state.due for due in queues):
        return None
    after = group.deliver(config, state, consumer, queue)
    return after and replace(after, position=state.position)


def _pulls_beyond_the_end(config: Config, state: State, consumer: str, queue: str) -> State | None:
    c, q = config.consumers.index(consumer), config.service.queues.index(queue)
    after = group.deliver(config, state, consumer, queue)
    seen = state.service.seen[q]
    if after is not None or not state.position[c][q] == len(seen) == len(state.service.queue[q]):
        return after
    return replace(
        state, service=replace(state.service, seen=changed(state.service.seen, q, (*seen, "torn")))
    )


def _late_commit_wins(config: Config, state: State, consumer: str, queue: str) -> State | None:
    forgotten = replace(state, service=replace(state.service, committed=(-1,) * len(state.service.committed)))
    return group.commit_offset(config, forgotten, consumer, queue)


def _never_begins_again(config: Config, state: State, consumer: str, queue: str) -> State | None:
    offset = state.service.committed[config.service.queues.index(queue)]
    return None if offset else group.start(config, state, consumer, queue)


_group = partial(Mutant, group.MODEL, config=Config())

MUTANTS: Final[tuple[Mutant, ...]] = (
    _group("StartsAtTheEnd", "NoAckedLost", "Start", _starts_at_the_end),
    _group("PullsBeyondTheEnd", "NoPhantom", "Deliver", _pulls_beyond_the_end),
    _group("StartsAtZero", "DuplicatesExplained", "Start", _starts_at_zero),
    _group("PullsTheSameAgain", "DuplicatesExplained", "Deliver", _pulls_the_same_again),
    _group("DropsTheCached", "QueueOrder", "Start", _drops_the_cached),
    _group("LateCommitWins", "OffsetMonotone", "CommitOffset", _late_commit_wins),
    _group(
        "NeverBeginsAgain",
        "AckedDelivered",
        "Start",
        _never_begins_again,
        config=Config(consumers=("c1",)),
    ),
)
