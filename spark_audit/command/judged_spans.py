"""Adds the results from OpenTelemetry spans to an audit."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mqproof.report.model import Report, Table, Verdict
from mqproof.spark_audit.command.audit_inputs import AuditInputs

if TYPE_CHECKING:
    from mqproof.spark_audit.judging.outcome import Audit


@dataclass(frozen=True, slots=True)
class SpanRequest:
    """How spans are judged."""

    sampling: float | None
    wanted: Collection[str]
    allowed: Mapping[str, Any]
    """The user's statements, for Options."""
    replay: str
    """The command that repeats the run."""


def with_spans(
    inputs: AuditInputs, done: "Audit", scratch: Path, request: SpanRequest
) -> "tuple[Audit, dict[str, str]]":
    """Return the audit with the results from spans, and the facts about the spans.

    Spans give the verdict of invariants that no better input judges; for others they only add bounds.
    """
    if not inputs.spans:
        return done, {}
    from mqproof.spark_audit.sources.otel.spans import SpanOptions, judge_spans

    options = SpanOptions(request.sampling, done.skew_us, request.allowed["subscriptions"])
    judged = {result.id for result in done.results if result.verdict is not Verdict.NOT_TESTED}
    shown = judge_spans(inputs.spans, scratch, options)
    kept = tuple(
        replace(
            result,
            verdict=Verdict.NOT_TESTED if result.id in judged else result.verdict,
            replay=f"{request.replay} --id {result.id}",
        )
        for result in shown.results
        if result.id in request.wanted
    )
    return replace(done, results=done.results + kept), {"spans": shown.line()}


def with_facts(report: Report, facts: Mapping[str, str], tables: tuple[Table, ...] = ()) -> Report:
    """Return the report with more facts and tables."""
    return replace(report, facts={**report.facts, **facts}, tables=report.tables + tables)
