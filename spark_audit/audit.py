"""Runs the checks over an event log and judges their findings.

The verdict is unknown if there is no evidence, or if missing rows could explain the violations.
"""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from mqproof.spark_audit.checks import EVENT_CHECKS, Check
from mqproof.spark_audit.engine import active
from mqproof.spark_audit.engine.frames import DataFrame
from mqproof.spark_audit.evidence.collected import Collected
from mqproof.spark_audit.evidence.gaps import found_gaps, gaps_text
from mqproof.spark_audit.evidence.history import NO_HISTORY, History
from mqproof.spark_audit.evidence.options import Options
from mqproof.spark_audit.evidence.skew import with_skew
from mqproof.spark_audit.evidence.tables import Evidence
from mqproof.spark_audit.judging.findings import FINDINGS_FOLDER
from mqproof.spark_audit.judging.outcome import (
    Audit,
    violation_times,
    violations,
    violations_by,
    write_violations,
)
from mqproof.spark_audit.judging.run_checks import Judging, run_checks
from mqproof.spark_audit.judging.tallies import tally
from mqproof.spark_audit.judging.verdict import complete_since, judge
from mqproof.spark_audit.passes.profile import Overview, overview
from mqproof.spark_audit.sources.store.stored import Stored

if TYPE_CHECKING:
    from mqproof.spark_audit.sources.embedded_read import EmbeddedLog
    from mqproof.spark_audit.sources.event_log import EventLog


def audit(
    log: "DataFrame | EventLog | EmbeddedLog",
    scratch: Path,
    *,
    options: Options | None = None,
    store: Stored | None = None,
    checks: Mapping[str, Check] = EVENT_CHECKS,
    unreadable_rows: int = 0,
    given_rows: int = 0,
    replay: str = "",
    pictures: bool = True,
    figures: bool = False,
    progress: Callable[[str], None] | None = None,
    history: History = NO_HISTORY,
) -> Audit:
    """Judge the log by the checks. Writes all findings below `scratch`, which must exist.

    With the `history` of an incremental run, only findings that no earlier run had are reported.

    Checks of stores need `store`. `unreadable_rows` were in the input and are not in the log: like missing
    rows, they weaken the verdicts. If `given_rows` (all rows of the input) is given, unreadable rows are
    derived from it. With `figures`, lag and latencies are measured, too.

    Raises:
        InputError: two nodes have the same name, or times are not microseconds. pyspark's own errors: a
        file is damaged.
    """
    say = progress or (lambda _: None)
    with _collected(log, options, store, history, pictures=pictures, scratch=scratch) as seen:
        overview, brokers = seen.overview, seen.overview.brokers
        say(f"{overview.rows} events of {len(overview.nodes)} nodes")
        tallies = tally(seen.evidence, overview)
        evidence, skew_seen_us = with_skew(_with_gaps(seen.evidence, tallies))
        aside = seen.set_aside.rows
        unreadable = max(unreadable_rows, given_rows - overview.rows - seen.repeated_rows - aside)
        missing = max(overview.missing_rows, unreadable + aside)
        since = complete_since(overview)
        judging = Judging(evidence, tallies, overview.rows, missing, scratch, history, since, replay, say)
        judged = run_checks(checks, judging)
        shown = _pictures(evidence, seen, say) if pictures and overview.rows else {}
        measured = _figures(evidence, say) if figures and overview.rows else None
        withdrawn = history.close(evidence, seen.examined, brokers, scratch, judged.ran)
        return Audit(
            overview=overview,
            tallies=tallies,
            results=judged.results,
            explained=judged.explained,
            findings=scratch / FINDINGS_FOLDER,
            deduplicated_rows=seen.repeated_rows,
            pictures=shown,
            withdrawn=withdrawn,
            skew_us=evidence.options.skew_us,
            skew_seen_us=skew_seen_us,
            unreadable_rows=unreadable,
            set_aside_rows=aside,
            set_aside=seen.set_aside.shown,
            gaps=gaps_text(evidence.gaps),
            figures=measured,
        )


def _collected(
    log: "DataFrame | EventLog | EmbeddedLog",
    options: Options | None,
    store: Stored | None,
    history: History,
    *,
    pictures: bool,
    scratch: Path,
) -> AbstractContextManager[Collected]:
    if active.is_embedded():
        from mqproof.spark_audit.evidence.embedded_collect import embedded_collected

        return embedded_collected(cast("EmbeddedLog", log), options, store, history, pictures=pictures)
    from mqproof.spark_audit.evidence.collect import collected

    of_spark = cast("DataFrame | EventLog", log)
    return collected(of_spark, options, store, history, pictures=pictures, scratch=scratch)


def _with_gaps(evidence: Evidence, tallies: Mapping[str, int]) -> Evidence:
    if not tallies["gap_events"]:
        return evidence
    return replace(evidence, gaps=found_gaps(evidence.rare, evidence.profile))


def _figures(evidence: Evidence, say: Callable[[str], None]) -> Any:
    say("computing lag and latencies")
    from mqproof.spark_audit.reporting.traffic_figures import traffic_figures

    return traffic_figures(evidence)


def _pictures(evidence: Evidence, seen: Collected, say: Callable[[str], None]) -> dict[str, list[Any]]:
    say("computing the plots")
    from mqproof.spark_audit.reporting.plot_data import pictures as draw

    return draw(evidence, seen.overview, seen.examined.profile, seen.examined.own)


__all__ = [
    "Audit",
    "Overview",
    "audit",
    "judge",
    "overview",
    "violations",
    "violations_by",
    "violation_times",
    "write_violations",
]
