"""How a consumer group reads the queues of Delivery, action for action as in spec/tla/Group.tla.

The order is the same: state, due deliveries, producers and broker, the life of an assignment, offsets that
go back, safety. The actions of producers and broker are those of reference/delivery.py.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any, Final

from mqproof.reference import delivery
from mqproof.reference.delivery import PASSED, changed
from mqproof.reference.liveness import PAIR, Finite, Obligations, leads_to, strong, weak
from mqproof.reference.model import Action, Model, Parameters, by_name, each, named, once
from mqproof.reference.tlc_terms import operators
from mqproof.reference.updates import replace

IDLE: Final = -1
"""The position of a member that does not read the queue."""


@dataclass(frozen=True, slots=True)
class Config:
    service: delivery.Config = field(default_factory=delivery.Config)
    consumers: tuple[str, ...] = ("c1", "c2")


# State


@dataclass(frozen=True, slots=True)
class State:
    """The state of the model. Tuples by queue and by member are in the order of the configuration."""

    service: delivery.State  # the variables of Delivery
    assigned: tuple[str, ...]  # by queue: the member it is assigned to
    position: tuple[tuple[int, ...], ...]  # by member and queue: the number of messages read, or IDLE
    due: tuple[tuple[int, ...], ...]  # history, by queue and place: justified deliveries still to come


def initial(config: Config) -> tuple[State, ...]:
    """Init: one state for each initial assignment of the queues."""
    queues = len(config.service.queues)
    return tuple(
        State(service, assigned, ((IDLE,) * queues,) * len(config.consumers), ((),) * queues)
        for service in delivery.initial(config.service)
        for assigned in product(config.consumers, repeat=queues)
    )


# Due deliveries


def make_due(state: State, service: delivery.State) -> State:
    """MakeDue: one delivery of each stored message is due."""
    due = tuple(
        (*due[: len(queue)], *(1,) * (len(queue) - len(due)))
        for due, queue in zip(state.due, service.queue, strict=True)
    )
    return replace(state, service=service, due=due)


def again(state: State, q: int, offset: int) -> tuple[tuple[int, ...], ...]:
    """Again: a cause for redelivery; from this offset on, messages of queue number `q` may come once more."""
    due = state.due[q]
    return changed(state.due, q, (*due[:offset], *(max(o, 1) for o in due[offset:])))


# Producers and broker, as in Delivery


def _served(act: Callable[..., delivery.State | None], *, owing: bool = False) -> Callable[..., State | None]:
    """Return an action of Delivery as one of Group."""

    def action(config: Config, state: State, *parameters: Any) -> State | None:
        service = act(config.service, state.service, *parameters)
        if service is None:
            return None
        return make_due(state, service) if owing else replace(state, service=service)

    return action


send: Final = _served(delivery.send)
retry: Final = _served(delivery.retry)
store: Final = _served(delivery.store, owing=True)
acknowledge: Final = _served(delivery.acknowledge)
fail: Final = _served(delivery.fail)
lose: Final = _served(delivery.lose, owing=True)
crash: Final = _served(delivery.crash)
roll_back: Final = _served(delivery.roll_back)
withdraw: Final = _served(delivery.withdraw)
restart: Final = _served(delivery.restart)


# The life of an assignment


def _moved(state: State, c: int, q: int, position: int) -> tuple[tuple[int, ...], ...]:
    return changed(state.position, c, changed(state.position[c], q, position))


def rebalance(config: Config, state: State, queue: str, consumer: str) -> State | None:
    """Rebalance: the queue is reassigned; its previous member discovers it later."""
    q, c = config.service.queues.index(queue), config.consumers.index(consumer)
    if state.assigned[q] == consumer:
        return None
    position = state.position[c][q]
    due = state.due if position == IDLE else again(state, q, position)
    return replace(state, assigned=changed(state.assigned, q, consumer), due=due)


def start_offset(state: State, q: int) -> int:
    """StartOffset: the offset at which a member begins with a newly assigned queue."""
    return state.service.committed[q]


def start(config: Config, state: State, consumer: str, queue: str) -> State | None:
    """Start: a member starts to read a queue that is assigned to it."""
    c, q = config.consumers.index(consumer), config.service.queues.index(queue)
    if not state.service.serving or state.assigned[q] != consumer or state.position[c][q] != IDLE:
        return None
    return replace(
        state,
        position=_moved(state, c, q, start_offset(state, q)),
        due=again(state, q, state.service.committed[q]),
    )


def with_delivery(seen: tuple[str, ...], place: int, message: str) -> tuple[str, ...]:
    """WithDelivery: return the received messages with one more. A place beyond their end leaves a gap."""
    gap = (PASSED,) * (place - 1 - len(seen))
    return (*seen[: place - 1], *gap, message, *seen[place:])


def deliver(config: Config, state: State, consumer: str, queue: str) -> State | None:
    """Deliver: a delivery to a member that no longer owns the queue is an additional one."""
    c, q = config.consumers.index(consumer), config.service.queues.index(queue)
    place = state.position[c][q] + 1
    service = state.service
    if not service.serving or place == IDLE + 1 or place > len(service.queue[q]):
        return None
    seen = with_delivery(service.seen[q], place, service.queue[q][place - 1])
    due = state.due[q]
    return replace(
        state,
        service=replace(service, seen=changed(service.seen, q, seen)),
        position=_moved(state, c, q, place),
        due=changed(state.due, q, changed(due, place - 1, due[place - 1] - 1))
        if state.assigned[q] == consumer
        else state.due,
    )


def commit_offset(config: Config, state: State, consumer: str, queue: str) -> State | None:
    """CommitOffset: the broker accepts an offset ahead of its own from any member that reads the queue."""
    c, q = config.consumers.index(consumer), config.service.queues.index(queue)
    position = state.position[c][q]
    if not state.service.serving or position <= state.service.committed[q]:
        return None
    return replace(
        state,
        service=replace(state.service, committed=changed(state.service.committed, q, position)),
    )


def release(config: Config, state: State, consumer: str, queue: str) -> State | None:
    """Release: a member discovers that the queue was reassigned, and stops reading it."""
    c, q = config.consumers.index(consumer), config.service.queues.index(queue)
    if state.assigned[q] == consumer or state.position[c][q] == IDLE:
        return None
    return replace(state, position=_moved(state, c, q, IDLE))


def consumer_crash(config: Config, state: State, consumer: str) -> State | None:
    """ConsumerCrash: a member loses everything except what it committed to the broker."""
    c = config.consumers.index(consumer)
    idle = (IDLE,) * len(config.service.queues)
    return None if state.position[c] == idle else replace(state, position=changed(state.position, c, idle))


# Offsets that go back


def go_back(state: State, q: int, offset: int) -> State:
    """GoBack: the group and its offset go back; no member stays beyond this offset."""
    return replace(
        state,
        service=delivery.go_back(state.service, q, offset),
        position=tuple(changed(position, q, min(position[q], offset)) for position in state.position),
    )


def reset(config: Config, state: State, queue: str, offset: int) -> State | None:
    """Reset: an operator moves the group back."""
    q = config.service.queues.index(queue)
    if not state.service.serving or offset >= state.service.committed[q]:
        return None
    return replace(go_back(state, q, offset), due=again(state, q, offset))


def correct_offset(config: Config, state: State, queue: str) -> State | None:
    """CorrectOffset: a member requests an offset beyond the end, and the broker corrects it."""
    q = config.service.queues.index(queue)
    end = len(state.service.queue[q])
    if not state.service.serving or all(position[q] <= end for position in state.position):
        return None
    return go_back(state, q, end)


# Actions


def _each_reader(config: Config) -> Iterable[Parameters]:
    return product(config.consumers, config.service.queues)


def _each_offset(config: Config) -> Iterable[Parameters]:
    return product(config.service.queues, range(config.service.longest))


ACTIONS: Final = by_name(
    Action("Send", send, each("service.messages")),
    Action("Retry", retry, each("service.messages")),
    Action("Store", store, lambda c: product(c.service.queues, c.service.messages)),
    Action("Acknowledge", acknowledge, each("service.messages")),
    Action("Fail", fail, each("service.messages")),
    Action("Lose", lose, _each_offset),
    Action("Crash", crash, once),
    Action("RollBack", roll_back, _each_offset),
    Action("Withdraw", withdraw, once),
    Action("Restart", restart, once),
    Action("Rebalance", rebalance, lambda c: product(c.service.queues, c.consumers)),
    Action("Start", start, _each_reader),
    Action("Deliver", deliver, _each_reader),
    Action("CommitOffset", commit_offset, _each_reader),
    Action("Release", release, _each_reader),
    Action("ConsumerCrash", consumer_crash, each("consumers")),
    Action("Reset", reset, _each_offset),
    Action("CorrectOffset", correct_offset, each("service.queues")),
)


# Safety


def no_acked_lost(config: Config, state: State) -> bool:
    """DELIV-1 NoAckedLost, as in Delivery."""
    return delivery.no_acked_lost(config.service, state.service)


def no_phantom(config: Config, state: State) -> bool:
    """DELIV-2 NoPhantom, as in Delivery."""
    return delivery.no_phantom(config.service, state.service)


def duplicates_explained(config: Config, state: State) -> bool:
    """DELIV-3 DuplicatesExplained: no delivery without a cause, and no copy without a send."""
    return all(min(due, default=0) >= 0 for due in state.due) and delivery.duplicates_explained(
        config.service, state.service
    )


def queue_order(config: Config, state: State) -> bool:
    """DELIV-4 QueueOrder, as in Delivery."""
    return delivery.queue_order(config.service, state.service)


def offset_monotone(config: Config, before: State, action: str, after: State) -> bool:
    """DELIV-5 OffsetMonotone, as in Delivery."""
    return delivery.offset_monotone(config.service, before.service, action, after.service)


# Liveness


def _offset_goes_back(_config: Config, before: State, _action: str, after: State) -> bool:
    pairs = zip(before.service.committed, after.service.committed, strict=True)
    return any(new < old for old, new in pairs)


FAIRNESS: Final = (
    weak("Restart", "Restart"),
    strong("Start", "Start", each=PAIR),
    strong("Deliver", "Deliver", each=PAIR),
    strong("Commit", "CommitOffset", each=PAIR),
    Finite("SettledOffsets", _offset_goes_back),
)


def acked_delivered(config: Config) -> Obligations[State]:
    """DELIV-12 AckedDelivered, as Delivery states it."""
    messages = config.service.messages
    return leads_to(
        lambda s, m: s.service.answer[messages.index(m)] == "acked" and s.service.promise,
        lambda s, m: any(m in seen for seen in s.service.seen) or not s.service.promise,
        of=each("service.messages")(config),
    )


# The model in TLC's terms


def from_constants(constants: Mapping[str, Any]) -> Config:
    """Return the configuration that TLC's constants give; a set becomes a sorted tuple."""
    return Config(delivery.MODEL.from_constants(constants), tuple(sorted(constants["Consumers"])))


def from_tla(config: Config, variables: Mapping[str, Any]) -> State:
    """Return the state that TLC prints: records and functions are mappings, sequences are tuples."""
    queues = config.service.queues
    return State(
        service=delivery.from_tla(config.service, variables),
        assigned=tuple(variables["assigned"][q] for q in queues),
        position=tuple(tuple(variables["position"][c][q] for q in queues) for c in config.consumers),
        due=tuple(variables["due"][q] for q in queues),
    )


MODEL: Final = Model(
    name="Group",
    initial=initial,
    actions=ACTIONS,
    invariants=named(no_acked_lost, no_phantom, duplicates_explained, queue_order),
    step_invariants=named(offset_monotone),
    fairness=FAIRNESS,
    liveness=named(acked_delivered),
    from_constants=from_constants,
    from_tla=from_tla,
    operator=operators(("Retry", "Store", "Lose", "Crash", "RollBack", "Withdraw")),
)
