"""The delivery guarantees for users, action for action as in spec/tla/Delivery.tla.

The bounds are those of MCDelivery.tla.

The order is the same: state, producers and storage, the group, faults, safety. Store and Fault take the small
steps that MCDelivery tries. Places in a queue count from 1, as in TLA+; offsets count from 0.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any, Final

from mqproof.reference.liveness import FIRST, Finite, Obligations, leads_to, strong, weak
from mqproof.reference.model import Action, Model, Parameters, by_name, each, named, once
from mqproof.reference.tlc_terms import configuration, operators
from mqproof.reference.updates import replace

PASSED: Final = "passed"
"""Marks an offset that the group passed without receiving a message."""


@dataclass(frozen=True, slots=True)
class Config:
    messages: tuple[str, ...] = ("m1", "m2")
    queues: tuple[str, ...] = ("q0",)
    sends_max: int = 1
    """The maximum number of sends of one message."""

    @property
    def longest(self) -> int:
        """Longest: an upper bound of the length of a queue."""
        return self.sends_max * len(self.messages)


# State


@dataclass(frozen=True, slots=True)
class State:
    """The state of the model. Tuples by queue and by message are in the order of the configuration."""

    answer: tuple[str, ...]  # by message: unsent | waiting | acked | unknown
    sends: tuple[int, ...]  # by message
    queue: tuple[tuple[str, ...], ...]  # by queue: the stored messages, in order
    seen: tuple[tuple[str, ...], ...]  # by queue and offset: the message the group received there last
    committed: tuple[int, ...]  # by queue: the group's offset as the broker knows it
    promise: bool  # no fault exceeded what the configuration guarantees against
    serving: bool  # False from a fault that erases the broker's memory until the broker is up again


def initial(config: Config) -> tuple[State, ...]:
    """Init: the one initial state."""
    none: tuple[tuple[str, ...], ...] = ((),) * len(config.queues)
    return (
        State(
            answer=("unsent",) * len(config.messages),
            sends=(0,) * len(config.messages),
            queue=none,
            seen=none,
            committed=(0,) * len(config.queues),
            promise=True,
            serving=True,
        ),
    )


def changed(values: tuple[Any, ...], index: int, value: Any) -> tuple[Any, ...]:
    """Return the tuple with one value changed, as with TLA+'s EXCEPT."""
    return (*values[:index], value, *values[index + 1 :])


# Producers and storage


def copies(state: State, message: str) -> int:
    """Copies: the number of places in the queues that hold the message."""
    return sum(queue.count(message) for queue in state.queue)


def _send_again(state: State, m: int) -> State:
    return replace(
        state, answer=changed(state.answer, m, "waiting"), sends=changed(state.sends, m, state.sends[m] + 1)
    )


def send(config: Config, state: State, message: str) -> State | None:
    """Send: a producer sends a message for the first time."""
    m = config.messages.index(message)
    return _send_again(state, m) if state.answer[m] == "unsent" else None


def retry(config: Config, state: State, message: str) -> State | None:
    """Retry: a producer that does not know the fate of its message sends it once more."""
    m = config.messages.index(message)
    if state.answer[m] != "unknown" or state.sends[m] >= config.sends_max:
        return None
    return _send_again(state, m)


def store(config: Config, state: State, queue: str, message: str) -> State | None:
    """Store: a message is appended to a queue, but not more often than it was sent.

    It may be sent in this step.
    """
    m, q = config.messages.index(message), config.queues.index(queue)
    sent = _send_again(state, m) if state.answer[m] == "unsent" else state
    if not state.serving or copies(state, message) >= sent.sends[m]:
        return None
    return replace(sent, queue=changed(state.queue, q, (*state.queue[q], message)))


def acknowledge(config: Config, state: State, message: str) -> State | None:
    """Acknowledge: a stored message is acknowledged."""
    m = config.messages.index(message)
    if not state.serving or state.answer[m] != "waiting":
        return None
    if not any(message in queue for queue in state.queue):
        return None
    return replace(state, answer=changed(state.answer, m, "acked"))


