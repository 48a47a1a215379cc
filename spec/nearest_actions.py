r"""Finds the actions closest to an unexplained event: those that explain it if some guards are dropped.

Each guard of each action that a trace module uses can be dropped by its number. TLC finds the numbers for
which the refused event is explained. If no single guard is enough, two or three guards of one action and of
the operators it uses are dropped at a time. Dropping a guard can let TLC run into an expression without
value. TLC is then run again without that guard: it was false in that state, so it is an obstacle as well.
"""

import re
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, islice
from pathlib import Path
from typing import Final

from mqproof.spec.actions import changing, extending, load
from mqproof.spec.syntax import Definition, Module, Node, speaks_of_next_state
from mqproof.spec.tlc import config, values
from mqproof.spec.tlc.errors import TlcError
from mqproof.spec.tlc.run import Job, run
from mqproof.spec.tlc.toolbox import Toolbox
from mqproof.spec.tlc.trace_check import Event, traces_source

STEPS_MAX: Final = 4
"""The maximum number of steps, including hidden ones, without the guards before the event is explained."""
RUNS_MAX: Final = 8
TOGETHER_MAX: Final = 3
"""The maximum number of guards dropped at a time."""
SETS_MAX: Final = 4_000
SEVERAL: Final = f"the event's values, or more than {TOGETHER_MAX} of its conditions"
_NOTES: Final = "TraceGuards"
_OF_TRACES: Final = frozenset(["Is", "Hidden", "Unlogged"])
_SELECTS: Final = re.compile(r'Event\.\w+ = "')
"""Matches a condition that distinguishes one kind of event from another. Without it any event would match."""
_JUDGES: Final = re.compile(r"(Len\()?\w+'[\[)]")
"""Matches a condition on the result of another conjunct: it requires the new value of one element."""


@dataclass(frozen=True, slots=True)
class Guard:
    """A condition of an action."""

    action: str
    condition: str
    """The condition's text in the module, on one line."""

    def __str__(self) -> str:
        return f"{self.action} except for {self.condition}"


Obstacles = tuple[Guard, ...]
"""Guards that together prevent an event."""


@dataclass(frozen=True, slots=True)
class _Relaxed:
    """The trace module and the modules it uses, with guards that can be dropped."""

    module: str
    config_text: str
    libraries: tuple[Path, ...]
    modules: Mapping[str, Module]
    guards: Sequence[Guard]
    """The guards in order; the first has number 1."""
    sources: Mapping[str, str]
    seconds_max: float
    toolbox: Toolbox | None


def nearest(
    module: str,
    config_text: str,
    refused: Sequence[Sequence[Event]],
    libraries: tuple[Path, ...],
    *,
    seconds_max: float = 120,
    toolbox: Toolbox | None = None,
) -> tuple[tuple[Obstacles, ...], ...]:
    """Return, for each trace, the smallest sets of guards that prevent its last event, which is unexplained.

    If there are too many such guards, return the actions for that kind of event, with all their conditions.

    Raises:
        SyntaxProblemError: a module is not in the TLA+ that the parser knows.
    """
    modules = load(module, libraries)
    guards, sources = _numbered(modules)
    relaxed = _Relaxed(module, config_text, libraries, modules, guards, sources, seconds_max, toolbox)
    found = _explaining(relaxed, [frozenset({n}) for n in range(1, len(guards) + 1)], refused)
    if left := [number for number, each in enumerate(found) if not each]:
        traces = [refused[number] for number in left]
        together = _explaining(relaxed, _together(relaxed, traces), traces)
        for number, each in zip(left, together, strict=True):
            found[number] = each
    return tuple(
        _shown(each, guards) or tuple((guard,) for guard in _speaking(modules[module], trace[-1]))
        for each, trace in zip(found, refused, strict=True)
    )


def _explaining(
    relaxed: _Relaxed, asked: Sequence[frozenset[int]], refused: Sequence[Sequence[Event]]
) -> list[list[frozenset[int]]]:
    """Return, for each trace, the given sets of guards whose removal explains its last event.

    If there are none, return the sets that lead TLC into an expression without value. Those guards were
    false: dropping a guard that was true changes nothing.
    """
    found: list[list[frozenset[int]]] = [[] for _ in refused]
    false: list[list[frozenset[int]]] = [[] for _ in refused]
    for _ in range(RUNS_MAX):
        explained, stuck = _ask(relaxed, asked, refused) if asked else ((), None)
        for trace, dropped in explained:
            found[trace - 1].append(dropped)
        if stuck is None:
            break
        trace, dropped = stuck
        false[trace - 1].append(dropped)
        asked = [each for each in asked if not each & dropped]
    return [each or others for each, others in zip(found, false, strict=True)]


def _together(relaxed: _Relaxed, refused: Sequence[Sequence[Event]]) -> list[frozenset[int]]:
    """Return sets of guards, each of one action and what it uses, for the actions that match a last event."""
    found: dict[frozenset[int], None] = {}
    for speaking in {
        g.action for trace in refused for g in _speaking(relaxed.modules[relaxed.module], trace[-1])
    }:
        reached = _reached(relaxed.modules, speaking)
        mine = [number for number, guard in enumerate(relaxed.guards, start=1) if guard.action in reached]
        for size in range(2, TOGETHER_MAX + 1):
            found |= dict.fromkeys(map(frozenset, combinations(mine, size)))
    return list(islice(found, SETS_MAX))


def _shown(dropped: Iterable[frozenset[int]], guards: Sequence[Guard]) -> tuple[Obstacles, ...]:
    """Return the smallest sets only: a larger set contains guards that do not matter."""
    sets = sorted(dropped, key=lambda each: (len(each), sorted(each)))
    fewest = [each for each in sets if len(each) == len(sets[0])]
    return tuple(dict.fromkeys(tuple(guards[number - 1] for number in sorted(each)) for each in fewest))


