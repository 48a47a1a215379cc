"""Turns a behaviour of a model into a sequence diagram: who acted, what travelled, who crashed, what broke.

Messages are seen in a variable `network`, a set of records with `kind`, `source` and `target`: what a step
adds was sent by it; what it takes away was received by its target, or lost when the action says so. Who
acted is seen in the functions over nodes that a step changed. A model where that is not enough has a `Table`:
for an action its lifelines, an arrow, a label. An action without an entry is a step that tells what changed.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from report.sequence import Arrow, Diagram, Lifeline, Mark, Step, Tone
from spec.tlc.trace import Trace, changed
from spec.tlc.values import Function, ModelValue, State, Value, show

NETWORK: Final = "network"
_LOSSES: Final = ("Lose", "Drop")
_CRASHES: Final = ("Crash", "PowerLoss", "DiskLost", "MachineLost", "Kill")
_RESTARTS: Final = ("Restart", "Recover", "Start")
_WORLD: Final = "the world"
"""The lifeline of what happens at no node."""
_CHANGES_MAX: Final = 7


@dataclass(frozen=True, slots=True)
class Shown:
    """How an action is drawn. `{}` in a text is what `who` found."""

    at: tuple[str, ...]
    """The lifelines that act."""
    label: str = ""
    to: str = ""
    """An arrow goes from the first of `at` to this lifeline, within the row; the label stands on it."""
    mark: Mark = Mark.STEP
    who: Callable[[State, State], str] = lambda _before, _after: ""
    """Finds in the states before and after what the step is about, such as the message or the node."""


@dataclass(frozen=True, slots=True)
class Table:
    """How a model's actions are drawn."""

    lifelines: tuple[Lifeline, ...]
    actions: Mapping[str, Shown]
    named: Callable[[State, State], str] = lambda _before, _after: ""
    """The action between two states where TLC tells only the disjunction that it stands in; "" if unknown."""
    extras: frozenset[str] = frozenset()
    """Lifelines that are left out where they take no part."""
    hidden: frozenset[str] = frozenset()
    """Variables whose changes are not told: history, and what the labels say already."""


def draw(trace: Trace, title: str, table: Table | None = None, violated: str = "", why: str = "") -> Diagram:
    """The diagram of a behaviour; `violated` is the property that it breaks, if it breaks one."""
    steps = trace.steps
    drawing = _Drawing(trace, table)
    for before, after in pairwise(steps):
        drawing.step(_action(after.action), before.state, after.state)
    loop = None
    if trace.back_to is not None and drawing.rows:
        # Step 1 is the initial state, which has no row: the row of step n is n - 2.
        loop = (min(max(trace.back_to - 1, 0), len(drawing.rows) - 1), len(drawing.rows) - 1)
    verdict, tone = (
        (f"{violated} is violated", Tone.BAD) if violated else ("The behaviour goes on", Tone.NEUTRAL)
    )
    return Diagram(
        title=title,
        subtitle=_initially(trace, drawing.hidden),
        lifelines=drawing.lifelines,
        steps=tuple(drawing.rows),
        arrows=drawing.arrows(),
        verdict=verdict,
        explanation=" ".join(filter(None, (_ending(trace, loop), why))),
        tone=tone,
        loop=loop,
    )


def _ending(trace: Trace, loop: tuple[int, int] | None) -> str:
    if trace.stutters:
        return "After the last step nothing happens for ever."
    if loop is not None:
        return f"Steps {loop[0] + 1} to {loop[1] + 1} repeat for ever."
    return ""


def _initially(trace: Trace, hidden: frozenset[str]) -> str:
    """What a behaviour chose at its beginning and never changes: the modes that it runs in."""
    first = trace.steps[0].state
    kept = [
        f"{name} = {show(value).strip(chr(34))}"
        for name, value in first.items()
        if str(name) not in hidden
        and isinstance(value, str)
        and all(step.state.get(name) == value for step in trace.steps)
    ]
    return ", ".join(kept)


def _action(name: str) -> str:
    """What bounds or replaces an action is called by its name."""
    return re.sub(r"^(MC|Mutant|Shipped)(?=[A-Z])", "", name)


