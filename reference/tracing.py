"""Traces of sends and of calls of a listener, action for action as in spec/tla/Tracing.tla.

The order is the same: state, operations, traces, the end of the client, safety. Operations have names; what
is known of them is in tuples, in the order of the configuration: sends, then calls.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any, Final, NamedTuple

from mqproof.reference.liveness import FIRST, Obligations, leads_to, weak
from mqproof.reference.model import Action, Model, Parameters, by_name, each, named, once
from mqproof.reference.tlc_terms import configuration, operators
from mqproof.reference.updates import with_item

NONE: Final = "none"
ENDS: Final = ("good", "bad", "refused")


@dataclass(frozen=True)
class Config:
    sends: tuple[str, ...] = ("s1",)
    calls: tuple[str, ...] = ("c1",)
    """The calls of the listener."""
    waiting_max: int = 2
    """The most traces that wait."""
    topic_answers: bool = True
    """Whether a send of traces ends: with an answer of the trace topic, or by its time limit."""

    @property
    def operations(self) -> tuple[str, ...]:
        return self.sends + self.calls


def ends_of(config: Config, operation: str) -> tuple[str, ...]:
    """EndsOf: how an operation ends. Only a send is refused."""
    return ENDS if operation in config.sends else ENDS[:2]


# State


class Trace(NamedTuple):
    """What a client reports: that an operation began, or how it ended."""

    of: str
    says: str


Traces = frozenset[Trace]


class State(NamedTuple):
    """The state of the model. A named tuple, because the explorer copies and hashes states most often."""

    phase: str = "running"  # of the client: then "stopping", "stopped", "crashed"
    outcome: tuple[str, ...] = ()  # by operation: "new", "running", "lost", or one of ENDS
    result: tuple[str, ...] = ()  # by operation: the broker's answer or the listener's result, or NONE
    waiting: Traces = frozenset()
    batch: Traces = frozenset()  # the traces in the message that is being sent
    topic: Traces = frozenset()  # the traces in the trace topic
    sent: Traces = frozenset()  # the traces whose send succeeded
    dropped: int = 0  # the client's counter


def initial(config: Config) -> tuple[State, ...]:
    """Init: the one initial state."""
    count = len(config.operations)
    return (State(outcome=("new",) * count, result=(NONE,) * count),)


# Operations


def has_room(config: Config, state: State) -> bool:
    """HasRoom: whether another trace is kept."""
    return state.phase == "running" and len(state.waiting) < config.waiting_max


def put(config: Config, state: State, trace: Trace) -> State:
    """Put: keep a trace, or count it as dropped. This never waits."""
    if has_room(config, state):
        return state._replace(waiting=state.waiting | {trace})
    return state._replace(dropped=state.dropped + 1)


def begin(config: Config, state: State, operation: str) -> State | None:
    """Begin: the application sends, or the listener is called."""
    index = config.operations.index(operation)
    if state.phase != "running" or state.outcome[index] != "new":
        return None
    after = state._replace(outcome=with_item(state.outcome, index, "running"))
    return put(config, after, Trace(operation, "began")) if operation in config.calls else after


def end(config: Config, state: State, operation: str, how: str) -> State | None:
    """End: the operation ends, also while the client stops or after that."""
    index = config.operations.index(operation)
    if state.outcome[index] != "running" or how not in ends_of(config, operation):
        return None
    after = state._replace(
        outcome=with_item(state.outcome, index, how), result=with_item(state.result, index, how)
    )
    return after if how == "refused" else put(config, after, Trace(operation, how))


# Traces


def take(_config: Config, state: State) -> State | None:
    """Take: all traces that wait are sent in one message."""
    if state.batch or not state.waiting:
        return None
    return state._replace(batch=state.waiting, waiting=frozenset())


def store(_config: Config, state: State) -> State | None:
    """Store: the trace topic stores a batch."""
    return None if state.batch <= state.topic else state._replace(topic=state.topic | state.batch)


def settle(_config: Config, state: State, succeeds: bool) -> State | None:
    """Settle: the send of a batch ends; it succeeds, or it is refused, times out, or raises an error."""
    if not state.batch or (succeeds and not state.batch <= state.topic):
        return None
    if succeeds:
        return state._replace(sent=state.sent | state.batch, batch=frozenset())
    return state._replace(dropped=state.dropped + len(state.batch), batch=frozenset())


# The end of the client


def stop(_config: Config, state: State) -> State | None:
    """Stop: the client takes no more traces, and sends those that wait."""
    return state._replace(phase="stopping") if state.phase == "running" else None


def stopped(_config: Config, state: State) -> State | None:
    """Stopped: nothing waits, or the time limit is over. What is left is counted as dropped."""
    if state.phase != "stopping":
        return None
    dropped = state.dropped + len(state.waiting) + len(state.batch)
    return state._replace(phase="stopped", dropped=dropped, waiting=frozenset(), batch=frozenset())


def crash(_config: Config, state: State) -> State | None:
    """Crash: the process ends, with what was in its memory."""
    if state.phase == "crashed":
        return None
    outcome = tuple("lost" if each == "running" else each for each in state.outcome)
    return state._replace(
        phase="crashed", outcome=outcome, waiting=frozenset(), batch=frozenset(), sent=frozenset(), dropped=0
    )


# Actions


def _endings(config: Config) -> Iterable[Parameters]:
    return product(config.operations, ENDS)


def _results(_config: Config) -> tuple[Parameters, ...]:
    return ((False,), (True,))


ACTIONS: Final[dict[str, Action[Config, State]]] = by_name(
    Action("Begin", begin, each("operations")),
    Action("End", end, _endings),
    Action("Take", take, once),
    Action("Store", store, once),
    Action("Settle", settle, _results),
    Action("Stop", stop, once),
    Action("Stopped", stopped, once),
    Action("Crash", crash, once),
)


# Safety


def due(config: Config, state: State) -> Traces:
    """Due: what the applications saw, as traces."""
    by_operation = tuple(zip(config.operations, state.outcome, strict=True))
    began = {Trace(each, "began") for each, how in by_operation if each in config.calls and how != "new"}
    return frozenset(began | {Trace(each, how) for each, how in by_operation if how in ("good", "bad")})


def result_unchanged(_config: Config, state: State) -> bool:
    """TRACE-1 ResultUnchanged: an operation has its own result, whatever happens to its trace."""
    return all(r in (NONE, o) for r, o in zip(state.result, state.outcome, strict=True))


def traces_bounded(config: Config, state: State) -> bool:
    """TRACE-2 TracesBounded: the traces that wait are bounded."""
    return len(state.waiting) <= config.waiting_max


def trace_true(config: Config, state: State) -> bool:
    """TRACE-3 TraceTrue: a trace states what the application saw of an operation that happened."""
    return state.waiting | state.batch | state.topic <= due(config, state)


def dropped_counted(config: Config, state: State) -> bool:
    """TRACE-4 DroppedCounted: each trace that was not sent is counted."""
    if state.phase == "crashed":
        return True
    return state.dropped == len(due(config, state) - (state.waiting | state.batch | state.sent))


# Liveness


def _topic_answers(config: Config, _state: State, _succeeds: bool) -> bool:
    return config.topic_answers


FAIRNESS: Final = (
    weak("End", "End", each=FIRST),
    weak("Take", "Take"),
    weak("Settle", "Settle", where=_topic_answers),
)


def never_in_the_way(config: Config) -> Obligations[State]:
    """TRACE-5 NeverInTheWay: each operation ends, also if the trace topic never answers."""

    def runs(state: State, operation: str) -> bool:
        return state.outcome[config.operations.index(operation)] == "running"

    return leads_to(runs, lambda s, operation: not runs(s, operation), of=each("operations")(config))


def trace_settles(config: Config) -> Obligations[State]:
    """TRACE-6 TraceSettles: a trace that waits is in the end sent or counted, or its process ends."""

    def unsettled(state: State, trace: Trace) -> bool:
        return trace in state.waiting or trace in state.batch

    each = product(config.operations, ("began", "good", "bad")) if config.topic_answers else ()
    traces = tuple((Trace(*one),) for one in each)
    return leads_to(unsettled, lambda s, trace: not unsettled(s, trace), of=traces)


# The model in TLC's terms


def from_tla(config: Config, variables: Mapping[str, Any]) -> State:
    """Return the state that TLC prints."""

    def in_order(name: str) -> tuple[str, ...]:
        return tuple(variables[name][operation] for operation in config.operations)

    def traces(name: str) -> Traces:
        return frozenset(Trace(trace["of"], trace["says"]) for trace in variables[name])

    return State(
        phase=variables["phase"],
        outcome=in_order("outcome"),
        result=in_order("result"),
        waiting=traces("waiting"),
        batch=traces("batch"),
        topic=traces("topic"),
        sent=traces("sent"),
        dropped=variables["dropped"],
    )


MODEL: Final = Model(
    name="Tracing",
    initial=initial,
    actions=ACTIONS,
    invariants=named(result_unchanged, traces_bounded, trace_true, dropped_counted),
    fairness=FAIRNESS,
    liveness=named(never_in_the_way, trace_settles),
    from_constants=configuration(
        Config, sends="Sends", calls="Calls", waiting_max="WaitingMax", topic_answers="TopicAnswers"
    ),
    from_tla=from_tla,
    operator=operators(),
)