_Explained = tuple[int, frozenset[int]]
"""The number of a trace, from 1, and the dropped guards."""


def _ask(
    relaxed: _Relaxed, asked: Sequence[frozenset[int]], refused: Sequence[Sequence[Event]]
) -> tuple[Collection[_Explained], _Explained | None]:
    """Return which traces are explained without which guards, and where TLC stopped, if it did."""
    root = f"{relaxed.module}Nearest"
    parsed = config.parse(relaxed.config_text)
    generated = {
        **relaxed.sources,
        _NOTES: f"---- MODULE {_NOTES} ----\nVARIABLES guardsDropped, stepsSince\n====\n",
        "TraceData": traces_source(refused),
        root: _root(root, relaxed.module, asked),
    }
    with tempfile.TemporaryDirectory(prefix="mqproof-nearest-") as name:
        written = Path(name) / "reported"
        job = Job(
            root,
            parsed.behaviour("NearestInit", "NearestNext").asking("NearestReport", "INVARIANT").text(),
            relaxed.libraries,
            generated,
            user_file=written,
            seconds_max=relaxed.seconds_max,
            stack_mib=64,
            brief=True,
        )
        try:
            run(job, relaxed.toolbox)
            finished = True
        except TlcError:
            finished = False
        lines = written.read_text(encoding="utf-8").splitlines() if written.exists() else []
    reported = [values.parse(line) for line in lines]
    explained = {pair[1:] for pair in reported if isinstance(pair, tuple) and pair[0] == "explained"}
    last = reported[-1][1:] if reported and not finished and isinstance(reported[-1], tuple) else None
    return explained, last if last and last[1] else None  # type: ignore[return-value]


def _root(root: str, module: str, asked: Sequence[frozenset[int]]) -> str:
    return f"""---- MODULE {root} ----
EXTENDS {module}, TLC
everything == <<vars, t, l>>
GuardSets == {values.show(frozenset(asked))}
Stuck == guardsDropped = {{}} /\\ l = Len(Traces[t])
NearestInit == TraceInit /\\ guardsDropped = {{}} /\\ stepsSince = 0
NearestNext ==
    \\/ /\\ Stuck
       /\\ guardsDropped' \\in GuardSets
       /\\ UNCHANGED <<TraceView, stepsSince>>
    \\/ /\\ stepsSince < {STEPS_MAX} /\\ PrintT(<<"step", t, guardsDropped>>)
       /\\ TraceNext
       /\\ stepsSince' = (IF guardsDropped = {{}} THEN 0 ELSE stepsSince + 1)
       /\\ UNCHANGED guardsDropped
NearestReport == l > Len(Traces[t]) => PrintT(<<"explained", t, guardsDropped>>)
====
"""


def _speaking(trace_module: Module, event: Event) -> tuple[Guard, ...]:
    words = f'Is("{event["event"]}")'
    return tuple(
        Guard(definition.name, SEVERAL)
        for definition in trace_module.definitions.values()
        if words in trace_module.source(definition.body)
    )


def _numbered(modules: Mapping[str, Module]) -> tuple[list[Guard], dict[str, str]]:
    """Return all guards, and the modules in which each can be dropped by its number."""
    known = changing(modules)
    reached = _reached(modules, "TraceNext")
    guards: list[Guard] = []
    sources: dict[str, str] = {}
    for name, module in modules.items():
        spans: list[tuple[int, int, int]] = []
        for definition in module.definitions.values():
            if definition.name not in reached & known or definition.name in _OF_TRACES:
                continue
            for node in _guards(module, definition, known):
                condition = " ".join(module.source(node).split())
                if not _SELECTS.match(condition):
                    guards.append(Guard(definition.name, condition))
                    spans.append((node.start, node.end, len(guards)))
        if spans:
            sources[name] = extending(_droppable(module.text, spans), module, _NOTES)
    return guards, sources


def _reached(modules: Mapping[str, Module], name: str) -> set[str]:
    """Return the operators, of all modules, that the named one uses, including itself."""
    bodies = {d.name: m.source(d.body) for m in modules.values() for d in m.definitions.values()}
    found: set[str] = set()
    todo = [name]
    while todo:
        each = todo.pop()
        if each not in found:
            found.add(each)
            todo += [word for word in set(re.findall(r"\w+", bodies[each])) if word in bodies]
    return found


def _guards(module: Module, definition: Definition, changing: frozenset[str]) -> Iterator[Node]:
    """Yield the conditions beside changes in the definition's conjunctions, and those that check a change."""
    for node in definition.body.walk():
        if node.op != "/\\" or node.kind not in ("junction", "infix"):
            continue
        of_next = [speaks_of_next_state(part, changing) for part in node.parts]
        if any(of_next):
            for part, changes in zip(node.parts, of_next, strict=True):
                if not changes or _JUDGES.match(module.source(part)):
                    yield from _conjuncts(part)


def _conjuncts(condition: Node) -> Iterator[Node]:
    """Yield the conditions of a list.

    A conjunction on one line is one condition: its first half often guards the rest.
    """
    if condition.op == "/\\" and condition.kind == "junction":
        for part in condition.parts:
            yield from _conjuncts(part)
    else:
        yield condition


def _droppable(text: str, spans: Sequence[tuple[int, int, int]]) -> str:
    for start, end, number in sorted(spans, reverse=True):
        # A condition of several lines keeps its columns, because they determine its structure.
        column = start - (text.rfind("\n", 0, start) + 1)
        condition = f"\n{' ' * column}{text[start:end]}"
        text = f"{text[:start]}(IF {number} \\in guardsDropped THEN TRUE ELSE {condition}){text[end:]}"
    return text
