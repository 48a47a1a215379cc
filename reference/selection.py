"""Messages that an expression selects, action for action as in spec/tla/Selection.tla.

The order is the same: state, filters, the queue and subscriptions, pulls, safety. Places in the queue count
from 1, as in TLA+. An expression is the set of tags that it selects; the set of all tags is `*`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from mqproof.reference.liveness import Obligations, leads_to, strong, weak
from mqproof.reference.model import Action, Model, Parameters, by_name, each, named, once
from mqproof.reference.tlc_terms import configuration, operators

Expression = frozenset[str]
Places = frozenset[int]


@dataclass(frozen=True)
class Config:
    tags: tuple[str, ...] = ("a", "b")
    """The tags of messages; the empty text is no tag."""
    colliding: tuple[str, ...] = ("a", "b")
    """The tags that have one hash code in common."""
    expressions: tuple[Expression, ...] = (frozenset({"a"}), frozenset({"b"}))
    batch_max: int = 1
    """The most messages in a response."""
    length_max: int = 2
    """The most messages in the queue."""


# State


class Pull(NamedTuple):
    """A pull in progress: the place of its first message, 0 for none, and its expression."""

    start: int = 0
    by: Expression = frozenset()


class Answer(NamedTuple):
    """The broker's answer: the next place, 0 for none, and the places of the messages in it."""

    next: int = 0
    found: Places = frozenset()


NO_PULL: Final = Pull()
NO_ANSWER: Final = Answer()


class State(NamedTuple):
    """The state of the model. A named tuple, because the explorer copies and hashes states most often."""

    wanted: Expression  # the member's expression
    queue: tuple[str, ...] = ()  # the tags of the messages in the queue
    position: int = 0  # the number of messages that the member has passed
    pull: Pull = NO_PULL
    answer: Answer = NO_ANSWER
    received: Places = frozenset()  # the messages that the listener received
    judged: tuple[Expression, ...] = ()  # history: by place, the expression of the pull that passed it


def initial(config: Config) -> tuple[State, ...]:
    """Init: one initial state for each expression."""
    return tuple(State(expression) for expression in config.expressions)


# Filters


def same_hash(config: Config, tag: str, other: str) -> bool:
    """SameHash: whether two tags have one hash code."""
    return tag == other or {tag, other} <= set(config.colliding)


def passes(config: Config, tag: str, expression: Expression) -> bool:
    """Passes: whether the broker passes a message, which it decides by hash codes."""
    if expression == frozenset(config.tags):
        return True
    return any(same_hash(config, tag, other) for other in expression)


# The queue and subscriptions


def store(config: Config, state: State, tag: str) -> State | None:
    """Store: a message with this tag arrives."""
    return state._replace(queue=(*state.queue, tag)) if len(state.queue) < config.length_max else None


def subscribe(_config: Config, state: State, expression: Expression) -> State | None:
    """Subscribe: the application changes the expression."""
    return state._replace(wanted=expression) if expression != state.wanted else None


# Pulls


def begin_pull(_config: Config, state: State) -> State | None:
    """Pull: the member pulls with its present expression."""
    if state.pull != NO_PULL:
        return None
    return state._replace(pull=Pull(state.position + 1, state.wanted))


def found(config: Config, state: State, last: int) -> Places:
    """Found: the messages that pass, up to a place."""
    pull = state.pull
    return frozenset(
        place for place in range(pull.start, last + 1) if passes(config, state.queue[place - 1], pull.by)
    )


def give_answer(config: Config, state: State, last: int) -> State | None:
    """Answer: the broker examines the messages up to a place; it stops when the response is full."""
    if state.pull == NO_PULL or state.answer != NO_ANSWER:
        return None
    if not state.pull.start <= last <= len(state.queue):
        return None
    places = found(config, state, last)
    return state._replace(answer=Answer(last + 1, places)) if len(places) <= config.batch_max else None


def taken(state: State) -> Places:
    """Taken: the messages of the answer that the listener receives. The member compares the tags."""
    return frozenset(place for place in state.answer.found if state.queue[place - 1] in state.pull.by)


def receive(_config: Config, state: State) -> State | None:
    """Receive: the member advances with the answer."""
    if state.answer == NO_ANSWER:
        return None
    passed = state.answer.next - state.pull.start
    return state._replace(
        received=state.received | taken(state),
        position=state.answer.next - 1,
        judged=state.judged + (state.pull.by,) * passed,
        pull=NO_PULL,
        answer=NO_ANSWER,
    )


def lose(_config: Config, state: State) -> State | None:
    """Lose: the pull or its answer is lost, or refused. The member pulls again."""
    return state._replace(pull=NO_PULL, answer=NO_ANSWER) if state.pull != NO_PULL else None


# Actions


def _places(config: Config) -> Iterable[Parameters]:
    return ((place,) for place in range(1, config.length_max + 1))


ACTIONS: Final[dict[str, Action[Config, State]]] = by_name(
    Action("Store", store, each("tags")),
    Action("Subscribe", subscribe, each("expressions")),
    Action("Pull", begin_pull, once),
    Action("Receive", receive, once),
    Action("Lose", lose, once),
    Action("Answer", give_answer, _places),
)


# Safety


def filter_sound(_config: Config, state: State) -> bool:
    """DELIV-10 FilterSound: of the messages passed, the member received exactly the selected ones."""
    return state.received == {
        place
        for place, (tag, expression) in enumerate(zip(state.queue, state.judged, strict=False), 1)
        if tag in expression
    }


# Liveness


FAIRNESS: Final = (weak("Pull", "Pull"), strong("Answer", "Answer"), strong("Receive", "Receive"))


def all_passed(config: Config) -> Obligations[State]:
    """AllPassed: the member passes each message, selected or not."""
    return leads_to(
        lambda s, place: len(s.queue) >= place,
        lambda s, place: s.position >= place,
        of=((place,) for place in range(1, config.length_max + 1)),
    )


# The model in TLC's terms


def from_tla(_config: Config, variables: Mapping[str, Any]) -> State:
    """Return the state that TLC prints."""
    pull, answer = variables["pull"], variables["answer"]
    return State(
        wanted=frozenset(variables["wanted"]),
        queue=tuple(variables["queue"]),
        position=variables["position"],
        pull=Pull(pull["from"], frozenset(pull["by"])),
        answer=Answer(answer["next"], frozenset(answer["found"])),
        received=frozenset(variables["received"]),
        judged=tuple(map(frozenset, variables["judged"])),
    )


_configured: Final = configuration(
    Config,
    tags="Tags",
    colliding="Colliding",
    expressions="Expressions",
    batch_max="BatchMax",
    length_max="LengthMax",
)


def _from_constants(constants: Mapping[str, Any]) -> Config:
    """Return the configuration; sets of sets have no order, so expressions are sorted by their tags."""
    return _configured({**constants, "Expressions": tuple(sorted(constants["Expressions"], key=sorted))})


MODEL: Final = Model(
    name="Selection",
    initial=initial,
    actions=ACTIONS,
    invariants=named(filter_sound),
    fairness=FAIRNESS,
    liveness=named(all_passed),
    from_constants=_from_constants,
    from_tla=from_tla,
    operator=operators(("Store",)),
)