def fail(config: Config, state: State, message: str) -> State | None:
    """Fail: no answer in time; the message may be stored, now or later."""
    m = config.messages.index(message)
    return (
        replace(state, answer=changed(state.answer, m, "unknown")) if state.answer[m] == "waiting" else None
    )


# The group


def deliver(config: Config, state: State, queue: str, place: int) -> State | None:
    """Deliver: the group receives the next message of the queue, or an earlier one again."""
    q = config.queues.index(queue)
    entries, seen = state.queue[q], state.seen[q]
    if not state.serving or place > len(entries) or place > len(seen) + 1:
        return None
    delivered = (*seen[: place - 1], entries[place - 1], *seen[place:])
    return state if delivered == seen else replace(state, seen=changed(state.seen, q, delivered))


def commit_offset(config: Config, state: State, queue: str, offset: int) -> State | None:
    """CommitOffset: the group commits an offset; it is never beyond the messages it received."""
    q = config.queues.index(queue)
    if not state.serving or not state.committed[q] < offset <= len(state.seen[q]):
        return None
    return replace(state, committed=changed(state.committed, q, offset))


def go_back(state: State, q: int, offset: int) -> State:
    """GoBack: the group goes back to an offset, and its committed offset too."""
    return replace(
        state,
        seen=changed(state.seen, q, state.seen[q][:offset]),
        committed=changed(state.committed, q, offset),
    )


def reset(config: Config, state: State, queue: str, offset: int) -> State | None:
    """Reset: an operator moves the group back."""
    q = config.queues.index(queue)
    return go_back(state, q, offset) if state.serving and offset < state.committed[q] else None


def correct_offset(config: Config, state: State, queue: str, offset: int) -> State | None:
    """CorrectOffset: the group is beyond the end of a queue that lost its end, and goes back."""
    q = config.queues.index(queue)
    if state.promise or not state.serving or offset > len(state.queue[q]) or offset >= len(state.seen[q]):
        return None
    return go_back(state, q, offset)


# Faults


def keeps(config: Config, state: State) -> bool:
    """Keeps: no acknowledged or received message is missing from the state's queues."""
    stored = {message for queue in state.queue for message in queue}
    return all(
        message in stored
        for message, answer in zip(config.messages, state.answer, strict=True)
        if answer == "acked"
    ) and all(len(seen) <= len(queue) for seen, queue in zip(state.seen, state.queue, strict=True))


def _fault(config: Config, after: State) -> State | None:
    """Fault: while the promise holds, no acknowledged or received message is lost."""
    return after if not after.promise or keeps(config, after) else None


def lose(config: Config, state: State, queue: str, length: int) -> State | None:
    """Lose: a queue loses its end."""
    q = config.queues.index(queue)
    if length >= len(state.queue[q]):
        return None
    return _fault(config, replace(state, queue=changed(state.queue, q, state.queue[q][:length])))


def crash(_config: Config, state: State) -> State | None:
    """Crash: the broker stops."""
    return replace(state, serving=False) if state.serving else None


def roll_back(config: Config, state: State, queue: str, offset: int) -> State | None:
    """RollBack: the broker restores an older offset from its disk."""
    q = config.queues.index(queue)
    if state.serving or offset >= state.committed[q]:
        return None
    return _fault(config, replace(state, committed=changed(state.committed, q, offset)))


def withdraw(_config: Config, state: State) -> State | None:
    """Withdraw: a fault beyond the guarantee ends the promise."""
    return replace(state, promise=False) if state.promise else None


def restart(_config: Config, state: State) -> State | None:
    """Restart: the end of a fault."""
    return None if state.serving else replace(state, serving=True)


# Actions


def _each_offset(config: Config) -> Iterable[Parameters]:
    return product(config.queues, range(config.longest + 1))


ACTIONS: Final = by_name(
    Action("Send", send, each("messages")),
    Action("Retry", retry, each("messages")),
    Action("Store", store, lambda c: product(c.queues, c.messages)),
    Action("Acknowledge", acknowledge, each("messages")),
    Action("Fail", fail, each("messages")),
    Action("Deliver", deliver, lambda c: product(c.queues, range(1, c.longest + 1))),
    Action("CommitOffset", commit_offset, _each_offset),
    Action("Reset", reset, _each_offset),
    Action("CorrectOffset", correct_offset, _each_offset),
    Action("Lose", lose, _each_offset),
    Action("Crash", crash, once),
    Action("RollBack", roll_back, _each_offset),
    Action("Withdraw", withdraw, once),
    Action("Restart", restart, once),
)


