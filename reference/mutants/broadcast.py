"""Broken variants of broadcast mode; spec/tla/mutants explains each bug under the same name."""

from functools import partial
from typing import Final

from mqproof.reference import broadcast
from mqproof.reference.broadcast import Config, State
from mqproof.reference.mutants.mutant import Mutant


def _cached_dropped(config: Config, state: State, member: str, queue: str) -> State | None:
    after = broadcast.pull(config, state, member, queue)
    return after and after._replace(held=state.held)


def _file_not_read(config: Config, state: State, member: str, queue: str) -> State | None:
    m, q = config.members.index(member), config.queues.index(queue)
    place = state.stored[q] + 1 if queue in state.old[m] else 1
    return broadcast.begin_at(config, state, member, queue, place)


def _new_queue_from_end(config: Config, state: State, member: str, queue: str) -> State | None:
    m, q = config.members.index(member), config.queues.index(queue)
    place = state.file[m][q] or state.stored[q] + 1
    return broadcast.begin_at(config, state, member, queue, place)


def _not_written_at_start(config: Config, state: State, member: str, queue: str) -> State | None:
    after = broadcast.begin(config, state, member, queue)
    return after and after._replace(file=state.file)


def _written(config: Config, state: State, member: str, queue: str, place: int) -> State | None:
    """Write another offset to the file."""
    m, q = config.members.index(member), config.queues.index(queue)
    if not state.next[m][q] or state.file[m][q] == place:
        return None
    return state._replace(file=broadcast.with_cell(state.file, m, q, place))


def _pulled_is_consumed(config: Config, state: State, member: str, queue: str) -> State | None:
    m, q = config.members.index(member), config.queues.index(queue)
    return _written(config, state, member, queue, state.next[m][q])


def _last_is_stored(config: Config, state: State, member: str, queue: str) -> State | None:
    m, q = config.members.index(member), config.queues.index(queue)
    place = max(state.got[m][q], default=state.file[m][q] - 1) + 1
    return _written(config, state, member, queue, place)


def _one_file_for_all(config: Config, state: State, member: str, queue: str) -> State | None:
    after = broadcast.persist(config, state, member, queue)
    if after is None:
        return None
    q, place = config.queues.index(queue), broadcast.offset(config, state, member, queue)
    file = after.file
    for m in range(len(config.members)):
        if file[m][q]:
            file = broadcast.with_cell(file, m, q, place)
    return after._replace(file=file)


def _queues_shared(config: Config, state: State, member: str, queue: str) -> State | None:
    q = config.queues.index(queue)
    read = any(places[q] for places in state.next)
    return None if read else broadcast.begin(config, state, member, queue)


_broadcast = partial(Mutant, broadcast.MODEL, invariant="BroadcastToAll")
_one = partial(_broadcast, config=Config())

MUTANTS: Final[tuple[Mutant, ...]] = (
    _one("CachedDropped", action="Pull", apply=_cached_dropped),
    _one("FileNotRead", action="Begin", apply=_file_not_read),
    _broadcast("LastIsStored", action="Persist", apply=_last_is_stored, config=Config(length_max=2)),
    _broadcast("NewQueueFromEnd", action="Begin", apply=_new_queue_from_end, config=Config(initial=())),
    _one("NotWrittenAtStart", action="Begin", apply=_not_written_at_start),
    _broadcast(
        "OneFileForAll", action="Persist", apply=_one_file_for_all, config=Config(members=("c1", "c2"))
    ),
    _one("PulledIsConsumed", action="Persist", apply=_pulled_is_consumed),
    _broadcast(
        "QueuesShared",
        invariant="EachGetsAll",
        action="Begin",
        apply=_queues_shared,
        config=Config(members=("c1", "c2")),
    ),
)
