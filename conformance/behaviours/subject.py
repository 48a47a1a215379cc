"""What behaviours are replayed on: one class for each model, and the reference for all.

A target takes the steps of a script one by one and tells after each what can be seen of it, variable by
variable as the model has them. What it tells is compared; what it does not tell is not.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any, Protocol

from mqproof.conformance.behaviours.corpus import Script, Stimulus, Variables, bounded
from mqproof.conformance.behaviours.plain import plain
from mqproof.reference.model import Action, Parameters
from mqproof.reference.models import MODELS


class DeviationError(AssertionError):
    """The target does what the model does not. The message tells what."""


class ImpossibleError(Exception):
    """The target cannot be brought to take this step: nobody who drives it from outside could."""


class BehaviourTarget(Protocol):
    def open(self, script: Script) -> None:
        """Begin where the script begins; it is known whole, so that a flush may begin long before it ends."""

    def take(self, at: int) -> None:
        """Take that step of the script. Raises DeviationError, ImpossibleError."""

    def look(self) -> Variables:
        """What can be seen now, without changing anything."""

    def refuses(self, step: Stimulus) -> bool:
        """Try a step that is disabled now. Returns False when nobody could even ask for it. Whether anything
        changed is looked at by who calls.

        Raises:
            DeviationError: it was done. ImpossibleError: as if False.
        """

    def close(self) -> None: ...


class ReferenceTarget:
    """The reference model itself: it shows everything."""

    def __init__(self, model: str) -> None:
        self._model = MODELS[model]

    def open(self, script: Script) -> None:
        self._config = bounded(self._model.name, script.configuration)
        self._parameters = _parameters(self._model.name, script.configuration)
        self._steps = script.steps
        self._state = next(s for s in self._model.initial(self._config) if plain(s) == script.initial)

    def take(self, at: int) -> None:
        after = self._after(self._steps[at])
        if after is None:
            raise DeviationError(f"{self._steps[at].action} is disabled")
        self._state = after

    def look(self) -> Variables:
        shown: Variables = plain(self._state)
        return shown

    def refuses(self, step: Stimulus) -> bool:
        if self._after(step) is not None:
            raise DeviationError(f"{step.action} is enabled")
        return True

    def close(self) -> None:
        pass

    def _after(self, step: Stimulus) -> Any:
        action: Action[Any, Any] = self._model.actions[step.action]
        parameters: Parameters = self._parameters[step.action, _key(step.parameters)]
        return action.apply(self._config, self._state, *parameters)


@cache
def _parameters(model: str, configuration: str) -> Mapping[tuple[str, str], Parameters]:
    """All that actions are applied to, by the action and how it is written."""
    config = bounded(model, configuration)
    return {
        (name, _key(parameters)): parameters
        for name, action in MODELS[model].actions.items()
        for parameters in action.domain(config)
    }


def _key(parameters: object) -> str:
    return repr(plain(parameters))
