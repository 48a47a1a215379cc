"""Broken variants of the delivery model; spec/tla/mutants explains each bug under the same name."""

from functools import partial
from typing import Final

from mqproof.reference import delivery
from mqproof.reference.delivery import Config, State, changed
from mqproof.reference.mutants.mutant import Mutant
from mqproof.reference.updates import replace


def _ack_before_store(config: Config, state: State, message: str) -> State | None:
    m = config.messages.index(message)
    return replace(state, answer=changed(state.answer, m, "acked")) if state.answer[m] == "waiting" else None


def _commit_of_the_pulled(config: Config, state: State, queue: str, offset: int) -> State | None:
    after = delivery.commit_offset(config, replace(state, seen=state.queue), queue, offset)
    return after and replace(after, seen=state.seen)


def _unsent_delivered(config: Config, state: State, queue: str, place: int) -> State | None:
    q = config.queues.index(queue)
    if place != len(state.queue[q]) + 1:
        return delivery.deliver(config, state, queue, place)
    after = delivery.deliver(
        config, replace(state, queue=((*state.queue[q], config.messages[-1]),)), queue, place
    )
    return after and replace(after, queue=state.queue)


def _batch_put_twice(config: Config, state: State, queue: str, message: str) -> State | None:
    after = delivery.store(config, state, queue, message)
    return after and replace(after, queue=tuple((*entries, entries[-1]) for entries in after.queue))


def _seen_before_safe(config: Config, state: State, queue: str, length: int) -> State | None:
    blind = replace(state, seen=((),) * len(state.seen))
    after = delivery.lose(config, blind, queue, length)
    return after and replace(after, seen=state.seen)


def _older_offsets_win(config: Config, state: State, queue: str, offset: int) -> State | None:
    after = delivery.roll_back(config, replace(state, serving=False), queue, offset)
    return after and replace(after, serving=state.serving)


def _last_never_found(config: Config, state: State, queue: str, place: int) -> State | None:
    last = len(state.queue[config.queues.index(queue)])
    return None if place == last else delivery.deliver(config, state, queue, place)


_delivery = partial(Mutant, delivery.MODEL, config=Config())

MUTANTS: Final[tuple[Mutant, ...]] = (
    _delivery("AckBeforeStore", "NoAckedLost", "Acknowledge", _ack_before_store),
    _delivery("CommitOfThePulled", "NoAckedLost", "CommitOffset", _commit_of_the_pulled),
    _delivery("UnsentDelivered", "NoPhantom", "Deliver", _unsent_delivered),
    _delivery("BatchPutTwice", "DuplicatesExplained", "Store", _batch_put_twice),
    _delivery("SeenBeforeSafe", "QueueOrder", "Lose", _seen_before_safe),
    _delivery("OlderOffsetsWin", "OffsetMonotone", "RollBack", _older_offsets_win),
    _delivery("LastNeverFound", "AckedDelivered", "Deliver", _last_never_found),
)
