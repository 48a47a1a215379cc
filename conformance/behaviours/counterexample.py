"""Converts a TLC counterexample of a broken module into a behaviour that is replayed on a target.

The broken module's steps have the names of the model's actions, so a target can be asked to take them. A
correct target must not take them all: a target that does has the defect, and one that deviates from the
counterexample does not.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from mqproof.conformance.behaviours.corpus import TLA, Script, Stimulus
from mqproof.conformance.behaviours.json_values import plain
from mqproof.conformance.behaviours.replay import Failure, replay
from mqproof.conformance.behaviours.subject import BehaviourTarget
from mqproof.reference.constants import constants
from mqproof.reference.model import Model, Parameters
from mqproof.reference.models import MODELS
from mqproof.spec.tlc import config as tlc_config
from mqproof.spec.tlc import values
from mqproof.spec.tlc.graph import ground
from mqproof.spec.tlc.run import Job, run

RECOVERY: Final = {"Flush": ("RecoverLog", "TruncateQueues", "Redispatch", "Start")}
"""Actions, by model, that follow a counterexample ending in a crash, to show what is left."""


class CounterexampleError(ValueError):
    """There is no counterexample that can be replayed. The message says why."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of replaying a counterexample on a target."""

    script: Script
    violated: str
    """The property that the counterexample violates."""
    left: Failure | None
    """Where the target deviates from the counterexample; None if it does not."""
    stuck_at: int | None
    """The step that the target cannot be made to take, which proves nothing.

    If both this and `left` are None, the target takes every step.
    """


def counterexample(model: str, name: str, *, seconds_max: float = 300) -> tuple[Script, str]:
    """Return the counterexample of a broken variant (in spec/tla/mutants/), and the violated property.

    Raises:
        CounterexampleError: no such variant, or its states or actions are not the model's, or nothing is
            violated.
        TlcError: TLC gave no verdict.
    """
    folder = TLA / "mutants"
    file = folder / f"{name}.cfg"
    if not file.is_file():
        raise CounterexampleError(f"{name}: there is no {file.name} in {folder.name}/")
    text = file.read_text(encoding="utf-8")
    reference = MODELS[model]
    given = reference.from_constants(constants(text))
    labels = {
        reference.operator(given, action, parameters): (action, parameters)
        for action, each in reference.actions.items()
        for parameters in each.domain(given)
    }
    operators: dict[str, list[tuple[str, ...]]] = defaultdict(list)
    for operator, arguments in labels:
        operators[operator].append(arguments)
    made = ground(name, text, operators)
    checked = tlc_config.parse(text).properties[0]
    section = "PROPERTY" if checked in tlc_config.parse(text).names("PROPERTY") else "INVARIANT"
    job = Job(
        made.module,
        made.config.asking(checked, section).text(),
        (folder, TLA),
        {made.module: made.source},
        seconds_max=seconds_max,
        brief=True,
    )
    outcome = run(job)
    if outcome.trace is None or outcome.violated is None:
        raise CounterexampleError(f"{name}: the model's own actions do not violate {checked}")
    if outcome.trace.stutters or outcome.trace.back_to is not None:
        raise CounterexampleError(f"{name}: {checked} is a liveness property: no single step violates it")
    parsed = {(op, tuple(map(values.parse, arguments))): label for (op, arguments), label in labels.items()}
    try:
        states = [
            reference.from_tla(given, {str(variable): value for variable, value in step.state.items()})
            for step in outcome.trace.steps
        ]
    except (KeyError, TypeError, ValueError) as error:
        raise CounterexampleError(f"{name}: its states are not those of {model}: {error}") from None
    taken = [parsed[made.labels[step.action]] for step in outcome.trace.steps[1:]]
    try:
        for label, state in _recovery(reference, given, states[-1]):
            taken.append(label)
            states.append(state)
    except ValueError:
        raise CounterexampleError(f"{name}: it ends in a state from which {model} cannot recover") from None
    return _script(taken, states, f"{folder.name}/{name}"), outcome.violated


def _recovery(
    reference: Model[Any, Any], given: Any, state: Any
) -> Iterator[tuple[tuple[str, Parameters], Any]]:
    """Yield the model's own recovery steps after the last state."""
    names = RECOVERY.get(reference.name, ())
    while True:
        steps = ((name, reference.actions[name].apply(given, state)) for name in names)
        name, following = next(((n, after) for n, after in steps if after is not None), ("", None))
        if following is None:
            return
        yield (name, ()), following
        state = following


def _script(taken: Sequence[tuple[str, Parameters]], states: Sequence[Any], configuration: str) -> Script:
    shown = [plain(state) for state in states]
    rows = []
    for (action, parameters), before, after in zip(taken, shown, shown[1:], strict=False):
        changes = {variable: value for variable, value in after.items() if value != before[variable]}
        rows.append(Stimulus(action, tuple(plain(parameters)), changes))
    return Script(shown[0], tuple(rows), configuration=configuration)


def replay_counterexample(model: str, name: str, make: Callable[[], BehaviourTarget]) -> Answer:
    """Replay the counterexample of a variant on a target. Raises the errors of `counterexample`."""
    script, violated = counterexample(model, name)
    seen = replay(make, [script])
    stuck_at = seen.actions.total() if seen.impossible else None
    return Answer(script, violated, seen.failures[0] if seen.failures else None, stuck_at)


def variants(model: str, folder: Path = TLA / "mutants") -> tuple[str, ...]:
    """Return the names of the broken variants of a model."""
    return tuple(sorted(file.stem for file in folder.glob(f"{model}*.cfg")))
