"""Behaviours for each outcome of each condition of a model's actions, each ending with the outcome.

The model's bounded configurations (smoke and ci) are searched breadth first: the way to an outcome is a
shortest one in the first configuration that has it. If the outcome is that the action is refused, the
behaviour ends with an attempt to take it.

Two steps of a model may be one step of every implementation, and no implementation may take a certain kind of
step. If a shortest way separates such steps or contains such a step, there is another behaviour that does
not, from the first configuration that has one.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from mqproof.conformance.behaviours.conditions import Conditions, Outcome
from mqproof.conformance.behaviours.corpus import (
    CORPUS,
    SCHEMA,
    Script,
    in_lines,
    read,
    read_lines,
    write_lines,
)
from mqproof.conformance.behaviours.json_values import plain
from mqproof.reference.constants import constants
from mqproof.reference.explorer.search import Label, explore
from mqproof.reference.explorer.search import Step as Taken
from mqproof.reference.explorer.survey import bounded_models
from mqproof.reference.model import Action, Model, Parameters
from mqproof.reference.models import MODELS
from mqproof.spec.model_file import Question, load

FOLDER: Final = CORPUS / "outcomes"
_PROFILES: Final = ("smoke", "ci")


def _enters_at_once(config: Any, state: Any, action: str, parameters: Parameters) -> bool:
    """Return false for a step between a member's discovery of a term and its entry into that term."""
    members = zip(config.nodes, state.role, state.known, state.term, strict=True)
    ready = [node for node, role, known, term in members if role == "CANDIDATE" and known > term]
    return not ready or (action, parameters) == ("NextTerm", (ready[0],))


def _corrects_to_the_end(config: Any, state: Any, action: str, parameters: Parameters) -> bool:
    """Return false for a correction of a group's offset that is not from beyond a queue's end to that end."""
    if action != "CorrectOffset":
        return True
    q, offset = config.queues.index(parameters[0]), parameters[1]
    return bool(offset == len(state.queue[q]) < len(state.seen[q]))


Prompt = Callable[[Any, Any, str, Parameters], bool]
"""Maps (config, state, action, parameters) to whether the step is prompt.

A step is prompt if it does not separate steps that belong together.
"""
PROMPT: Final[Mapping[str, Prompt]] = {"Election": _enters_at_once, "Delivery": _corrects_to_the_end}
"""The predicate of each model."""
_PROMPT_STATES_MAX: Final = 20_000
"""Larger configurations are not searched a second time: that takes minutes."""


@dataclass(frozen=True, slots=True)
class Found:
    """A place where outcomes are reached for the first time."""

    path: tuple[Taken[Any], ...]
    """The steps from an initial state."""
    label: Label
    """The action that is attempted there."""
    after: Any
    """The state after the action; None if the action is refused."""
    outcomes: tuple[Outcome, ...]


def configurations(model: str) -> list[Question]:
    """Return the model's bounded configurations that hold: smoke, then the smallest first."""
    smoke = f"MC{model}_smoke"
    questions = {
        question.config.of("CONSTANT"): question
        for profile in reversed(_PROFILES)
        for question in bounded_models(load(), model, profile)
        if question.violates is None
    }
    return sorted(questions.values(), key=lambda q: (q.name != smoke, _states(q), q.name))


def _states(question: Question) -> int:
    assert question.states is not None, f"{question.name} holds without a size"
    return question.states.low


def walk(
    model: Model[Any, Any],
    config: Any,
    conditions: Conditions[Any, Any],
    wanted: set[Outcome],
    prompt: Prompt = lambda *_: True,
) -> Iterator[Found]:
    """Yield the wanted outcomes that `prompt` steps of this configuration reach.

    These outcomes are removed from `wanted`.
    """
    model = _only(model, prompt)
    # Try every parameter, so that the order does not depend on the order of sets.
    walked = explore(replace(model.exhaustive(), invariants={}, step_invariants={}), config)
    labels = {name: tuple(action.domain(config)) for name, action in model.actions.items()}
    left = {name: {outcome for outcome in wanted if outcome.action == name} for name in model.actions}
    for state in walked.parents:
        for name, domain in labels.items():
            for parameters in domain if left[name] else ():
                if not prompt(config, state, name, parameters):
                    continue
                reached = tuple(sorted(conditions.reached(name, config, state, parameters, left[name])))
                if reached:
                    left[name].difference_update(reached)
                    wanted.difference_update(reached)
                    after = model.actions[name].apply(config, state, *parameters)
                    yield Found(walked.path(state), (name, parameters), after, reached)


