"""Applies all rules to one history, with results for people and programs."""

import gc
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO, Final

from mqproof.conformance.engine.finding import Finding
from mqproof.conformance.history import linearizations
from mqproof.conformance.history.certificates import certificates, regular
from mqproof.conformance.history.lines import Line, decode_lines
from mqproof.conformance.history.pairing import record
from mqproof.conformance.history.parallel import Timed, findings
from mqproof.conformance.history.record import Record
from mqproof.conformance.history.rules import RULES, Rule
from mqproof.conformance.history.split.judged_parts import judge_in_parts
from mqproof.report.model import Report, Result, Table, Verdict
from mqproof.spec.catalogue import catalogue

LAYER: Final = "history"


@dataclass(frozen=True, slots=True)
class Judged:
    """One rule's finding on one history."""

    rule: Rule
    finding: Finding
    seconds: float


def judge(history: Iterable[Line] | Record, processes: int = 1) -> list[Judged]:
    """Apply every rule. If lines are missing, nothing is `held`, and rules based on absence are `unknown`."""
    sorted_out = history if isinstance(history, Record) else record(history)
    return _judged(sorted_out, findings(sorted_out, processes))


def _judged(history: Record, found: Timed) -> list[Judged]:
    judged = []
    for rule in RULES:
        finding, seconds = found[rule.id]
        if history.gap_count and (finding.verdict is Verdict.HELD or rule.by_absence):
            # Only the missing lines could decide it.
            finding = Finding(Verdict.UNKNOWN, finding.counts, finding.witnesses)
        judged.append(Judged(rule, finding, seconds))
    return judged


def check_files(
    paths: Sequence[Path], order_file: BinaryIO | None = None, certificate_file: BinaryIO | None = None, *,
    processes: int = 1, parts: int = 1,
) -> Report:  # fmt: skip
    """Check the histories of all files, one after the other, the rules of each in so many processes.

    A folder is a history in columns, which is not split, and has no orders. With several parts, a history is
    split into parts on disk, which are judged separately. The orders of the queues are written to
    `order_file`, and the certificates of the verdicts to `certificate_file`.

    Raises:
        HistoryError: a line is not of a history.
        OSError: a file cannot be read, or a part cannot be written.
    """
    reports = []
    for path in paths:
        if path.is_dir():
            reports.append(_check_columns(path, certificate_file, processes))
            continue
        if parts > 1:
            reports.append(_check_in_parts(path, order_file, certificate_file, processes, parts))
            continue
        with path.open("rb") as file:
            lines = decode_lines(file, str(path))
            reports.append(check(lines, str(path), order_file, certificate_file, processes=processes))
    if len(reports) == 1:
        return reports[0]
    return Report(
        f"{len(reports)} histories",
        tuple(
            replace(result, detail=": ".join(filter(None, (str(path), result.detail))))
            for path, report in zip(paths, reports, strict=True)
            for result in report.results
        ),
        tables=tuple(table for report in reports for table in report.tables),
    )


def check(
    history: Iterable[Line], name: str, order_file: BinaryIO | None = None,
    certificate_file: BinaryIO | None = None, *, processes: int = 1,
) -> Report:  # fmt: skip
    """Check a history; `name` is its source, which is used in the command that repeats the check."""
    began = time.perf_counter()
    with _no_collection():
        sorted_out = record(history)
        read_seconds = time.perf_counter() - began
        judged = judge(sorted_out, processes)
        rows = None
        if order_file is not None:
            found = list(linearizations.orders(sorted_out))
            order_file.writelines(map(linearizations.written, found))
            rows = list(map(linearizations.row, found))
        if certificate_file is not None and not sorted_out.gap_count:
            findings_of = {each.rule.id: each.finding for each in judged}
            certificate_file.writelines(certificates(sorted_out, findings_of))
    check_seconds = time.perf_counter() - began - read_seconds
    seconds = {"seconds to read": f"{read_seconds:.1f}", "seconds to check": f"{check_seconds:.1f}"}
    return _report(sorted_out, name, judged, rows, seconds)


