"""The Mutant type: a reference model with one action replaced."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from mqproof.reference.model import Action, Model


@dataclass(frozen=True, slots=True)
class Mutant:
    model: Model[Any, Any]
    name: str
    invariant: str
    """The catalogue name of the invariant that must be violated."""
    action: str
    apply: Callable[..., Any]
    """Replaces that action: (config, state, *parameters) to the next state or None."""
    config: Any
    """The smallest configuration that shows the violation."""

    def broken(self) -> Model[Any, Any]:
        """Return the model with this mutant's action, checked by the mutant's invariant alone."""
        action = self.model.actions[self.action]
        return replace(
            self.model,
            actions={
                **self.model.actions,
                self.action: Action(action.name, self.apply, action.domain, action.choices),
            },
            invariants={n: f for n, f in self.model.invariants.items() if n == self.invariant},
            step_invariants={n: f for n, f in self.model.step_invariants.items() if n == self.invariant},
            liveness={n: f for n, f in self.model.liveness.items() if n == self.invariant},
        )
