"""Targets on which behaviours are replayed: one class for each model, and the reference for all.

A target takes the steps of a script one by one. After each step it shows its visible state, as variables of
the model. Only the variables that it shows are compared.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any, Protocol

from mqproof.conformance.behaviours.corpus import Script, Stimulus, Variables, bounded
from mqproof.conformance.behaviours.json_values import plain
from mqproof.reference.model import Action, Parameters
from mqproof.reference.models import MODELS


class DeviationError(AssertionError):
    """The target does something that the model does not. The message describes it."""


class ImpossibleError(Exception):
    """The target cannot be made to take this step from outside."""


class BehaviourTarget(Protocol):
    def open(self, script: Script) -> None:
        """Begin in the script's initial state.

        The whole script is known, so a flush may begin long before it ends.
        """

    def take(self, at: int) -> None:
        """Take that step of the script. Raises DeviationError, ImpossibleError."""

    def look(self) -> Variables:
        """Return the currently visible state, without changing anything."""

    def refuses(self, step: Stimulus) -> bool:
        """Attempt a step that is disabled now. Returns False if it cannot even be requested.

        The caller checks whether anything changed.

        Raises:
            DeviationError: it was done.
            ImpossibleError: as if False.
        """

    def close(self) -> None: ...


class ReferenceTarget:
    """The reference model itself: it shows every variable."""

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
    """Return all parameters of actions, by action and text form."""
    config = bounded(model, configuration)
    return {
        (name, _key(parameters)): parameters
        for name, action in MODELS[model].actions.items()
        for parameters in action.domain(config)
    }


def _key(parameters: object) -> str:
    return repr(plain(parameters))
