"""The result model of all commands: request, verdicts, number of items examined, replay command."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final


class Verdict(StrEnum):
    """Three-valued, plus "not tested". A check that examined nothing is UNKNOWN, never HELD."""

    HELD = "held"
    VIOLATED = "violated"
    UNKNOWN = "unknown"
    NOT_TESTED = "not tested"


class Exit:
    """Exit codes of every command."""

    HELD: Final = 0
    VIOLATED: Final = 1
    USAGE: Final = 2
    INCONCLUSIVE: Final = 3
    TOOL: Final = 4


@dataclass(frozen=True, slots=True)
class Moment:
    """One line of a timeline."""

    at: str
    """The time or the step; empty if the event has no time of its own."""
    who: str
    """The acting node; in a script, the action."""
    what: str
    """The action of that node; in a script, the answer."""

    def __str__(self) -> str:
        begun = " ".join(filter(None, (self.at, self.who)))
        return ": ".join(filter(None, (begun, self.what)))


@dataclass(frozen=True, slots=True)
class Witness:
    """One item of evidence: the values that show the violation, and a text for a reader."""

    text: str
    values: dict[str, str] = field(default_factory=dict)
    timeline: tuple[Moment, ...] = ()
    """The events that led to the violation, in order; empty if they were not requested."""


@dataclass(frozen=True, slots=True)
class Result:
    """The verdict of one layer on one invariant.

    `counts` holds the number of items examined (examples, states, rows, ...). It must not be empty or zero
    when the verdict is HELD. `replay` is the command that reproduces a violation.
    """

    id: str
    name: str
    layer: str
    verdict: Verdict
    counts: dict[str, int] = field(default_factory=dict)
    witnesses: tuple[Witness, ...] = ()
    detail: str = ""
    """Why the verdict is UNKNOWN or NOT_TESTED, or what was violated, in a sentence."""
    replay: str = ""
    seconds: float = 0.0
    """The duration. Results that were computed together each have an equal part of it."""
    found: int = 0
    """The total number of violations, if `witnesses` holds only some of them."""
    all_in: str = ""
    """The file that contains all violations."""

    def __post_init__(self) -> None:
        if self.verdict is Verdict.HELD and not any(self.counts.values()):
            raise ValueError(f"{self.id} in {self.layer} is held but nothing was counted: that is unknown")

    def more_than(self, shown: int, witnesses_in: str = "") -> str:
        """Return a note on the witnesses that are not shown; empty if all are shown.

        `witnesses_in` names the place that has all of `witnesses`.
        """
        total = max(self.found, len(self.witnesses))
        if total <= shown:
            return ""
        where = self.all_in if total > len(self.witnesses) else witnesses_in
        return f"{total - shown} more of {total}" + (f", all in {where}" if where else "")


@dataclass(frozen=True, slots=True)
class Figure:
    """A picture for the page: a self-contained SVG document."""

    title: str
    svg: str


@dataclass(frozen=True, slots=True)
class Table:
    """A plain table for the page and the terminal."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Report:
    title: str
    results: tuple[Result, ...]
    facts: dict[str, str] = field(default_factory=dict)
    """The facts of the run: target, seed, versions, sizes, seconds."""
    tables: tuple[Table, ...] = ()
    figures: tuple[Figure, ...] = ()


def overall(results: Iterable[Result]) -> Verdict:
    """Return VIOLATED if any result is; else UNKNOWN if any is or none is HELD; else HELD.

    NOT_TESTED results do not change the verdict of a run in which something was held.
    """
    verdicts = {result.verdict for result in results}
    if Verdict.VIOLATED in verdicts:
        return Verdict.VIOLATED
    if Verdict.UNKNOWN in verdicts or Verdict.HELD not in verdicts:
        return Verdict.UNKNOWN
    return Verdict.HELD


def exit_code(results: Iterable[Result]) -> int:
    """Return 0 if everything held, 1 for a violation, 3 if inconclusive."""
    return {
        Verdict.HELD: Exit.HELD,
        Verdict.VIOLATED: Exit.VIOLATED,
        Verdict.UNKNOWN: Exit.INCONCLUSIVE,
    }[overall(results)]
