"""Counts the verdicts of a campaign, by part, by suite and by operator.

The score of the suites is the share of detected mutants among those that a peer or a restart can show.
survivors.toml states which cannot be shown. Mutants that no suite executes count as not detected: the white
spots are part of the result.
"""

import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from mqproof.conformance.mutation.campaign import Judged
from mqproof.conformance.mutation.examiner import DETECTED, Outcome
from mqproof.conformance.mutation.examiner import Verdict as Judgement
from mqproof.conformance.mutation.survivors import SHOWN, Kind, Survivors, change, stated, stated_of
from mqproof.report.model import Report, Result, Table, Verdict, Witness

TITLE: Final = "mqproof mutate-impl"
_SCORE_COLUMNS: Final = (
    *("mutants", "detected", "endless", "survived", "unreached", "invisible", "score"),
    *("by unit tests", "score with them"),
)
_NAMES_MAX: Final = 3
"""The most suites that a row names."""


def is_detected(one: Judged) -> bool:
    """Return whether a suite detected the mutant."""
    return one.verdict.outcome in DETECTED


def report(
    judged: Sequence[Judged],
    facts: Mapping[str, str],
    goal_percent: int,
    patches: Path | None = None,
    known: Survivors | None = None,
) -> Report:
    """Return the result of a campaign: one result for each part of `impl/`, and the tables.

    `patches` is the folder of the judged patches; None if mutants were judged. `known` is the content of
    survivors.toml, unless a test passes another one.
    """
    known = stated() if known is None else known
    equivalent = {one.mutant for one in judged if stated_of(one.mutant, known).kind is Kind.EQUIVALENT}
    counts = [one for one in judged if is_detected(one) or one.mutant not in equivalent]
    replay = f"mqproof mutate-impl --patches {shlex.quote(str(patches))}" if patches else ""
    results = tuple(
        _result(part, of_part, known, goal_percent, replay or f"mqproof mutate-impl {part}")
        for part, of_part in _grouped(counts, _part_of).items()
    )
    tables = (
        *([_each(judged)] if patches else []),
        _scores("Score by part", "part", _grouped(counts, _part_of), known),
        _scores("Score by module", "module", _grouped(counts, lambda one: one.mutant.module), known),
        _scores("Score by operator", "operator", _grouped(counts, lambda one: one.mutant.operator), known),
        _suites(counts),
        _survivors(judged, known),
    )
    return Report(TITLE, results, {**facts, "equivalent": str(len(judged) - len(counts))}, tables)


def shown(judged: Iterable[Judged], known: Survivors) -> list[Judged]:
    """Return the mutants that a peer or a restart can show."""
    return [one for one in judged if is_detected(one) or stated_of(one.mutant, known).kind in SHOWN]


def percent(judged: Sequence[Judged]) -> int:
    """Return the share of detected mutants, rounded down."""
    return 100 * sum(map(is_detected, judged)) // len(judged) if judged else 0


def _result(part: str, judged: Sequence[Judged], known: Survivors, goal_percent: int, replay: str) -> Result:
    outcomes = Counter(one.verdict.outcome for one in judged)
    score = percent(shown(judged, known))
    missed = [one for one in judged if not is_detected(one)]
    return Result(
        id="SPEC-2",
        name=f"The suites detect mutants of impl/{part}",
        layer="mutate-impl",
        verdict=Verdict.HELD if score >= goal_percent else Verdict.VIOLATED,
        counts={"mutants": len(judged), **{outcome.value: count for outcome, count in outcomes.items()}},
        witnesses=tuple(Witness(f"{one.mutant.id}: {change(one.mutant)}") for one in missed[:3]),
        detail=f"{score}% of the mutants that can be shown are detected; the goal is {goal_percent}%",
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


def _scores(title: str, column: str, groups: Mapping[str, Sequence[Judged]], known: Survivors) -> Table:
    rows = [(name, *_counts(judged, known)) for name, judged in groups.items()]
    rows.append(("all", *_counts([one for judged in groups.values() for one in judged], known)))
    return Table(title, (column, *_SCORE_COLUMNS), tuple(rows))


def _counts(judged: Sequence[Judged], known: Survivors) -> tuple[str, ...]:
    outcomes = Counter(one.verdict.outcome for one in judged)
    missed = [one for one in judged if not is_detected(one)]
    invisible = sum(stated_of(one.mutant, known).kind is Kind.INVISIBLE for one in missed)
    rest = (outcomes[each] for each in (Outcome.ENDLESS, Outcome.SURVIVED, Outcome.UNREACHED))
    numbers = (len(judged), len(judged) - len(missed), *rest, invisible)
    counts = shown(judged, known)
    score = f"{percent(counts)}%" if counts else "none counts"
    return (*map(str, numbers), score, *_with_unit_tests(judged, missed))


def _with_unit_tests(judged: Sequence[Judged], missed: Sequence[Judged]) -> tuple[str, str]:
    """Return how many more mutants the unit tests detect, of those that they judged, and the share of both.

    While some are not judged, the share is the least that it can be.
    """
    tested = [one.by_unit_tests for one in missed if one.by_unit_tests is not None]
    if missed and not tested:
        return "not run", ""
    more = sum(verdict.outcome in DETECTED for verdict in tested)
    share = f"{100 * (len(judged) - len(missed) + more) // len(judged)}%"
    return f"{more} of {len(tested)}", share if len(tested) == len(missed) else f"at least {share}"


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
        detected[ended] += is_detected(one)
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


def _survivors(judged: Iterable[Judged], known: Survivors) -> Table:
    rows = tuple(
        (
            f"{one.mutant.module.removeprefix('mqproof.')}:{one.mutant.line}",
            change(one.mutant),
            one.verdict.outcome.value,
            _names(one.reached_by),
            one.first_input,
            (said := stated_of(one.mutant, known)).kind.value,
            said.reason,
            _test_that_fails(one.by_unit_tests),
        )
        for one in judged
        if not is_detected(one)
    )
    columns = ("line", "change", "outcome", "executed by", "input", "kind", "reason", "unit test that fails")
    return Table("Mutants that no suite detects", columns, rows)


def _names(suites: Sequence[str]) -> str:
    if len(suites) > _NAMES_MAX:
        return f"{len(suites)} suites"
    return ", ".join(suites) or "no suite"


def _test_that_fails(verdict: Judgement | None) -> str:
    if verdict is None:
        return "not run"
    return verdict.by if verdict.outcome in DETECTED else "none"
