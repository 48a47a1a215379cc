"""Counterexamples and their text form: numbered steps with the action's name and only its changes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from mqproof.spec.tlc.values import Function, State, Value, show

_WIDTH: Final = 100


@dataclass(frozen=True, slots=True)
class Step:
    """One state of a behaviour and the action that led to it."""

    number: int
    """The number of the step, from 1."""
    action: str
    """The action of the step; empty for the initial state, and if TLC did not report it."""
    state: State


@dataclass(frozen=True, slots=True)
class Trace:
    """A behaviour. A liveness counterexample is infinite: it stutters or returns to an earlier step."""

    steps: tuple[Step, ...]
    stutters: bool = False
    back_to: int | None = None
    """The number of the step where the loop begins."""
    back_by: str = ""
    """The action that closes the loop."""

    def __len__(self) -> int:
        return len(self.steps)

    @property
    def actions(self) -> tuple[str, ...]:
        """The actions in order, without the initial state."""
        return tuple(step.action for step in self.steps[1:])


def render(trace: Trace) -> str:
    """Return the trace as numbered steps, each with the variables that its action changed."""
    lines: list[str] = []
    before: State | None = None
    for step in trace.steps:
        lines.append(f"{step.number:>3}  {step.action or ('initial state' if before is None else 'a step')}")
        changes = list(_initial(step.state) if before is None else changed(before, step.state))
        width = max((len(name) for name, _ in changes), default=0)
        lines += [f"       {name:{width}}  {text}" for name, text in changes] or ["       nothing changes"]
        before = step.state
    if trace.stutters:
        lines.append("     and then nothing happens forever (stuttering)")
    if trace.back_to is not None:
        by = f" by {trace.back_by}" if trace.back_by else ""
        lines.append(f"     and back to step {trace.back_to}{by}, forever")
    return "\n".join(lines)


def changed(before: State, after: State) -> Iterator[tuple[str, str]]:
    """Yield the differences of two states: where (`count[n1]`, `log`) and how (`0 -> 2`, `appended "m1"`)."""
    for name in after:
        if name not in before:
            yield str(name), _short(show(after[name]))
        elif before[name] != after[name]:
            yield from _difference(str(name), before[name], after[name])


def _initial(state: State) -> Iterator[tuple[str, str]]:
    for name, value in state.items():
        yield str(name), _short(show(value))


def _difference(path: str, before: Value, after: Value) -> Iterator[tuple[str, str]]:
    if isinstance(before, tuple) and isinstance(after, tuple):
        yield from _sequence_difference(path, before, after)
    elif isinstance(before, frozenset) and isinstance(after, frozenset):
        parts = [f"+ {show(value)}" for value in _sorted(after - before)]
        parts += [f"- {show(value)}" for value in _sorted(before - after)]
        yield path, _short(", ".join(parts))
    elif isinstance(before, Function) and isinstance(after, Function) and before.keys() == after.keys():
        for key in after:
            if before[key] != after[key]:
                place = f"{path}.{key}" if isinstance(key, str) else f"{path}[{show(key)}]"
                yield from _difference(place, before[key], after[key])
    else:
        yield path, _short(f"{show(before)} -> {show(after)}")


def _sequence_difference(
    path: str, before: tuple[Value, ...], after: tuple[Value, ...]
) -> Iterator[tuple[str, str]]:
    if len(after) > len(before) and after[: len(before)] == before:
        yield path, _short("appended " + _listed(after[len(before) :]))
    elif len(after) < len(before) and before[: len(after)] == after:
        yield path, _short(f"cut to length {len(after)}, lost " + _listed(before[len(after) :]))
    elif len(after) < len(before) and before[len(before) - len(after) :] == after:
        yield path, _short("took from the front " + _listed(before[: len(before) - len(after)]))
    elif len(after) == len(before):
        for index, (old, new) in enumerate(zip(before, after, strict=True), start=1):
            if old != new:
                yield from _difference(f"{path}[{index}]", old, new)
    else:
        yield path, _short(f"{show(before)} -> {show(after)}")


def _listed(values: Sequence[Value]) -> str:
    return ", ".join(map(show, values))


def _sorted(values: frozenset[Value]) -> list[Value]:
    return sorted(values, key=show)


def _short(text: str) -> str:
    return text if len(text) <= _WIDTH else text[: _WIDTH - 3] + "..."
