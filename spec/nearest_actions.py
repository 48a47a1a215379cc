r"""Finds the actions that come closest to an unexplained event: those that explain it without some guards.

Each guard of each action that a trace module rests on can be dropped by its number, and TLC is asked which
numbers let the refused event be explained. Where no single one does, two or three are dropped at a time, all
of one action and of what it rests on. Dropping a guard can let TLC run into an expression without value; then
TLC is asked again without that guard, which was false where TLC stood, and so stands in the way as well.
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
"""So many steps, hidden ones included, may be taken without the guards, before the event is explained."""
RUNS_MAX: Final = 8
TOGETHER_MAX: Final = 3
"""So many guards are dropped at a time."""
SETS_MAX: Final = 4_000
SEVERAL: Final = f"what the event says, or more than {TOGETHER_MAX} of its conditions"
_NOTES: Final = "TraceGuards"
_OF_TRACES: Final = frozenset(["Is", "Hidden", "Untold"])
_SELECTS: Final = re.compile(r'Event\.\w+ = "')
"""What tells one kind of event from another: without it an event would be any other."""
_JUDGES: Final = re.compile(r"(Len\()?\w+'[\[)]")
"""A condition on what another conjunct has changed: it says of one element what it is to be."""


@dataclass(frozen=True, slots=True)
class Guard:
    """A condition that an action has."""

    action: str
    condition: str
    """As it stands in the module, on one line."""

    def __str__(self) -> str:
        return f"{self.action} but for {self.condition}"


Obstacles = tuple[Guard, ...]
"""What, together, stands in the way of an event."""


@dataclass(frozen=True, slots=True)
class _Relaxed:
    """The trace module and what it rests on, with guards that can be dropped."""

    module: str
    config_text: str
    libraries: tuple[Path, ...]
    modules: Mapping[str, Module]
    guards: Sequence[Guard]
    """The first has number 1."""
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
    """Of each trace whose last event is the first that is not explained: the fewest guards in its way.

    Where too many are, the actions that speak of such an event, with all that they ask for.

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
    """Of each trace: which of these sets of guards explain its last event by not being there.

    What leads TLC into an expression without value comes instead where nothing else does: of guards that
    were true nothing would have changed.
    """
    found: list[list[frozenset[int]]] = [[] for _ in refused]
    false: list[list[frozenset[int]]] = [[] for _ in refused]
    for _ in range(RUNS_MAX):
        told, stuck = _ask(relaxed, asked, refused) if asked else ((), None)
        for trace, dropped in told:
            found[trace - 1].append(dropped)
        if stuck is None:
            break
        trace, dropped = stuck
        false[trace - 1].append(dropped)
        asked = [each for each in asked if not each & dropped]
    return [each or others for each, others in zip(found, false, strict=True)]


def _together(relaxed: _Relaxed, refused: Sequence[Sequence[Event]]) -> list[frozenset[int]]:
    """Sets of guards of one action and of what it rests on, for all actions that speak of a last event."""
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
    """The smallest sets only: what is more than needed explains nothing."""
    sets = sorted(dropped, key=lambda each: (len(each), sorted(each)))
    fewest = [each for each in sets if len(each) == len(sets[0])]
    return tuple(dict.fromkeys(tuple(guards[number - 1] for number in sorted(each)) for each in fewest))


_Told = tuple[int, frozenset[int]]
"""A trace, counted from 1, and dropped guards."""


def _ask(
    relaxed: _Relaxed, asked: Sequence[frozenset[int]], refused: Sequence[Sequence[Event]]
) -> tuple[Collection[_Told], _Told | None]:
    """Without which guards which trace's last event is explained, and where TLC could not go on."""
    root = f"{relaxed.module}Nearest"
    parsed = config.parse(relaxed.config_text)
    generated = {
        **relaxed.sources,
        _NOTES: f"---- MODULE {_NOTES} ----\nVARIABLES guardsDropped, stepsSince\n====\n",
        "TraceData": traces_source(refused),
        root: _root(root, relaxed.module, asked),
    }
    with tempfile.TemporaryDirectory(prefix="mqproof-nearest-") as name:
        written = Path(name) / "told"
        job = Job(
            root,
            parsed.behaviour("NearestInit", "NearestNext").asking("NearestTold", "INVARIANT").text(),
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
    told = [values.parse(line) for line in lines]
    explained = {pair[1:] for pair in told if isinstance(pair, tuple) and pair[0] == "explained"}
    last = told[-1][1:] if told and not finished and isinstance(told[-1], tuple) else None
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
    \\/ /\\ stepsSince < {STEPS_MAX} /\\ PrintT(<<"going on", t, guardsDropped>>)
       /\\ TraceNext
       /\\ stepsSince' = (IF guardsDropped = {{}} THEN 0 ELSE stepsSince + 1)
       /\\ UNCHANGED guardsDropped
NearestTold == l > Len(Traces[t]) => PrintT(<<"explained", t, guardsDropped>>)
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
    """All guards, and the modules in which each can be dropped by its number."""
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
    """The operators that one rests on, itself included, of whichever module."""
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
    """The conditions that stand beside changes in the definition's conjunctions, or judge of them."""
    for node in definition.body.walk():
        if node.op != "/\\" or node.kind not in ("junction", "infix"):
            continue
        told = [speaks_of_next_state(part, changing) for part in node.parts]
        if any(told):
            for part, changes in zip(node.parts, told, strict=True):
                if not changes or _JUDGES.match(module.source(part)):
                    yield from _conjuncts(part)


def _conjuncts(condition: Node) -> Iterator[Node]:
    """Those of a list; what stands on one line says one thing, its first half often what the other needs."""
    if condition.op == "/\\" and condition.kind == "junction":
        for part in condition.parts:
            yield from _conjuncts(part)
    else:
        yield condition


def _droppable(text: str, spans: Sequence[tuple[int, int, int]]) -> str:
    for start, end, number in sorted(spans, reverse=True):
        # A condition of several lines keeps its columns, for they say what belongs to what.
        column = start - (text.rfind("\n", 0, start) + 1)
        condition = f"\n{' ' * column}{text[start:end]}"
        text = f"{text[:start]}(IF {number} \\in guardsDropped THEN TRUE ELSE {condition}){text[end:]}"
    return text
