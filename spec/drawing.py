"""Turns a behaviour of a model into a sequence diagram.

It shows actions, messages, crashes and the violated property.

Messages are read from a variable `network`, a set of records with `kind`, `source` and `target`. A record
that a step adds was sent by it. A record that it removes was received by its target, or was lost if the
action's name says so. The acting nodes are those whose entries in functions over nodes the step changed. A
model for which this is not enough has a `Table`, which gives an action its lifelines, an arrow and a label.
An action without an entry is drawn as a step with its changes.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from mqproof.report.sequence import INITIALLY, Arrow, Diagram, Lifeline, Mark, Step, Tone
from mqproof.spec.tlc.trace import Trace, changed
from mqproof.spec.tlc.values import Function, ModelValue, State, Value, show

NETWORK: Final = "network"
_LOSSES: Final = ("Lose", "Drop")
_CRASHES: Final = ("Crash", "PowerLoss", "DiskLost", "MachineLost", "Kill", "Dies")
_RESTARTS: Final = ("Restart", "Recover", "Start")
_SHARED: Final = 3
"""The number of variables that must be functions over a set for its elements to count as nodes.

It applies only if no message names its source and target.
"""
_ENVIRONMENT: Final = "environment"
"""The lifeline of steps that happen at no node."""
_CHANGES_MAX: Final = 7
_MESSAGE_MAX: Final = 46
_INITIAL_MAX: Final = 12
_EMPTY: Final = ("{}", "<<>>", "[]", "()")
"""How an empty set, sequence or function is shown."""


@dataclass(frozen=True, slots=True)
class Shown:
    """How an action is drawn.

    In a text, `{}` is the result of `subject`, and `{node}` is the node that the step changed.
    """

    at: tuple[str, ...]
    """The lifelines that act."""
    label: str = ""
    to: str = ""
    """The target of an arrow from the first of `at`, within the row; the label is placed on the arrow."""
    mark: Mark = Mark.STEP
    subject: Callable[[State, State], str] = lambda _before, _after: ""
    """Returns the subject of the step, such as a message, from the states before and after it."""


@dataclass(frozen=True, slots=True)
class Table:
    """How a model's actions are drawn."""

    lifelines: tuple[Lifeline, ...] = ()
    nodes: bool = False
    """Whether the nodes that occur in the states get lifelines too, after `lifelines`."""
    actions: Mapping[str, Shown] = field(default_factory=dict)
    vague: frozenset[str] = frozenset({"Next", "Serve", "Receive", "Fault"})
    """Names of disjunctions of actions.

    For a step whose parameters depend on the state, TLC reports only the name of the enclosing disjunction.
    """
    named: Callable[[State, State], str] = lambda _before, _after: ""
    """Returns the action of a step for which TLC reported a name of `vague`; "" if it is unknown."""
    receivers: frozenset[str] = frozenset()
    """Actions that receive a message and are named after its kind."""
    extras: frozenset[str] = frozenset()
    """Lifelines that are left out if they take no part."""
    hidden: frozenset[str] = frozenset()
    """Variables whose changes are not shown: history variables, and those that the labels already show."""


def draw(trace: Trace, title: str, table: Table | None = None, violated: str = "", why: str = "") -> Diagram:
    """Return the diagram of a behaviour; `violated` is the property that it violates, if any."""
    steps = trace.steps
    drawing = _Drawing(trace, table)
    for before, after in pairwise(steps):
        drawing.step(_action(after.action), before.state, after.state)
    loop = None
    if trace.back_to is not None and drawing.rows:
        # Step 1 is the initial state, which has no row: the row of step n is n - 2.
        loop = (min(max(trace.back_to - 1, 0), len(drawing.rows) - 1), len(drawing.rows) - 1)
    verdict, tone = (
        (f"{violated} is violated", Tone.BAD) if violated else ("The behaviour continues", Tone.NEUTRAL)
    )
    return Diagram(
        title=title,
        subtitle=_constants(trace, drawing.hidden),
        initial=_initial(trace, drawing.hidden),
        lifelines=drawing.lifelines,
        steps=tuple(drawing.rows),
        arrows=drawing.arrows(),
        verdict=verdict,
        explanation=" ".join(filter(None, (_ending(trace, loop), why, drawing.remark))),
        tone=tone,
        loop=loop,
    )