def _check_in_parts(
    path: Path, order_file: BinaryIO | None, certificate_file: BinaryIO | None, processes: int, parts: int
) -> Report:
    began = time.perf_counter()
    with _no_collection():
        found = judge_in_parts(path, parts, processes, certificate_file, order_file)
    seconds = {"parts": str(parts), "seconds": f"{time.perf_counter() - began:.1f}"}
    rows = None if order_file is None else found.rows
    return _report(found.whole, str(path), _judged(found.whole, found.findings), rows, seconds)


def _check_columns(folder: Path, certificate_file: BinaryIO | None, processes: int) -> Report:
    from mqproof.conformance.history.columns.judged_columns import judge_columns  # needs numpy

    began = time.perf_counter()
    with _no_collection():
        found = judge_columns(folder, processes)
        if certificate_file is not None:
            findings_of = {rule: finding for rule, (finding, _) in found.findings.items()}
            certificate_file.write(regular(found.cleared))
            certificate_file.writelines(certificates(found.whole, findings_of))
    facts = {
        "queues judged from columns": str(len(found.cleared)),
        "queues judged from lines": str(len(found.others)),
        "seconds": f"{time.perf_counter() - began:.1f}",
    }
    rows = tuple(found.others.items())
    table = Table("Queues judged from lines", ("queue", "reason"), rows)
    return _report(found.whole, str(folder), _judged(found.whole, found.findings), None, facts, table)


def _report(
    history: Record,
    name: str,
    judged: list[Judged],
    rows: list[linearizations.Row] | None,
    facts: dict[str, str],
    *more: Table,
) -> Report:
    """Return the report; `rows` are those of the table of orders."""
    tables = [table for table in more if table.rows]
    if history.gaps:
        tables.append(Table(f"Gaps in {name}", ("gap",), tuple((gap,) for gap in history.gaps)))
    if rows is not None:
        tables.append(linearizations.table(rows))
    return Report(
        f"history {name}",
        tuple(_result(each, history, LAYER, f"mqproof check-history {name}") for each in judged),
        facts={
            "operations": str(history.operations),
            "faults": str(len(history.faults)),
            "gaps": str(history.gap_count),
            **facts,
        },
        tables=tuple(tables),
    )


@contextmanager
def _no_collection() -> Iterator[None]:
    """Disable garbage collection.

    Millions of objects without cycles are created, and scanning them would take longer than the rules.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def results(history: Record, layer: str, replay: str, processes: int = 1) -> tuple[Result, ...]:
    """Return the results of all rules; `replay` is the command that repeats the check."""
    return tuple(_result(each, history, layer, replay) for each in judge(history, processes))


def _result(judged: Judged, history: Record, layer: str, replay: str) -> Result:
    rule, finding = judged.rule, judged.finding
    invariant = catalogue()[rule.invariant]
    promise = f"{rule.invariant} {invariant.name}"
    if finding.verdict is Verdict.NOT_TESTED:
        detail = f"{promise}: the setup has no bound, or there was no such operation"
        return Result(rule.id, rule.name, layer, Verdict.NOT_TESTED, finding.counts, detail=detail)
    if finding.verdict is Verdict.UNKNOWN and not any(finding.counts.values()):
        detail = f"{promise}: the history has no relevant operation"
        return Result(rule.id, rule.name, layer, Verdict.NOT_TESTED, finding.counts, detail=detail)
    if finding.verdict is Verdict.UNKNOWN:
        why = "lines are missing" if history.gap_count else "the history is not sufficient to decide"
        return Result(rule.id, rule.name, layer, Verdict.UNKNOWN, finding.counts, finding.witnesses,
                      f"{promise}: {why}")  # fmt: skip
    violated = finding.verdict is Verdict.VIOLATED
    return Result(
        rule.id, rule.name, layer, finding.verdict, finding.counts, finding.witnesses,
        promise if violated else "", replay if violated else "", judged.seconds,
    )  # fmt: skip
