"""The properties of a target that the engine uses: its name, its capabilities, and its errors."""

from collections.abc import Iterable, Mapping
from typing import Final, Protocol, TypeVar

T = TypeVar("T")

REFERENCE: Final = "reference"
IMPL: Final = "impl"
REMOTING: Final = "remoting://"
MUTANT: Final = "mutant:"
APACHE: Final = "apache:"
PYTHON: Final = "python:"
STDIO: Final = "stdio:"


class TargetError(Exception):
    """The target cannot be driven: it cannot be reached, or its tools failed.

    The message is one line for people.
    """


class AdapterFailedError(TargetError):
    """The adapter itself does not work: its process ended, is silent, or answers nonsense."""


class EndlessError(Exception):
    """An operation of the target never ends. The message says how that was found out."""


class InternalError(Exception):
    """The code of our own target failed where no caller receives the error, which the message describes."""


class UnknownTargetError(ValueError):
    """No target has this name; the message lists the names that exist."""


class UnknownMutantError(UnknownTargetError):
    """No mutant of one suite has this name; `known` lists the mutants of the suite."""

    def __init__(self, name: str, known: Iterable[str]) -> None:
        self.known = tuple(known)
        super().__init__(f"{name!r} is not a mutant of this suite, expected one of {', '.join(self.known)}")


class Examined(Protocol):
    """The part of a target that is common to all suites."""

    @property
    def name(self) -> str:
        """The name, as passed to `--target`."""
        ...

    @property
    def capabilities(self) -> frozenset[str]:
        """The optional operations of the target, beyond the calls that all targets of the suite offer."""
        ...

    def close(self) -> None:
        """Free all resources. Works in any state, and more than once."""
        ...


def mutant_named(name: str, known: Mapping[str, T]) -> T:
    """Return the mutant with the name `mutant:NAME`. Raises UnknownMutantError."""
    try:
        return known[name.removeprefix(MUTANT)]
    except KeyError:
        raise UnknownMutantError(name, known) from None