def _words(name: str) -> str:
    """HandleVoteRequest in words."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name).lower()


@dataclass(slots=True)
class _Flight:
    """A message between its sending and its end."""

    record: Function
    sent: int
    ends: list[tuple[int, bool]] = field(default_factory=list)
    """Rows, and whether it was lost there."""


class _Drawing:
    """Grows a row a step."""

    def __init__(self, trace: Trace, table: Table | None) -> None:
        self.rows: list[Step] = []
        self._flights: list[_Flight] = []
        self._nodes = _nodes(trace)
        self._table = table
        self.hidden: frozenset[str] = table.hidden if table else frozenset()
        self._within: list[Arrow] = []
        self._dead: set[str] = set()
        for record in sorted(_records(trace.steps[0].state), key=show):
            self._flights.append(_Flight(record, 0))

    @property
    def lifelines(self) -> tuple[Lifeline, ...]:
        used = {name for row in self.rows for name in row.at}
        if self._table:
            extras = self._table.extras - used
            return tuple(lifeline for lifeline in self._table.lifelines if lifeline.name not in extras)
        return tuple(Lifeline(name) for name in (*self._nodes, _WORLD) if name in used or name in self._nodes)

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
        acting = self._network(row, action, before, after)
        changes = self._changes(before, after)
        if self._table and action not in self._table.actions:
            action = self._table.named(before, after) or action
        shown = self._table.actions.get(action) if self._table else None
        if shown is None:
            self.rows.append(self._unlisted(action, acting, before, after, changes))
            return
        who = shown.who(before, after)
        label, to = shown.label.format(who), shown.to.format(who)
        at = tuple(name.format(who) for name in shown.at)
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
        known = {lifeline.name for lifeline in self._table.lifelines} if self._table else {*self._nodes}
        at = [node for node in acting or _changed_nodes(before, after, self._nodes) if node in known]
        ended = any(end == row for flight in self._flights for end, _ in flight.ends)
        if not at and not ended and not self._table:
            at = [_WORLD]
        mark = Mark.STEP
        if any(word in action for word in _CRASHES):
            mark = Mark.CRASH
        elif action.startswith(_RESTARTS):
            mark = Mark.RESTART
        label = _words(action) if not acting or mark is not Mark.STEP else ""
        return Step(action or "a step", tuple(dict.fromkeys(at)), label, mark, changes)

    def _network(self, row: int, action: str, before: State, after: State) -> list[str]:
        """Follows the messages through a step; returns the nodes that sent or received."""
        old, new = _records(before), _records(after)
        lost = action.startswith(_LOSSES)
        acting: list[str] = []
        for record in sorted(old - new, key=show):
            flight = next(f for f in reversed(self._flights) if f.record == record)
            flight.ends.append((row, lost))
            if not lost:
                acting.append(_ends(record)[1])
        for record in sorted(new - old, key=show):
            self._flights.append(_Flight(record, row))
            acting.append(_ends(record)[0])
        return acting

    def _changes(self, before: State, after: State) -> tuple[str, ...]:
        lines = [
            f"{where}: {_plain(how)}"
            for where, how in changed(before, after)
            if re.split(r"[.\[]", where)[0] not in {NETWORK, *self.hidden}
        ]
        if len(lines) > _CHANGES_MAX:
            lines[_CHANGES_MAX - 1 :] = [f"and {len(lines) - _CHANGES_MAX + 1} more changes"]
        return tuple(lines)


def _plain(text: str) -> str:
    """TLA+ for the eye: strings without quotes, arrows as arrows."""
    return text.replace('"', "").replace(" |-> ", ": ").replace("->", "→")


def _records(state: State) -> frozenset[Function]:
    network = state.get(NETWORK, frozenset())
    if isinstance(network, Function):  # a bag: record to how many copies
        network = frozenset(network)
    if not isinstance(network, frozenset):
        return frozenset()
    return frozenset(r for r in network if isinstance(r, Function) and {"source", "target"} <= set(r))


def _ends(record: Function) -> tuple[str, str]:
    return _name(record["source"]), _name(record["target"])


def _message(record: Function) -> str:
    """The kind, and the payload as far as it is short."""
    payload = [
        f"{key} {_plain(show(value))}"
        for key, value in record.items()
        if key not in ("kind", "source", "target")
    ]
    kind = str(record.get("kind", "message"))
    told = ", ".join(payload)
    return f"{kind} {told}".strip() if len(kind) + len(told) <= 40 else f"{kind} {told[: 36 - len(kind)]}…"


def _nodes(trace: Trace) -> tuple[str, ...]:
    """Who sends and receives, or else the set that the most variables are functions over."""
    talkers = {end for step in trace.steps for record in _records(step.state) for end in _ends(record)}
    domains: dict[frozenset[str], int] = {}
    for value in trace.steps[0].state.values():
        if isinstance(value, Function):
            domain = frozenset(map(_name, value))
            domains[domain] = domains.get(domain, 0) + 1
    for domain in domains:
        if talkers & domain:
            talkers |= domain
    if not talkers and domains:
        domain, count = max(domains.items(), key=lambda entry: (entry[1], sorted(entry[0])))
        talkers = set(domain) if count > 1 else set()
    return tuple(sorted(talkers))


def _changed_nodes(before: State, after: State, nodes: tuple[str, ...]) -> list[str]:
    found: set[str] = set()
    for name, value in after.items():
        old = before.get(name)
        if isinstance(value, Function) and isinstance(old, Function):
            found |= {_name(key) for key in value if old.get(key) != value[key]} & set(nodes)
    return [node for node in nodes if node in found]


def _name(value: Value) -> str:
    return value.name if isinstance(value, ModelValue) else str(value)