# Safety


def no_acked_lost(config: Config, state: State) -> bool:
    """DELIV-1 NoAckedLost: the message is stored, and neither the group nor its offset has passed it."""
    if not state.promise:
        return True
    return all(
        any(
            entry == message and (i >= max(committed, len(seen)) or (i < len(seen) and seen[i] == message))
            for queue, seen, committed in zip(state.queue, state.seen, state.committed, strict=True)
            for i, entry in enumerate(queue)
        )
        for message, answer in zip(config.messages, state.answer, strict=True)
        if answer == "acked"
    )


def no_phantom(config: Config, state: State) -> bool:
    """DELIV-2 NoPhantom: the group receives only messages that were sent."""
    known = {m for m, sends in zip(config.messages, state.sends, strict=True) if sends} | {PASSED}
    return all(known.issuperset(seen) for seen in state.seen)


def duplicates_explained(config: Config, state: State) -> bool:
    """DELIV-3 DuplicatesExplained, the producer's half: stored no more often than sent."""
    return all(copies(state, m) <= sends for m, sends in zip(config.messages, state.sends, strict=True))


def queue_order(_config: Config, state: State) -> bool:
    """DELIV-4 QueueOrder: the messages that the group received are the queue's, in the queue's order."""
    return not state.promise or all(
        queue[: len(seen)] == seen for queue, seen in zip(state.queue, state.seen, strict=True)
    )


def offset_monotone(_config: Config, before: State, _action: str, after: State) -> bool:
    """DELIV-5 OffsetMonotone: offsets grow while a broker serves, unless the group itself is moved back."""
    if not after.serving or before.committed == after.committed:
        return True
    return all(
        b <= a or len(seen) <= a
        for b, a, seen in zip(before.committed, after.committed, after.seen, strict=True)
    )


# Liveness


FAIRNESS: Final = (
    strong(
        "Deliver",
        "Deliver",
        each=FIRST,
        where=lambda c, s, queue, place: place == len(s.seen[c.queues.index(queue)]) + 1,
    ),
    weak("Restart", "Restart"),
    Finite(
        "EndOfResets",
        lambda _c, s, _action, after: any(len(b) < len(a) for a, b in zip(s.seen, after.seen, strict=True)),
    ),
)


def acked_delivered(config: Config) -> Obligations[State]:
    """DELIV-12 AckedDelivered: an acknowledged message is eventually delivered, while it is promised."""
    return leads_to(
        lambda s, m: s.answer[config.messages.index(m)] == "acked" and s.promise,
        lambda s, m: any(m in seen for seen in s.seen) or not s.promise,
        of=each("messages")(config),
    )


# The model in TLC's terms


def from_tla(config: Config, variables: Mapping[str, Any]) -> State:
    """Return the state that TLC prints: records and functions are mappings, sequences are tuples."""

    def by_message(name: str) -> tuple[Any, ...]:
        return tuple(variables[name][m] for m in config.messages)

    def by_queue(name: str) -> tuple[Any, ...]:
        return tuple(variables[name][q] for q in config.queues)

    return State(
        answer=by_message("answer"),
        sends=by_message("sends"),
        queue=by_queue("queue"),
        seen=by_queue("seen"),
        committed=by_queue("committed"),
        promise=variables["promise"],
        serving=variables["serving"],
    )


MODEL: Final = Model(
    name="Delivery",
    initial=initial,
    actions=ACTIONS,
    invariants=named(no_acked_lost, no_phantom, duplicates_explained, queue_order),
    step_invariants=named(offset_monotone),
    fairness=FAIRNESS,
    liveness=named(acked_delivered),
    from_constants=configuration(Config, messages="Messages", queues="Queues", sends_max="MaxSends"),
    from_tla=from_tla,
    operator=operators(("Retry", "Store")),
)
