r"""Which actions came closest to an event that none explains: those that would, with one guard less.

Each guard of each action that a trace module rests on can be dropped by its number, and TLC is asked which
numbers let the refused event be explained. Dropping a guard can let TLC run into an expression without value;
then half of the guards are asked at a time, so that only those which do so go unanswered.
"""

import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from spec.actions import changing, extending, load
from spec.syntax import Definition, Module, Node, speaks_of_next_state
from spec.tlc import config, values
from spec.tlc.errors import TlcError
from spec.tlc.run import Job, run
from spec.tlc.toolbox import Toolbox
from spec.tlc.trace_check import Event, traces_source

STEPS_MAX: Final = 4
"""So many steps, hidden ones included, may be taken without the guard, before the event is explained."""
RUNS_MAX: Final = 8
SEVERAL: Final = "more than one of its conditions"
_NOTES: Final = "TraceGuards"
_OF_TRACES: Final = frozenset(["Is", "Hidden"])
_SELECTS: Final = re.compile(r'Event\.\w+ = "')
"""What tells one kind of event from another: without it an event would be any other."""


@dataclass(frozen=True, slots=True)
class Guard:
    """A condition that an action has."""

    action: str
    condition: str
    """As it stands in the module, on one line."""

    def __str__(self) -> str:
        return f"{self.action} but for {self.condition}"


def nearest(
    module: str,
    config_text: str,
    refused: Sequence[Sequence[Event]],
    libraries: tuple[Path, ...],
    *,
    seconds_max: float = 120,
    toolbox: Toolbox | None = None,
) -> tuple[tuple[Guard, ...], ...]:
    """Of each trace whose last event is the first that is not explained: the guards that stand in its way.

    Where no single one does, the actions that speak of such an event, with all that they ask for.

    Raises:
        SyntaxProblemError: a module is not in the TLA+ that the parser knows.
    """
    modules = load(module, libraries)
    guards, sources = _numbered(modules)
    found: list[list[Guard]] = [[] for _ in refused]
    waiting, runs = [range(1, len(guards) + 1)], 0
    while waiting and runs < RUNS_MAX:
        numbers = waiting.pop(0)
        runs += 1
        try:
            told = _ask(module, config_text, refused, libraries, sources, numbers, seconds_max, toolbox)
        except TlcError:
            middle = len(numbers) // 2
            waiting += [half for half in (numbers[:middle], numbers[middle:]) if middle]
            continue
        for trace, number in sorted(told):
            found[trace - 1].append(guards[number - 1])
    return tuple(
        tuple(dict.fromkeys(each)) or _speaking(modules[module], trace[-1])
        for each, trace in zip(found, refused, strict=True)
    )


def _ask(
    module: str,
    config_text: str,
    refused: Sequence[Sequence[Event]],
    libraries: tuple[Path, ...],
    sources: Mapping[str, str],
    numbers: range,
    seconds_max: float,
    toolbox: Toolbox | None,
) -> set[tuple[int, int]]:
    """Pairs of a trace and a guard without which its last event is explained."""
    root = f"{module}Nearest"
    asked = (
        config.parse(config_text).behaviour("NearestInit", "NearestNext").asking("NearestTold", "INVARIANT")
    )
    generated = {
        **sources,
        _NOTES: f"---- MODULE {_NOTES} ----\nVARIABLES guardDropped, stepsSince\n====\n",
        "TraceData": traces_source(refused),
        root: _root(root, module, numbers),
    }
    with tempfile.TemporaryDirectory(prefix="mqproof-nearest-") as name:
        told = Path(name) / "told"
        job = Job(
            root,
            asked.text(),
            libraries,
            generated,
            user_file=told,
            seconds_max=seconds_max,
            stack_mib=64,
            brief=True,
        )
        run(job, toolbox)
        lines = told.read_text(encoding="utf-8").splitlines() if told.exists() else []
    pairs = (values.parse(line) for line in lines)
    return {(pair[0], pair[1]) for pair in pairs if isinstance(pair, tuple)}  # type: ignore[misc]


def _root(root: str, module: str, numbers: range) -> str:
    return f"""---- MODULE {root} ----
EXTENDS {module}, TLC
everything == <<vars, t, l>>
Stuck == guardDropped = 0 /\\ l = Len(Traces[t])
NearestInit == TraceInit /\\ guardDropped = 0 /\\ stepsSince = 0
NearestNext ==
    \\/ /\\ Stuck
       /\\ guardDropped' \\in {numbers.start}..{numbers.stop - 1}
       /\\ UNCHANGED <<TraceView, stepsSince>>
    \\/ /\\ stepsSince < {STEPS_MAX}
       /\\ TraceNext
       /\\ stepsSince' = (IF guardDropped = 0 THEN 0 ELSE stepsSince + 1)
       /\\ UNCHANGED guardDropped
NearestTold == l > Len(Traces[t]) => PrintT(<<t, guardDropped>>)
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
    reached = _reached(modules)
    guards: list[Guard] = []
    sources: dict[str, str] = {}
    for name, module in modules.items():
        spans: list[tuple[int, int, int]] = []
        for definition in module.definitions.values():
            if definition.name not in reached & known or definition.name in _OF_TRACES:
                continue
            for node in _guards(definition, known):
                condition = " ".join(module.source(node).split())
                if not _SELECTS.match(condition):
                    guards.append(Guard(definition.name, condition))
                    spans.append((node.start, node.end, len(guards)))
        if spans:
            sources[name] = extending(_droppable(module.text, spans), module, _NOTES)
    return guards, sources


def _reached(modules: Mapping[str, Module]) -> set[str]:
    """The operators that TraceNext rests on, of whichever module."""
    bodies = {d.name: m.source(d.body) for m in modules.values() for d in m.definitions.values()}
    found: set[str] = set()
    todo = ["TraceNext"]
    while todo:
        name = todo.pop()
        if name not in found:
            found.add(name)
            todo += [word for word in set(re.findall(r"\w+", bodies[name])) if word in bodies]
    return found


def _guards(definition: Definition, changing: frozenset[str]) -> Iterator[Node]:
    """The conditions that stand beside changes in the definition's conjunctions."""
    for node in definition.body.walk():
        if node.op != "/\\" or node.kind not in ("junction", "infix"):
            continue
        told = [speaks_of_next_state(part, changing) for part in node.parts]
        if any(told):
            parts = zip(node.parts, told, strict=True)
            yield from (part for part, changes in parts if not changes and part.op != "/\\")


def _droppable(text: str, spans: Sequence[tuple[int, int, int]]) -> str:
    for start, end, number in sorted(spans, reverse=True):
        # A condition of several lines keeps its columns, for they say what belongs to what.
        column = start - (text.rfind("\n", 0, start) + 1)
        condition = f"\n{' ' * column}{text[start:end]}"
        text = f"{text[:start]}(IF guardDropped = {number} THEN TRUE ELSE {condition}){text[end:]}"
    return text