def _is_prompt(model: str, config: Any, found: Found) -> bool:
    if model not in PROMPT:
        return True
    nexts = [*((step.action, step.parameters) for step in found.path[1:]), found.label]
    return all(PROMPT[model](config, at.state, *label) for at, label in zip(found.path, nexts, strict=True))


def _only(model: Model[Any, Any], prompt: Prompt) -> Model[Any, Any]:
    """Return the model without steps that are not prompt."""

    def only(action: Action[Any, Any]) -> Action[Any, Any]:
        def apply(config: Any, state: Any, *parameters: Any) -> Any:
            is_prompt = prompt(config, state, action.name, parameters)
            return action.apply(config, state, *parameters) if is_prompt else None

        return replace(action, apply=apply)

    return replace(model, actions={name: only(action) for name, action in model.actions.items()})


def lines(model: str, states_max: int | None = None) -> Iterator[tuple[str, list[str]]]:
    """Yield each configuration with outcomes that no smaller one has: its name, and the lines of its file.

    Configurations with more states than `states_max` are left out.
    """
    reference = MODELS[model]
    conditions = Conditions(reference)
    wanted = {outcome for action in reference.actions for outcome in conditions.outcomes(action)}
    apart: set[Outcome] = set()
    for question in configurations(model):
        if states_max is not None and _states(question) > states_max:
            return
        given = constants(question.config.text())
        config = reference.from_constants(given)
        found = list(walk(reference, config, conditions, wanted))
        apart.update(o for each in found if not _is_prompt(model, config, each) for o in each.outcomes)
        if apart and _states(question) <= _PROMPT_STATES_MAX:
            found += walk(reference, config, conditions, apart, PROMPT[model])
        if found:
            head = {
                "schema": SCHEMA,
                "model": model,
                "configuration": question.name,
                "constants": plain(given),
                "states": _states(question),
                "initial": [plain(state) for state in reference.initial(config)],
            }
            yield question.name, list(in_lines(head, (_row(each, head["initial"]) for each in found)))


def _row(found: Found, initial: list[Any]) -> dict[str, Any]:
    taken = list(found.path)
    if found.after is not None:
        taken.append(Taken(*found.label, found.after))
    states = [plain(step.state) for step in taken]
    row: dict[str, Any] = {
        "initial": initial.index(states[0]),
        "steps": [
            [step.action, plain(step.parameters), _changes(before, after)]
            for step, before, after in zip(taken[1:], states, states[1:], strict=False)
        ],
    }
    if found.after is None:
        row["disabled"] = [len(taken) - 1, [plain(found.label)]]
    return row | {"outcomes": [list(outcome) for outcome in found.outcomes]}


def _changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in after.items() if value != before[name]}


def files(model: str, folder: Path = FOLDER) -> list[Path]:
    """Return the files of a model's outcomes, one per configuration."""
    return sorted(folder.glob(f"MC{model}_*.jsonl.xz"))


def behaviours(model: str, folder: Path = FOLDER) -> Iterator[Script]:
    """Yield all behaviours of a model's outcomes. Raises OSError, CorpusError."""
    for path in files(model, folder):
        yield from read(read_lines(path), str(path))


def write_files(model: str, folder: Path = FOLDER, states_max: int | None = None) -> Iterator[Path]:
    """Remove the old files, and write the current ones. Yields the path of each written file."""
    for old in files(model, folder):
        old.unlink()
    for name, text_lines in lines(model, states_max):
        path = folder / f"{name}.jsonl.xz"
        write_lines(text_lines, path)
        yield path


def there_are(model: str) -> Collection[Outcome]:
    """Return all possible outcomes of a model's actions, reached or not."""
    conditions = Conditions(MODELS[model])
    return [outcome for action in MODELS[model].actions for outcome in conditions.outcomes(action)]
