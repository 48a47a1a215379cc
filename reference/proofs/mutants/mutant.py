"""The Mutant type: a proof with one action replaced; it must fail with a counterexample."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from mqproof.reference.proofs.proof import Answer, Obligation, Outcome, Proof, refute


@dataclass(frozen=True, slots=True)
class Mutant:
    proof: Proof
    name: str
    invariant: str
    """The catalogue name of the invariant that can no longer be proved."""
    action: str
    apply: Callable[..., tuple[Any, Any]]
    """Replaces that action: (scope, state, *parameters) to the guard and the state after."""
    clause: str = ""
    """The clause that fails, if the invariant fails only after several steps."""

    @property
    def full_name(self) -> str:
        return f"{self.proof.name} {self.name}"

    def broken(self) -> Proof:
        """Return the proof with this mutant's action."""
        actions = tuple(
            replace(action, apply=self.apply) if action.name == self.action else action
            for action in self.proof.actions
        )
        return replace(self.proof, name=self.full_name, actions=actions)

    def refuted(self) -> Answer | None:
        """Return the first obligation with a counterexample to induction, or None if the mutant survives.

        The invariant itself is tried first, unless a clause is named: a single bad step is the clearest. If
        violating the invariant takes several steps, a clause of the inductive invariant fails instead.
        """
        broken = self.broken()
        answers = (refute(broken, Obligation(self.action, name)) for name in self._conclusions())
        return next((answer for answer in answers if answer.outcome is Outcome.REFUTED), None)

    def _conclusions(self) -> Iterator[str]:
        yield self.clause or self.invariant
        yield from self.proof.clauses