def _ending(trace: Trace, loop: tuple[int, int] | None) -> str:
    if trace.stutters:
        return "After the last step, nothing happens forever."
    if loop is not None:
        return f"Steps {loop[0] + 1} to {loop[1] + 1} repeat forever."
    return ""


def _constants(trace: Trace, hidden: frozenset[str]) -> str:
    """Return the values that a behaviour chose at its beginning and never changes, such as its modes."""
    first = trace.steps[0].state
    kept = [
        f"{name} = {show(value).strip(chr(34))}"
        for name, value in first.items()
        if str(name) not in hidden
        and isinstance(value, str)
        and all(step.state.get(name) == value for step in trace.steps)
    ]
    return ", ".join(kept)


def _initial(trace: Trace, hidden: frozenset[str]) -> tuple[str, ...]:
    """Return a line for each variable of the initial state that is not empty, and that some step changes.

    Without steps, the initial state is all there is to show: each variable has a line, empty ones too.
    """
    first = trace.steps[0].state
    is_all = len(trace.steps) == 1
    lines = []
    for name, value in first.items():
        if str(name) in {NETWORK, *hidden}:
            continue
        text = _grouped(value) or (show(value) if is_all else "")
        if text and (is_all or any(step.state.get(name) != value for step in trace.steps)):
            lines.append(f"{name}: {text}")
    if len(lines) > _INITIAL_MAX and not is_all:
        lines[_INITIAL_MAX - 1 :] = [f"and {len(lines) - _INITIAL_MAX + 1} more variables"]
    return tuple(lines)


def _grouped(value: Value) -> str:
    """Return a value as text, empty for an empty value. For a function: its results with their arguments."""
    if not isinstance(value, Function):
        return "" if value in (frozenset(), ()) else _plain(show(value))
    arguments: dict[str, list[str]] = {}
    for key, result in value.items():
        arguments.setdefault(_brief(result), []).append(_name(key))
    if len(arguments) == 1:
        [only] = arguments
        return "" if only in _EMPTY else only
    return "; ".join(f"{', '.join(names)} = {result}" for result, names in arguments.items())


def _action(name: str) -> str:
    """Return the action's name without the prefix of a bounded or replaced action."""
    return re.sub(r"^(MC|Mutant|Shipped)(?=[A-Z])", "", name)


