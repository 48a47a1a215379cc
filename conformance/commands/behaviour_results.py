"""Replays the behaviours of one model on a target, and reports how much of the model they covered."""

import itertools
import json
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from mqproof.conformance.behaviours.conditions import Outcome
from mqproof.conformance.behaviours.corpus import Script, bounded, file_of, read, read_lines
from mqproof.conformance.behaviours.cover import Steps, graph
from mqproof.conformance.behaviours.drawing import draw
from mqproof.conformance.behaviours.json_values import order
from mqproof.conformance.behaviours.outcomes import FOLDER, behaviours, there_are
from mqproof.conformance.behaviours.replay import Failure, Replayed, replay
from mqproof.conformance.crash_images import member_images, pair_images, store_images
from mqproof.conformance.subjects.stepped.model_targets import resolve, why_not
from mqproof.reference.models import MODELS
from mqproof.report.model import Figure, Result, Table, Verdict, Witness

_WITNESSES_MAX: Final = 5


@dataclass(frozen=True, slots=True)
class ModelReplay:
    """The result of replaying one model's behaviours."""

    result: Result
    tables: tuple[Table, ...] = ()
    figure: Figure | None = None


@dataclass(frozen=True, slots=True)
class _Coverage:
    """The scripts of one model, and the states and steps that their replay reached."""

    model: str
    states: int
    """States of the model's graph."""
    steps: int
    seen: Replayed
    """The replay of the scripts that cover the graph."""
    ended: Replayed
    """The replay of the scripts that lead to outcomes of conditions."""
    outcomes: frozenset[Outcome]
    """The outcomes to which a script leads."""

    def counts(self) -> dict[str, int]:
        seen, ended = self.seen, self.ended
        return {
            "behaviours": seen.scripts,
            "states": len(seen.states),
            "states_of": self.states,
            "steps": len(seen.steps),
            "steps_of": self.steps,
            "actions": len(seen.actions),
            "actions_of": len(MODELS[self.model].actions),
            "outcomes": len(ended.outcomes),
            "outcomes_of": len(self.outcomes),
            "outcomes_unasked": len(ended.unasked - ended.outcomes),
            "outcomes_never": len(there_are(self.model)) - len(self.outcomes),
            "disabled_tried": sum(seen.refused.values()),
            "impossible": sum(seen.impossible.values()),
        }

    def reached(self) -> str:
        return f"{len(self.ended.outcomes):,} of {len(self.outcomes):,} outcomes of conditions"

    def tables(self) -> tuple[Table, ...]:
        seen, ended, model = self.seen, self.ended, self.model
        rows = tuple(
            (
                action,
                *(str(counted[action]) for counted in (seen.actions, seen.refused, seen.impossible)),
                *(
                    _outcomes_of(action, each)
                    for each in (ended.outcomes, self.outcomes, ended.unasked - ended.outcomes)
                ),
            )
            for action in MODELS[model].actions
        )
        columns = ("action", "taken", "refused", "impossible", "outcomes", "of", "not available")
        return (
            Table(f"{model}: actions", columns, rows),
            _outcomes_table(model, "not reached", self.outcomes - ended.outcomes - ended.unasked),
            _outcomes_table(model, "in no bounded model", set(there_are(model)) - self.outcomes),
        )


def replayed(model: str, target: str, folder: Path, every: int, *, images: bool) -> ModelReplay:
    """Replay every N-th behaviour of the model, and those that lead to outcomes.

    Raises CorpusError for an invalid file, OSError if one cannot be read.
    """
    began = time.perf_counter()
    name = f"Behaviours of {model}"
    make = resolve(target, model)
    if make is None:
        detail = f"{target} does not support this model: {why_not(model)}"
        return ModelReplay(Result("SPEC-1", name, "behaviours", Verdict.NOT_TESTED, detail=detail))
    path = file_of(model, folder)
    lines = read_lines(path)
    head: dict[str, Any] = json.loads(lines[0]) if lines else {}
    scripts = list(itertools.islice(read(lines, str(path)), 0, None, every))
    seen = replay(make, scripts)
    ends = list(behaviours(model, folder / FOLDER.name))
    ended = replay(make, ends)
    outcomes = frozenset(outcome for script in ends for outcome in script.outcomes)
    coverage = _Coverage(model, head["states"], head["steps"], seen, ended, outcomes)
    steps = graph(MODELS[model], bounded(model))
    counts, failures = coverage.counts(), [*seen.failures, *ended.failures]
    if images and target == "impl" and (recovered := _recovered(model, scripts, ends, steps)):
        counts |= recovered.counts
        failures += recovered.failures
    result = Result(
        "SPEC-1",
        name,
        "behaviours",
        Verdict.VIOLATED if failures else Verdict.HELD,
        counts,
        witnesses=tuple(witness(failure) for failure in failures[:_WITNESSES_MAX]),
        detail=f"{100 * len(seen.steps) / head['steps']:.1f} % of the steps, {coverage.reached()}",
        replay=f"mqproof behaviours {model} --target {target} --every {every}",
        seconds=time.perf_counter() - began,
    )
    drawn = draw(model, target, steps, seen.states, seen.steps, coverage.reached())
    return ModelReplay(result, coverage.tables(), Figure(f"{model} on {target}", drawn))


def _recovered(
    model: str, scripts: Sequence[Script], ends: Sequence[Script], steps: Steps[Any]
) -> store_images.Recovered | None:
    """Return the results of recoveries from crash images; None for a model without such images."""
    found = store_images.Recovered()
    match model:
        case "Flush":
            states = store_images.States(steps)
            for script in scripts:
                store_images.expand(script, states, found)
        case "Replication":
            for script in scripts:
                pair_images.expand(script, found)
        case "Election":
            # Members crash only in the larger configurations.
            for script in ends:
                member_images.expand(script, bounded(model, script.configuration).nodes, found)
        case _:
            return None
    return found


def _outcomes_of(action: str, outcomes: Iterable[Outcome]) -> str:
    return str(sum(outcome.action == action for outcome in outcomes))


def _outcomes_table(model: str, which: str, outcomes: Iterable[Outcome]) -> Table:
    rows = tuple((o.action, o.condition, str(o.value).lower()) for o in sorted(outcomes))
    return Table(f"{model}: outcomes of conditions, {which}", ("action", "condition", "is"), rows)


def witness(failure: Failure) -> Witness:
    """Return the failure with the steps that led to it."""
    steps = failure.script.steps[: failure.at + 1]
    path = " ".join(f"{step.action}{order(step.parameters)}" for step in steps)
    return Witness(f"{failure.why}, after {path}", {"step": str(failure.at)})
