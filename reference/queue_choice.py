"""How a producer chooses a queue, action for action as in spec/tla/QueueChoice.tla.

The order is the same: the list of queues, state, a send, concurrent events, safety. The set of brokers to
choose from and the next position of the round robin are functions of plain values; the actions only apply
them.
"""

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, product
from typing import Any, Final, NamedTuple

from mqproof.reference.liveness import Obligations, leads_to, weak
from mqproof.reference.model import Action, Model, Parameters, by_name, named, once
from mqproof.reference.tlc_terms import as_sets, configuration, operators
from mqproof.reference.updates import with_item

ORDER: Final = ("a", "b", "c", "d")
"""The brokers as clients sort them."""


@dataclass(frozen=True)
class Config:
    broker_count: int = 3
    queue_count: int = 1
    """The number of writable queues of each broker."""
    attempts_max: int = 3
    penalties: tuple[int, ...] = (0, 1)
    """The possible penalties of answers, in ticks; 0 for answers in good time."""
    isolation: int = 2
    """The penalty of a failed attempt, in ticks."""
    strategies: tuple[bool, ...] = (False, True)
    """The values of sendLatencyFaultEnable to explore."""

    # Used in every state, so computed once.

    @cached_property
    def brokers(self) -> tuple[str, ...]:
        return ORDER[: self.broker_count]

    @cached_property
    def each_penalty(self) -> tuple[Parameters, ...]:
        return tuple((ticks,) for ticks in self.penalties)

    @cached_property
    def each_broker_and_penalty(self) -> tuple[Parameters, ...]:
        return tuple(product(self.brokers, sorted({*self.penalties, self.isolation})))

    @cached_property
    def each_route(self) -> tuple[Parameters, ...]:
        sizes = range(self.broker_count + 1)
        return tuple((route,) for size in sizes for route in combinations(self.brokers, size))


# The list of queues