def _words(name: str) -> str:
    """Return a name such as HandleVoteRequest as words."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name).lower()


@dataclass(slots=True)
class _Flight:
    """A message between its sending and its end."""

    record: Function
    sent: int
    ends: list[tuple[int, bool]] = field(default_factory=list)
    """The rows in which the message ended, each with whether it was lost there."""


class _Drawing:
    """Builds the diagram, one row per step."""

    def __init__(self, trace: Trace, table: Table | None) -> None:
        self.rows: list[Step] = []
        self._flights: list[_Flight] = []
        self._nodes = _nodes(trace) if table is None or table.nodes else ()
        self._table = table
        self.hidden: frozenset[str] = table.hidden if table else frozenset()
        self._separates_kinds = any(
            _named_for(kind, record)
            for kind in {_action(step.action) for step in trace.steps} | (table.receivers if table else set())
            for step in trace.steps
            for record in _records(step.state)
        )
        self._within: list[Arrow] = []
        self._dead: set[str] = set()
        for record in sorted(_records(trace.steps[0].state), key=show):
            self._flights.append(_Flight(record, INITIALLY))

    @property
    def lifelines(self) -> tuple[Lifeline, ...]:
        used = {name for row in self.rows for name in row.at}
        extras = self._table.extras - used if self._table else frozenset()
        own = self._table.lifelines if self._table else ()
        kept = [lifeline for lifeline in own if lifeline.name not in extras]
        world = [_ENVIRONMENT] if _ENVIRONMENT in used else []
        return (*kept, *map(Lifeline, (*self._nodes, *world)))

    @property
    def remark(self) -> str:
        return "Dashed: sent, but not arrived." if any(not flight.ends for flight in self._flights) else ""

    def arrows(self) -> tuple[Arrow, ...]:
        arrows = list(self._within)
        for flight in self._flights:
            source, target = _ends(flight.record)
            label = _message(flight.record)
            if not flight.ends:
                arrows.append(Arrow(source, target, label, flight.sent, None))
            arrows += [Arrow(source, target, label, flight.sent, row, lost) for row, lost in flight.ends]
        return tuple(arrows)

    def step(self, action: str, before: State, after: State) -> None:
        row = len(self.rows)
        if self._table and action in self._table.vague:
            action = self._table.named(before, after) or action
        acting = self._network(row, action, before, after)
        changes = self._changes(before, after)
        shown = self._table.actions.get(action) if self._table else None
        if shown is None:
            self.rows.append(self._unlisted(action, acting, before, after, changes))
            return
        subject = shown.subject(before, after)
        node = next(iter(_changed_nodes(before, after, self._nodes)), "")
        label, to = shown.label.format(subject, node=node), shown.to.format(subject, node=node)
        at = tuple(name.format(subject, node=node) for name in shown.at)
        if shown.to:
            self._within.append(Arrow(at[0], to, label, row, row))
            at = (*at, to)
        if shown.mark is Mark.CRASH:
            self._dead |= {*at}
        elif shown.mark is Mark.RESTART:
            at = tuple(name for name in at if name in self._dead) or at[:1]
            self._dead -= {*at}
        self.rows.append(Step(action, at, "" if shown.to else label, shown.mark, changes))

    def _unlisted(
        self, action: str, acting: list[str], before: State, after: State, changes: tuple[str, ...]
    ) -> Step:
        row = len(self.rows)
        at = acting or _changed_nodes(before, after, self._nodes)
        ended = any(end == row for flight in self._flights for end, _ in flight.ends)
        if not at and not ended and (self._table is None or self._table.nodes):
            at = [_ENVIRONMENT]
        mark = Mark.STEP
        if any(word in action for word in _CRASHES):
            mark = Mark.CRASH
            self._dead |= {*at}
        elif (action.startswith(_RESTARTS) or action.endswith("Starts")) and self._dead & {*at}:
            mark = Mark.RESTART
            self._dead -= {*at}
        label = _words(action) if not acting or mark is not Mark.STEP else ""
        return Step(action or "a step", tuple(dict.fromkeys(at)), label, mark, changes)

    def _network(self, row: int, action: str, before: State, after: State) -> list[str]:
        """Follow the messages through a step; return the nodes that sent or received one."""
        old, new = _records(before), _records(after)
        lost = action.startswith(_LOSSES)
        handled = None if lost else _handled(action, before, after, self._nodes)
        # If actions are not named after what they receive, every record that is removed was received.
        received = old - new if not lost and not self._separates_kinds else frozenset()
        received |= {handled} if handled else frozenset()
        for record in sorted(old - new | received, key=show):
            flight = next(f for f in reversed(self._flights) if f.record == record)
            if record in received or not flight.ends:
                flight.ends.append((row, record not in received))
        acting = [_ends(record)[1] for record in sorted(received, key=show)]
        for record in sorted(new - old, key=show):
            self._flights.append(_Flight(record, row))
            acting.append(_ends(record)[0])
        return acting

    def _changes(self, before: State, after: State) -> tuple[str, ...]:
        lines = [
            _plain(f"{where}: {how}")
            for where, how in changed(before, after)
            if re.split(r"[.\[]", where)[0] not in {NETWORK, *self.hidden}
        ]
        if len(lines) > _CHANGES_MAX:
            lines[_CHANGES_MAX - 1 :] = [f"and {len(lines) - _CHANGES_MAX + 1} more changes"]
        return tuple(lines)


def _plain(text: str) -> str:
    """Return TLA+ text in readable form: without quotes, `|->` as a colon, `->` as an arrow."""
    return text.replace('"', "").replace(" |-> ", ": ").replace("->", "→")


def _handled(action: str, before: State, after: State, nodes: tuple[str, ...]) -> Function | None:
    """Return the message that a step received, or None.

    It is a record that the step removed from the network and whose kind is in the action's name. If records
    stay in the network, it is such a record between the nodes that the step changed. Among several, the
    record that matches most of the changed values is chosen.
    """
    old, new = _records(before), _records(after)
    changed_nodes = _changed_nodes(before, after, nodes)
    gone = [record for record in old - new if _named_for(action, record)]
    kept = [record for record in old if _named_for(action, record) and {*changed_nodes} <= {*_ends(record)}]
    places = [re.findall(r"\w+", f"{where} {how}") for where, how in changed(before, after)]
    appeared = set(_leaves(after)) - set(_leaves(before))

    def fit(record: Function) -> tuple[int, bool, int, str]:
        about = sum({*_ends(record)} <= {*place} for place in places)
        matches = sum(
            leaf in appeared for key, leaf in record.items() if key not in ("kind", "source", "target")
        )
        return (about, _ends(record)[1] in changed_nodes, matches, show(record))

    return max(gone or kept, key=fit, default=None)


def _named_for(action: str, record: Function) -> bool:
    kind = re.sub(r"[^a-z]", "", str(record.get("kind", "")).lower())
    return bool(kind) and action.lower().endswith(kind)


def _leaves(state: State) -> Iterator[Value]:
    """Yield the values in a state's functions: entries of logs, positions, terms."""
    for name, value in state.items():
        if name == NETWORK or not isinstance(value, Function):
            continue
        for entry in value.values():
            yield from entry if isinstance(entry, tuple) else (entry,)


