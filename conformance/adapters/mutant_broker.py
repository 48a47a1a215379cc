"""A mutant of our broker as a target of the flush suite."""

from contextlib import ExitStack

from mqproof.conformance.adapters.impl import ImplTarget
from mqproof.conformance.mutants.mutant import Mutant
from mqproof.conformance.mutants.replacement import injected
from mqproof.conformance.suites.flush.target import Setup


class MutantTarget(ImplTarget):
    """The target `impl`, with the mutant's defect while it is open."""

    def __init__(self, mutant: Mutant) -> None:
        super().__init__(f"mutant:{mutant.name}")
        self._mutant = mutant
        self._injected = ExitStack()

    def open(self, setup: Setup) -> None:
        self._injected.enter_context(injected(self._mutant))
        super().open(setup)

    def close(self) -> None:
        with self._injected:
            super().close()
