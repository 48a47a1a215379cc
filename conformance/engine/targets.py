"""What the engine knows of a target: its name, what it can be asked for, and how it fails."""

from collections.abc import Iterable, Mapping
from typing import Final, Protocol, TypeVar

T = TypeVar("T")

REFERENCE: Final = "reference"
IMPL: Final = "impl"
REMOTING: Final = "remoting://"
MUTANT: Final = "mutant:"
APACHE: Final = "apache:"
PYTHON: Final = "python:"


class TargetError(Exception):
    """The target cannot be driven: it cannot be reached, or its tooling failed. One line for a person."""


class UnknownTargetError(ValueError):
    """No target has this name; the message lists the names that exist."""


class UnknownMutantError(UnknownTargetError):
    """No mutant of one suite has this name; `known` are the mutants of the suite."""

    def __init__(self, name: str, known: Iterable[str]) -> None:
        self.known = tuple(known)
        super().__init__(f"{name!r} is no mutant of this suite, expected one of {', '.join(self.known)}")


class Examined(Protocol):
    """A target, as far as every suite knows it."""

    @property
    def name(self) -> str:
        """As given to `--target`."""
        ...

    @property
    def capabilities(self) -> frozenset[str]:
        """What the target can be asked for besides the calls that every target of the suite must offer."""
        ...

    def close(self) -> None:
        """Free everything. Works in any state, also twice."""
        ...


def mutant_named(name: str, known: Mapping[str, T]) -> T:
    """Return the mutant of `mutant:NAME`. Raises UnknownMutantError."""
    try:
        return known[name.removeprefix(MUTANT)]
    except KeyError:
        raise UnknownMutantError(name, known) from None