def _records(state: State) -> frozenset[Function]:
    network = state.get(NETWORK, frozenset())
    if isinstance(network, Function):  # a bag: maps each record to its number of copies
        network = frozenset(network)
    if not isinstance(network, frozenset):
        return frozenset()
    return frozenset(r for r in network if isinstance(r, Function) and {"source", "target"} <= set(r))


def _ends(record: Function) -> tuple[str, str]:
    return _name(record["source"]), _name(record["target"])


def _message(record: Function) -> str:
    """Return the kind and the payload, shortened to the maximum length."""
    payload = [
        f"{key} {_brief(value)}" for key, value in record.items() if key not in ("kind", "source", "target")
    ]
    kind = str(record.get("kind", "message"))
    shown = ", ".join(payload)
    return (
        f"{kind} {shown}".strip()
        if len(kind) + len(shown) <= _MESSAGE_MAX
        else f"{kind} {shown[: _MESSAGE_MAX - 2 - len(kind)]}…"
    )


def _brief(value: Value) -> str:
    """Return a record as its values alone."""
    if isinstance(value, Function):
        return "[" + ", ".join(map(_brief, value.values())) + "]"
    return _plain(show(value))


def _nodes(trace: Trace) -> tuple[str, ...]:
    """Return the nodes: those that send or receive, or the sets that enough variables are functions over."""
    talkers = {end for step in trace.steps for record in _records(step.state) for end in _ends(record)}
    domains: dict[frozenset[str], int] = {}
    for value in trace.steps[0].state.values():
        if isinstance(value, Function):
            domain = frozenset(map(_name, value))
            domains[domain] = domains.get(domain, 0) + 1
    if talkers:
        fitting = {domain: count for domain, count in domains.items() if talkers & domain}
        domain, count = max(fitting.items(), key=lambda e: (e[1], sorted(e[0])), default=(frozenset(), 0))
        return tuple(sorted(talkers | (domain if count > 1 else frozenset())))
    for domain, count in domains.items():
        talkers |= domain if count >= _SHARED else frozenset()
    return tuple(sorted(talkers))


def _changed_nodes(before: State, after: State, nodes: tuple[str, ...]) -> list[str]:
    found: set[str] = set()
    for name, value in after.items():
        old = before.get(name)
        if isinstance(value, Function) and isinstance(old, Function):
            found |= {_name(key) for key in value if old.get(key) != value[key]} & set(nodes)
        elif isinstance(value, frozenset) and isinstance(old, frozenset) and name != NETWORK:
            found |= {part for entry in value ^ old for part in _parts(entry)} & set(nodes)
    return [node for node in nodes if node in found]


def _parts(value: Value) -> Iterator[str]:
    """Yield the names in a value: one node, or several in a tuple."""
    if isinstance(value, tuple):
        for part in value:
            yield from _parts(part)
    else:
        yield _name(value)


def _name(value: Value) -> str:
    return value.name if isinstance(value, ModelValue) else str(value)
