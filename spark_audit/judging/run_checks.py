"""Runs the checks over the evidence, two at a time, and judges their findings."""

import time
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from mqproof.report.model import Result, Verdict
from mqproof.spark_audit.checks import Check
from mqproof.spark_audit.checks.check import gaps_of, known_findings
from mqproof.spark_audit.evidence.gaps import gaps_text
from mqproof.spark_audit.evidence.history import History
from mqproof.spark_audit.evidence.tables import Evidence
from mqproof.spark_audit.judging.findings import (
    FINDINGS_FOLDER,
    counts_by_rule,
    found_by_rule,
    witnesses,
    written,
)
from mqproof.spark_audit.judging.verdict import CONSEQUENCES, judge
from mqproof.spec.catalogue import catalogue

_PARALLEL: Final = 2
"""Number of checks run at a time: Spark plans one while it runs the other, and both take about as long."""


@dataclass(frozen=True, slots=True)
class Judged:
    """The results of all checks."""

    results: tuple[Result, ...]
    explained: Counter[tuple[str, str, str]]
    """Number of findings by (invariant, rule, cause): legal, but counted."""

    @property
    def ran(self) -> list[str]:
        """The invariants whose checks ran."""
        return [result.id for result in self.results if result.verdict is not Verdict.NOT_TESTED]


@dataclass(frozen=True, slots=True)
class Judging:
    """The inputs of the checks, and of the judgement of their findings."""

    evidence: Evidence
    tallies: Mapping[str, int]
    event_rows: int
    """Number of rows of this run's log."""
    missing_rows: int
    """Number of missing or unreadable rows: each may be the event that explains a violation."""
    scratch: Path
    """The findings are written into its folder `findings`."""
    history: History
    since: str
    """The text of complete_since: from when on the log of each node is complete, or empty."""
    replay: str
    """The command that repeats this run, without its checks."""
    say: Callable[[str], None]


def run_checks(checks: Mapping[str, Check], judging: Judging) -> Judged:
    """Run the checks and judge their findings. Runs jobs."""
    with ThreadPoolExecutor(_PARALLEL) as pool:
        done = [each for each in pool.map(lambda of: _run(of[0], of[1], judging), checks.items()) if each]
    explained = Counter(
        {
            (each.result.id, rule, cause): n
            for each in done
            for (rule, cause), n in each.counts.items()
            if cause is not None
        }
    )
    return Judged(tuple(_with_consequences(each.result, explained) for each in done), explained)


def _with_consequences(result: Result, explained: Mapping[tuple[str, str, str], int]) -> Result:
    """Count under an invariant what other checks found because it is violated."""
    found: Counter[tuple[str, str]] = Counter()
    for (invariant, rule, cause), n in explained.items():
        if CONSEQUENCES.get(cause) == result.id:
            found[invariant, rule] += n
    if not found:
        return result
    shown = ", ".join(f"{invariant} {rule} {n}" for (invariant, rule), n in sorted(found.items()))
    detail = f"{result.detail}; consequences: {shown}".removeprefix("; ")
    counts = {**result.counts, "consequences": found.total()}
    return replace(result, counts=counts, detail=detail)


@dataclass(frozen=True, slots=True)
class _Ran:
    """The result of a check."""

    result: Result
    counts: Mapping[tuple[str, str | None], int] = field(default_factory=dict)
    """Number of findings by (rule, cause)."""


def _run(invariant: str, check: Check, judging: Judging) -> _Ran | None:
    """Run one check; return None if its findings are not sufficient for a verdict."""
    started = time.monotonic()
    tallies = judging.tallies
    if check.needs and not any(tallies[name] for name in check.needs):
        return _Ran(_not_tested(invariant, check))
    name = catalogue()[invariant].name
    judging.say(f"{invariant} {name}")
    path = judging.scratch / FINDINGS_FOLDER / invariant
    found = known_findings(check, judging.evidence)
    written(judging.history.only_new(found, judging.scratch, invariant), path)
    counts = counts_by_rule(path)
    if not (judging.event_rows or counts) and _needs_events(check, judging.evidence):
        return None
    of_events = (judging.missing_rows, judging.since) if check.of_events else (0, "")
    dropped = gaps_text(gaps_of(check, judging.evidence))
    verdict, detail = judge(check, tallies, counts, *of_events, dropped)
    result = Result(
        id=invariant,
        name=name,
        layer="audit",
        verdict=verdict,
        counts=check.examined(tallies) | found_by_rule(check, counts),
        witnesses=witnesses(path, check),
        found=sum(n for (_, cause), n in counts.items() if cause is None),
        all_in="violations.parquet (--out)",
        detail=detail,
        replay=judging.replay and f"{judging.replay} --id {invariant}",
        seconds=time.monotonic() - started,
    )
    return _Ran(result, counts)


def _needs_events(check: Check, evidence: Evidence) -> bool:
    """Return whether stores can show a violation, but only events can show that the invariant held."""
    of_both = check.of_stores and check.of_events
    return evidence.store is not None and of_both and not check.stores_suffice


def _not_tested(invariant: str, check: Check) -> Result:
    needed = " or ".join(name.replace("_", " ") for name in check.needs)
    name = catalogue()[invariant].name
    return Result(invariant, name, "audit", Verdict.NOT_TESTED, detail=f"the input has no {needed}")