def broker_at(route: Sequence[str], queue_count: int, position: int) -> str:
    """BrokerAt: the broker of the queue at a position, from 0, of the list of a sorted route's queues."""
    return route[position // queue_count]


def wrap(broker_count: int, queue_count: int) -> int:
    """Wrap: a multiple of the length of every list."""
    return queue_count * (1, 2, 6, 12)[broker_count - 1]


# State


class State(NamedTuple):
    """The state of the model. A named tuple, because the explorer copies and hashes states most often."""

    strategy: bool  # sendLatencyFaultEnable; never changes
    route: tuple[str, ...]  # sorted: the brokers whose queues are writable
    counter: int  # the position of the round robin
    penalty: tuple[int, ...]  # by broker: ticks until it is available again
    tried: tuple[str, ...]  # the brokers of the attempts of the send in progress
    waiting: bool  # an attempt has not ended yet
    avoid_ticks: tuple[int, ...]  # history, by broker: ticks for which it must still be avoided


def initial(config: Config) -> tuple[State, ...]:
    """Init: one state for each strategy and start of the counter."""
    zero = (0,) * config.broker_count
    starts = range(wrap(config.broker_count, config.queue_count))
    return tuple(
        State(strategy, config.brokers, start, zero, (), False, zero)
        for strategy in config.strategies
        for start in starts
    )


# A send


def eligible(route: Iterable[str], resting: Set[str], strategy: bool) -> frozenset[str]:
    """Eligible: with the strategy on and a broker available, only the available ones."""
    all_brokers = frozenset(route)
    available = all_brokers - resting
    return available if strategy and available else all_brokers


def wanted(candidates: Set[str], last: str | None) -> frozenset[str]:
    """Wanted: a retry goes to another broker than `last` if it can; `last` is None at the first attempt."""
    return frozenset(candidates - {last}) or frozenset(candidates)


def passed(route: Sequence[str], queue_count: int, counter: int, brokers: Set[str]) -> int:
    """Passed: how many queues the round robin skips before it reaches a queue of one of these brokers.

    `brokers` contains at least one of the sorted `route`. Raises StopIteration otherwise.
    """
    size = len(route) * queue_count
    return next(k for k in range(size) if broker_at(route, queue_count, (counter + k) % size) in brokers)


def _resting(config: Config, ticks: tuple[int, ...]) -> frozenset[str]:
    return frozenset(b for b, left in zip(config.brokers, ticks, strict=True) if left)


def attempt(config: Config, state: State) -> State | None:
    """Attempt: the first one, or the next one after a failure."""
    route, tried = state.route, state.tried
    if state.waiting or not route or len(tried) >= config.attempts_max:
        return None
    candidates = eligible(route, _resting(config, state.penalty), state.strategy)
    brokers = wanted(candidates, tried[-1] if tried else None)
    position = state.counter + passed(route, config.queue_count, state.counter, brokers)
    broker = broker_at(route, config.queue_count, position % (len(route) * config.queue_count))
    return state._replace(
        tried=(*tried, broker),
        counter=(position + 1) % wrap(config.broker_count, config.queue_count),
        waiting=True,
    )


def _penalised(config: Config, state: State, broker: str, ticks: int) -> State:
    """Penalise: penalties are recorded only if the latency fault strategy is on."""
    if not state.strategy:
        return state
    b = config.brokers.index(broker)
    return state._replace(
        penalty=with_item(state.penalty, b, ticks), avoid_ticks=with_item(state.avoid_ticks, b, ticks)
    )


def answered(config: Config, state: State, ticks: int) -> State | None:
    """Answered: the answer ends the send; its duration determines the penalty."""
    if not state.waiting:
        return None
    return _penalised(config, state, state.tried[-1], ticks)._replace(tried=(), waiting=False)


def failed(config: Config, state: State) -> State | None:
    """Failed: no answer, or one that is retried; after the last attempt the send has failed."""
    if not state.waiting:
        return None
    after = _penalised(config, state, state.tried[-1], config.isolation)
    tried = () if len(state.tried) == config.attempts_max else state.tried
    return after._replace(tried=tried, waiting=False)


# Concurrent events


def elsewhere(config: Config, state: State, broker: str, ticks: int) -> State | None:
    """Elsewhere: an attempt of another thread has ended."""
    if not state.strategy or broker not in state.route:
        return None
    if state.penalty[config.brokers.index(broker)] == ticks:
        return None
    return _penalised(config, state, broker, ticks)


def route_changes(_config: Config, state: State, brokers: tuple[str, ...]) -> State | None:
    """RouteChanges: a poll returned a different route; it may be empty."""
    return None if state.tried or brokers == state.route else state._replace(route=brokers)


def tick(_config: Config, state: State) -> State | None:
    """Tick: all penalties shrink by one tick."""
    if state.tried or not (any(state.penalty) or any(state.avoid_ticks)):
        return None
    return state._replace(
        penalty=tuple(max(ticks - 1, 0) for ticks in state.penalty),
        avoid_ticks=tuple(max(ticks - 1, 0) for ticks in state.avoid_ticks),
    )


# Actions


ACTIONS: Final[dict[str, Action[Config, State]]] = by_name(
    Action("Attempt", attempt, once),
    Action("Answered", answered, lambda c: c.each_penalty),
    Action("Failed", failed, once),
    Action("Elsewhere", elsewhere, lambda c: c.each_broker_and_penalty),
    Action("RouteChanges", route_changes, lambda c: c.each_route),
    Action("Tick", tick, once),
)


# Safety


def _choice(config: Config, state: State) -> frozenset[str]:
    """Choice: the brokers that the strategy allows; those that are not avoided, if there are any."""
    fresh = {b for b in state.route if not state.avoid_ticks[config.brokers.index(b)]}
    return frozenset(fresh) if state.strategy and fresh else frozenset(state.route)


def retry_avoids_last_broker(config: Config, before: State, _action: str, after: State) -> bool:
    """ROUTE-5 RetryAvoidsLastBroker: a retry uses another broker if more than the last one may be chosen."""
    if before.waiting or not after.waiting or not before.tried or after.tried[-1] != before.tried[-1]:
        return True
    return _choice(config, before) == {before.tried[-1]}


def faulty_broker_rested(config: Config, before: State, _action: str, after: State) -> bool:
    """ROUTE-6 FaultyBrokerRested: a penalised broker is chosen only if all others are penalised too."""
    if before.waiting or not after.waiting or not before.strategy:
        return True
    rested = _resting(config, before.avoid_ticks)
    return after.tried[-1] not in rested or rested >= set(before.route)


# Liveness


FAIRNESS: Final = (
    weak("End", "Failed", "Answered"),
    weak("Retry", "Attempt", where=lambda _config, state: state.tried != ()),
)


def send_ends(_config: Config) -> Obligations[State]:
    """SendEnds: a send in progress ends."""
    return leads_to(lambda s: s.tried != (), lambda s: s.tried == ())


# The model in TLC's terms


def from_tla(config: Config, variables: Mapping[str, Any]) -> State:
    """Return the state that TLC prints."""
    return State(
        strategy=variables["strategy"],
        route=tuple(sorted(variables["route"])),
        counter=variables["counter"],
        penalty=tuple(variables["penalty"][b] for b in config.brokers),
        tried=variables["tried"],
        waiting=variables["waiting"],
        avoid_ticks=tuple(variables["avoidTicks"][b] for b in config.brokers),
    )


MODEL: Final = Model(
    name="QueueChoice",
    initial=initial,
    actions=ACTIONS,
    step_invariants=named(retry_avoids_last_broker, faulty_broker_rested),
    fairness=FAIRNESS,
    liveness=named(send_ends),
    from_constants=configuration(
        Config,
        broker_count="BrokerCount",
        queue_count="QueueCount",
        attempts_max="AttemptsMax",
        penalties="Penalties",
        isolation="Isolation",
        strategies="Strategies",
    ),
    from_tla=from_tla,
    operator=operators(arguments=as_sets),
)
