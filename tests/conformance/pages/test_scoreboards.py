"""The tables of broker results are generated from reports; entries without a report stay unchanged."""

from mqproof.conformance.pages.scoreboards import (
    SUITES,
    WORKLOAD,
    Table,
    replaced,
    table_of,
    with_suites,
    with_workload,
)
from mqproof.report.model import Report, Result, Verdict
from mqproof.report.model import Table as Shown

HELD, VIOLATED, NOT_TESTED = Verdict.HELD, Verdict.VIOLATED, Verdict.NOT_TESTED


def test_the_tables_of_the_pages_are_read_and_written_unchanged() -> None:
    for page in (SUITES, WORKLOAD):
        text = page.read_text(encoding="utf-8")
        assert replaced(text, table_of(text)) == text


def test_a_report_updates_the_column_of_its_broker_and_the_rows_of_its_suites() -> None:
    table = [["", "4.9.5", "ours"], *([suite, "held", "held"] for suite in ("retry", "admin", "flush"))]
    evidence = Shown(
        "Evidence",
        ("suite", "examples", "operations", "seconds"),
        (("admin", "8", "1,200", "1.0"), ("flush", "9", "40", "1.0")),
    )
    faults = Shown("Faults", ("fault", "flush"), (("SIGKILL", "1,000"), ("SIGSTOP", "3")))
    report = Report(
        "",
        (
            Result("SPEC-1", "ObservationExplained", "retry", HELD, {"observations": 1200}),
            Result("DELIV-7", "RetryThenDeadLetter", "retry", VIOLATED),
            Result("SPEC-1", "ObservationExplained", "admin", HELD, {"observations": 1200}),
            Result("SPEC-1", "ObservationExplained", "flush", HELD, {"observations": 40}),
            Result("FLUSH-1", "SyncAckedDurable", "flush", NOT_TESTED),
        ),
        tables=(evidence, faults),
    )
    assert with_suites(table, "ours", report) == [
        ["", "4.9.5", "ours"],
        ["retry", "held", "violated DELIV-7"],
        ["admin", "held", "held: 8 examples, 1,200 operations"],
        ["flush", "held", "held: 9 examples, 40 operations, 1,003 faults; not tested FLUSH-1"],
    ]


def test_a_suite_of_attacks_counts_its_attacks() -> None:
    evidence = Shown("Evidence", ("suite", "attacks", "seconds"), (("hostile", "38", "11.6"),))
    results = (Result("hostile/frame-short", "a short frame", "hostile", HELD, {"connections": 1}),)
    table = [["", "ours"], ["hostile", "not run"]]
    assert with_suites(table, "ours", Report("", results, tables=(evidence,))) == [
        ["", "ours"],
        ["hostile", "held: 38 attacks"],
    ]


def test_a_new_broker_gets_a_column() -> None:
    results = (Result("SPEC-1", "ObservationExplained", "retry", NOT_TESTED),)
    table = [["", "4.9.5"], ["retry", "held"], ["admin", "held"]]
    assert with_suites(table, "reference", Report("", results)) == [
        ["", "4.9.5", "reference"],
        ["retry", "held", "not tested"],
        ["admin", "held", "not run"],
    ]


def test_a_rule_without_evidence_on_a_broker_is_not_tested_there() -> None:
    table: Table = [["rule", "4.9.5 (7 operations)"], ["A01 lost-write", "3 acknowledged"]]
    evidence = Shown("Evidence", ("suite", "operations"), (("workload", "1,234"),))
    results = (
        Result("A01", "lost-write", "workload", NOT_TESTED, {"acknowledged": 0}),
        Result("C09", "queue double-owned", "workload", HELD, {"assignments": 30, "wrong": 0}),
        Result("C11", "POP invisibility breach", "workload", NOT_TESTED),
    )
    assert with_workload(table, "ours", Report("", results, {}, (evidence,))) == [
        ["rule", "4.9.5 (7 operations)", "ours (1,234 operations)"],
        ["A01 lost-write", "3 acknowledged", "not tested"],
        ["C09 queue double-owned", "not tested", "30 assignments, 0 wrong"],
    ]
