"""Counts the verdicts of a campaign, by part, by suite and by operator, and reads the list of equivalents.

A mutant counts unless equivalents.toml names it. The score is the share of counted mutants that a suite
detects. Mutants that no suite executes count as not detected: the white spots are part of the result.
"""

import shlex
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from mqproof.conformance.mutation.campaign import Judged
from mqproof.conformance.mutation.examiner import DETECTED, Outcome
from mqproof.conformance.mutation.operators import Mutant
from mqproof.report.model import Report, Result, Table, Verdict, Witness

EQUIVALENTS_FILE: Final = Path(__file__).with_name("equivalents.toml")
TITLE: Final = "mqproof mutate-impl"
_SCORE_COLUMNS: Final = ("mutants", "detected", "endless", "survived", "unreached", "score")


class EquivalentsError(ValueError):
    """equivalents.toml has a line of another form; the message names it."""


def key(mutant: Mutant) -> str:
    """Return the name of a mutant in equivalents.toml; it does not change when lines move."""
    return f"{mutant.operator}: {mutant.before} -> {mutant.after}"


def equivalents(file: Path = EQUIVALENTS_FILE) -> Mapping[str, Mapping[str, str]]:
    """Return the reasons why a mutant cannot be observed, by module and key.

    Raises:
        EquivalentsError: a value is not a reason.
    """
    found: dict[str, Mapping[str, str]] = {}
    for module, reasons in tomllib.loads(file.read_text(encoding="utf-8")).items():
        if not isinstance(reasons, dict) or not all(
            isinstance(reason, str) and reason for reason in reasons.values()
        ):
            raise EquivalentsError(f"{file}: [{module!r}]: expected lines of the form MUTANT = REASON")
        found[module] = reasons
    return found


def counted(
    judged: Iterable[Judged], reasons: Mapping[str, Mapping[str, str]]
) -> tuple[tuple[Judged, ...], tuple[Judged, ...]]:
    """Return the mutants that count, and those that are equivalent to the original code."""
    counts: list[Judged] = []
    equal: list[Judged] = []
    for one in judged:
        is_equal = key(one.mutant) in reasons.get(one.mutant.module, {})
        (equal if is_equal and one.verdict.outcome not in DETECTED else counts).append(one)
    return tuple(counts), tuple(equal)


def report(
    judged: Sequence[Judged], facts: Mapping[str, str], goal_percent: int, patches: Path | None = None
) -> Report:
    """Return the result of a campaign: one result for each part of `impl/`, and the tables.

    `patches` is the folder of the judged patches; None if mutants were judged.
    """
    counts, equal = counted(judged, equivalents())
    replay = f"mqproof mutate-impl --patches {shlex.quote(str(patches))}" if patches else ""
    results = tuple(
        _result(part, of_part, goal_percent, replay or f"mqproof mutate-impl {part}")
        for part, of_part in _grouped(counts, _part_of).items()
    )
    tables = (
        *([_each(judged)] if patches else []),
        _scores("Score by module", "module", _grouped(counts, lambda one: one.mutant.module)),
        _scores("Score by operator", "operator", _grouped(counts, lambda one: one.mutant.operator)),
        _suites(counts),
        _survivors(counts),
    )
    return Report(TITLE, results, {**facts, "equivalent": str(len(equal))}, tables)


def percent(judged: Sequence[Judged]) -> int:
    """Return the share of detected mutants, rounded down."""
    detected = sum(one.verdict.outcome in DETECTED for one in judged)
    return 100 * detected // len(judged) if judged else 0


def _result(part: str, judged: Sequence[Judged], goal_percent: int, replay: str) -> Result:
    outcomes = Counter(one.verdict.outcome for one in judged)
    score = percent(judged)
    missed = [one for one in judged if one.verdict.outcome not in DETECTED]
    return Result(
        id="SPEC-2",
        name=f"The suites detect mutants of impl/{part}",
        layer="mutate-impl",
        verdict=Verdict.HELD if score >= goal_percent else Verdict.VIOLATED,
        counts={"mutants": len(judged), **{outcome.value: count for outcome, count in outcomes.items()}},
        witnesses=tuple(Witness(f"{one.mutant.id}: {key(one.mutant)}") for one in missed[:3]),
        detail=f"{score}% of the mutants are detected; the goal is {goal_percent}%",
        replay=replay,
        found=len(missed),
    )


def _grouped(judged: Iterable[Judged], name: Callable[[Judged], str]) -> dict[str, list[Judged]]:
    groups: dict[str, list[Judged]] = {}
    for one in sorted(judged, key=lambda one: (name(one), one.mutant.module, one.mutant.number)):
        groups.setdefault(name(one), []).append(one)
    return groups


def _part_of(one: Judged) -> str:
    return one.mutant.module.split(".")[2]


def _scores(title: str, column: str, groups: Mapping[str, Sequence[Judged]]) -> Table:
    rows = [(name, *_counts(judged)) for name, judged in groups.items()]
    rows.append(("all", *_counts([one for judged in groups.values() for one in judged])))
    return Table(title, (column, *_SCORE_COLUMNS), tuple(rows))


def _counts(judged: Sequence[Judged]) -> tuple[str, ...]:
    outcomes = Counter(one.verdict.outcome for one in judged)
    detected = sum(outcomes[each] for each in DETECTED)
    rest = (outcomes[each] for each in (Outcome.ENDLESS, Outcome.SURVIVED, Outcome.UNREACHED))
    return (str(len(judged)), str(detected), *map(str, rest), f"{percent(judged)}%")


def _suites(judged: Iterable[Judged]) -> Table:
    """Return for each suite the mutants that it judged, and those that it detected.

    A mutant is judged by the fastest suite first; a suite that did not run might have detected it, too.
    """
    judges, detected = Counter[str](), Counter[str]()
    for one in judged:
        ended = one.verdict.suite
        for suite in one.reached_by:
            judges[suite] += 1
            if suite == ended:
                break
        detected[ended] += one.verdict.outcome in DETECTED
    rows = tuple((suite, str(count), str(detected[suite])) for suite, count in sorted(judges.items()))
    return Table("Mutants by suite, the fastest first", ("suite", "judged", "detected"), rows)


def _each(judged: Iterable[Judged]) -> Table:
    """Return a row for each patch."""
    rows = tuple(
        (
            one.mutant.before,
            f"{one.mutant.module.removeprefix('mqproof.')}:{one.mutant.line}",
            one.verdict.outcome.value,
            one.verdict.suite,
            one.verdict.by,
        )
        for one in judged
    )
    return Table("Patches", ("patch", "line", "outcome", "suite", "invariant or error"), rows)


def _survivors(judged: Iterable[Judged]) -> Table:
    rows = tuple(
        (
            f"{one.mutant.module.removeprefix('mqproof.')}:{one.mutant.line}",
            key(one.mutant),
            one.verdict.outcome.value,
            ", ".join(one.reached_by) or "no suite",
        )
        for one in judged
        if one.verdict.outcome not in DETECTED
    )
    return Table("Mutants that no suite detects", ("line", "change", "outcome", "executed by"), rows)
