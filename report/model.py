"""The one result model: what was asked, what was found, how much was looked at, how to see it again."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final


class Verdict(StrEnum):
    """Three-valued, plus "not tested". Having seen nothing is UNKNOWN, never HELD."""

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
    """When, or which step; empty for what has no time of its own."""
    who: str
    """Who acts; of a script, what was done."""
    what: str
    """What they do; of a script, the answer."""

    def __str__(self) -> str:
        begun = " ".join(filter(None, (self.at, self.who)))
        return ": ".join(filter(None, (begun, self.what)))


@dataclass(frozen=True, slots=True)
class Witness:
    """One piece of evidence: the values that show the violation, and words for a reader."""

    text: str
    values: dict[str, str] = field(default_factory=dict)
    timeline: tuple[Moment, ...] = ()
    """How it came about, in order; empty where nobody asked."""


@dataclass(frozen=True, slots=True)
class Result:
    """One invariant judged by one layer.

    `counts` says how much was looked at (examples, states, rows, ...) and must not be empty when the verdict
    is HELD. `replay` is the command that shows a violation again.
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
    """Of results that were found together each has its share."""
    found: int = 0
    """How many there are, where `witnesses` are only some of them."""
    all_in: str = ""
    """The file that has all of them."""

    def __post_init__(self) -> None:
        if self.verdict is Verdict.HELD and not any(self.counts.values()):
            raise ValueError(f"{self.id} in {self.layer} is held but nothing was counted: that is unknown")

    def more_than(self, shown: int, witnesses_in: str = "") -> str:
        """What a reader is told of those that are not shown; empty where all are. `witnesses_in` is where all
        of `witnesses` are."""
        total = max(self.found, len(self.witnesses))
        if total <= shown:
            return ""
        where = self.all_in if total > len(self.witnesses) else witnesses_in
        return f"{total - shown} more of {total}" + (f", all in {where}" if where else "")


@dataclass(frozen=True, slots=True)
class Figure:
    """A picture for the page: an SVG document, self-contained."""

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
    """What was run: target, seed, versions, sizes, seconds."""
    tables: tuple[Table, ...] = ()
    figures: tuple[Figure, ...] = ()


def overall(results: Iterable[Result]) -> Verdict:
    """VIOLATED if any is; else UNKNOWN if any is or if there is none that HELD; else HELD.

    NOT_TESTED results do not spoil a run in which something was held.
    """
    verdicts = {result.verdict for result in results}
    if Verdict.VIOLATED in verdicts:
        return Verdict.VIOLATED
    if Verdict.UNKNOWN in verdicts or Verdict.HELD not in verdicts:
        return Verdict.UNKNOWN
    return Verdict.HELD


def exit_code(results: Iterable[Result]) -> int:
    """0 everything held, 1 a violation, 3 inconclusive."""
    return {
        Verdict.HELD: Exit.HELD,
        Verdict.VIOLATED: Exit.VIOLATED,
        Verdict.UNKNOWN: Exit.INCONCLUSIVE,
    }[overall(results)]
