"""What a broken variant of a reference model is: one action, replaced."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from mqproof.reference.model import Action, Model


@dataclass(frozen=True, slots=True)
class Mutant:
    model: Model[Any, Any]
    name: str
    invariant: str
    """Catalogue name of what must break."""
    action: str
    apply: Callable[..., Any]
    """Stands in for that action: (config, state, *parameters) to the next state or None."""
    config: Any
    """The smallest configuration that shows it."""

    def broken(self) -> Model[Any, Any]:
        """The model with this mutant's action, judged by the mutant's invariant alone."""
        action = self.model.actions[self.action]
        return replace(
            self.model,
            actions={**self.model.actions, self.action: Action(action.name, self.apply, action.domain)},
            invariants={n: f for n, f in self.model.invariants.items() if n == self.invariant},
            step_invariants={n: f for n, f in self.model.step_invariants.items() if n == self.invariant},
        )
