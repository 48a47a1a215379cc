"""Replays behaviours on a target, and reports which states, steps and actions of the model it took."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from mqproof.conformance.behaviours.conditions import Outcome
from mqproof.conformance.behaviours.corpus import Script, Stimulus, Variables
from mqproof.conformance.behaviours.json_values import order
from mqproof.conformance.behaviours.subject import BehaviourTarget, DeviationError, ImpossibleError

Taken = tuple[str, str, str]
"""A step: state, action with parameters, state; each as text."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A deviation of a target from its model."""

    script: Script
    at: int
    """Index of the step, from 0."""
    why: str


@dataclass(slots=True)
class Replayed:
    scripts: int = 0
    states: set[str] = field(default_factory=set)
    steps: set[Taken] = field(default_factory=set)
    actions: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    """How often a disabled action was attempted and nothing happened."""
    impossible: Counter[str] = field(default_factory=Counter)
    outcomes: set[Outcome] = field(default_factory=set)
    """Outcomes of conditions at the end of scripts that were completed."""
    unasked: set[Outcome] = field(default_factory=set)
    """Outcomes of refused actions that could not be requested from the target."""
    failures: list[Failure] = field(default_factory=list)


def replay(
    make: Callable[[], BehaviourTarget], scripts: Iterable[Script], failures_max: int = 10
) -> Replayed:
    """Run each script on a new target until it deviates or cannot continue.

    Ends after `failures_max` failures.
    """
    seen = Replayed()
    for script in scripts:
        seen.scripts += 1
        target = make()
        target.open(script)
        try:
            _replay(target, script, seen)
        finally:
            target.close()
        if len(seen.failures) >= failures_max:
            break
    return seen


def _replay(target: BehaviourTarget, script: Script, seen: Replayed) -> None:
    states = script.states()
    state = next(states)
    before = order(state)
    seen.states.add(before)
    refused = True
    for at in range(len(script.steps) + 1):
        try:
            if at == script.disabled_at:
                refused = _refused(target, script, seen)
            if at == len(script.steps):
                break
            step = script.steps[at]
            target.take(at)
            state = next(states)
            _compare(target.look(), state)
        except ImpossibleError:
            seen.impossible[step.action] += 1
            return
        except DeviationError as error:
            seen.failures.append(Failure(script, at, str(error)))
            return
        after = order(state)
        seen.states.add(after)
        seen.steps.add((before, f"{step.action} {order(step.parameters)}", after))
        seen.actions[step.action] += 1
        before = after
    (seen.outcomes if refused else seen.unasked).update(script.outcomes)


def _refused(target: BehaviourTarget, script: Script, seen: Replayed) -> bool:
    """Return whether every disabled action could be requested. Raises DeviationError if one was done."""
    before = target.look()
    tried = [_tried(target, each, before) for each in script.disabled]
    seen.refused.update(each.action for each, could in zip(script.disabled, tried, strict=True) if could)
    return all(tried)


def _tried(target: BehaviourTarget, step: Stimulus, before: Variables) -> bool:
    """Return whether the step could be requested. Raises DeviationError if it changed the visible state."""
    try:
        if not target.refuses(step):
            return False
    except ImpossibleError:
        return False
    if target.look() != before:
        raise DeviationError(f"{step.action}{step.parameters} is disabled, but it changed the state")
    return True


def _compare(shown: Variables, expected: Variables) -> None:
    for name, value in shown.items():
        if value != expected[name]:
            raise DeviationError(f"{name} is {_brief(value)}, {_brief(expected[name])} expected")


def _brief(value: Any) -> str:
    text = order(value)
    return text if len(text) <= 200 else f"{text[:200]}..."
