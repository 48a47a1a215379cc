"""What stands between the suite and an implementation: one module for each kind of target.

Begin with `resolve`, which turns the name given to `--target` into a factory of targets. The protocol that
they implement is conformance/suites/flush/target.py.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeVar

from mqproof.conformance.faults.shell_commands import Controls
from mqproof.conformance.suites.flush.target import Target

__all__ = ["Target", "UnknownTargetError", "resolve"]

T = TypeVar("T")

REFERENCE: Final = "reference"
IMPL: Final = "impl"
REMOTING: Final = "remoting://"
MUTANT: Final = "mutant:"
APACHE: Final = "apache:"
PYTHON: Final = "python:"
NO_CONTROLS: Final = Controls()


class UnknownTargetError(ValueError):
    """No target has this name; the message says which names there are."""


class UnknownMutantError(UnknownTargetError):
    """Of one suite; `known` are those that it has."""

    def __init__(self, name: str, known: Iterable[str]) -> None:
        self.known = tuple(known)
        super().__init__(f"{name!r} is no mutant of this suite, expected one of {', '.join(self.known)}")


def mutant_called(name: str, known: Mapping[str, T]) -> T:
    """The one of `mutant:NAME`. Raises UnknownMutantError."""
    try:
        return known[name.removeprefix(MUTANT)]
    except KeyError:
        raise UnknownMutantError(name, known) from None


def resolve(name: str, controls: Controls = NO_CONTROLS) -> Callable[[], Target]:
    """The factory of the target called `reference`, `impl`, `remoting://HOST:PORT`, `mutant:NAME` or
    `python:MODULE:CLASS`. `controls` do to a running broker what the wire cannot.

    Raises:
        UnknownTargetError: the name is none of these.
    """
    # Imported late: an examination of a cluster does not need the broker, and the other way round.
    if name == REFERENCE:
        from mqproof.conformance.adapters.reference import ReferenceTarget

        return ReferenceTarget
    if name == IMPL:
        from mqproof.conformance.adapters.impl import ImplTarget

        return ImplTarget
    if name.startswith(REMOTING):
        return _remoting(name, controls)
    if name.startswith(MUTANT):
        from mqproof.conformance.mutants.flush import MUTANTS, MutantTarget

        mutant = mutant_called(name, MUTANTS)
        return lambda: MutantTarget(mutant)
    if name.startswith(PYTHON):
        from mqproof.conformance.adapters.python_class import adapter

        return adapter(name, Target)
    raise UnknownTargetError(
        f"{name!r} is no target, expected reference, impl, remoting://HOST:PORT, mutant:NAME or"
        " python:MODULE:CLASS"
    )


def _remoting(name: str, controls: Controls) -> Callable[[], Target]:
    from mqproof.conformance.adapters.remoting import RemotingTarget, asked_flush_mode
    from mqproof.conformance.faults.controls import by_shell
    from mqproof.impl.runtime.network import Address

    try:
        address = Address.parse(name.removeprefix(REMOTING))
    except ValueError:
        raise UnknownTargetError(f"{name!r}: remoting://HOST:PORT of a name server expected") from None
    mode = asked_flush_mode(address)
    return lambda: RemotingTarget(address, name, by_shell(controls), mode)
