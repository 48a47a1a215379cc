"""Audits one log on both engines and compares all results, row by row."""

import tempfile
from collections import Counter
from collections.abc import Collection, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pyspark.sql import SparkSession

from mqproof.spark_audit.audit import Audit, audit
from mqproof.spark_audit.checks import CHECKS, EVENT_CHECKS
from mqproof.spark_audit.engine import active
from mqproof.spark_audit.engine.embedded.database import Database
from mqproof.spark_audit.evidence.options import Options
from mqproof.spark_audit.generator.store_directory import SLOTS
from mqproof.spark_audit.judging.findings import all_found, query
from mqproof.spark_audit.sources.embedded_read import EmbeddedLog, read_embedded
from mqproof.spark_audit.sources.inputs import find_files
from mqproof.spark_audit.sources.read import Log, read
from mqproof.spark_audit.sources.spark_stores import read_stores
from mqproof.spark_audit.sources.store.embedded_stores import read_embedded_stores
from mqproof.spark_audit.sources.store.stored import Stored

NO_STORES: Final[dict[str, Path]] = {}


@dataclass(frozen=True, slots=True)
class Outcome:
    """All results of an audit that must not depend on the engine."""

    findings: Counter[tuple[Any, ...]]
    """All rows of schema.FINDING_COLUMNS, explained ones included."""
    verdicts: dict[str, tuple[str, str, dict[str, int]]]
    """Verdict, detail and counts of each check."""
    tallies: dict[str, int]
    witnesses: dict[str, tuple[str, ...]]
    unreadable_rows: int
    torn_files: int
    facts: tuple[Any, ...]

    def differences(self, other: "Outcome") -> list[Any]:
        found: list[Any] = [
            *((row, "only in the first", n) for row, n in (self.findings - other.findings).items()),
            *((row, "only in the second", n) for row, n in (other.findings - self.findings).items()),
        ]
        for name in ("verdicts", "tallies", "witnesses"):
            one, two = getattr(self, name), getattr(other, name)
            found += [
                (key, one.get(key), two.get(key)) for key in {**one, **two} if one.get(key) != two.get(key)
            ]
        for name in ("unreadable_rows", "torn_files", "facts"):
            if getattr(self, name) != getattr(other, name):
                found.append((name, getattr(self, name), getattr(other, name)))
        return found


def on_spark(
    spark: SparkSession,
    paths: list[str],
    options: Options,
    stores: Mapping[str, Path] = NO_STORES,
    ids: Collection[str] = (),
) -> Outcome:
    with tempfile.TemporaryDirectory() as folder:
        log = read(spark, paths, Path(folder))
        stored = read_stores(spark, stores, Path(folder), SLOTS) if stores else None
        return _outcome(_judged(log, Path(folder), options, stored, ids), log.rows, log.torn_files)


def on_embedded(
    paths: list[str],
    options: Options,
    stores: Mapping[str, Path] = NO_STORES,
    ids: Collection[str] = (),
) -> Outcome:
    with (
        tempfile.TemporaryDirectory() as folder,
        active.embedded(),
        closing(Database(Path(folder))) as database,
    ):
        log = read_embedded(database, find_files(paths), Path(folder))
        stored = read_embedded_stores(database, stores, SLOTS) if stores else None
        return _outcome(_judged(log, Path(folder), options, stored, ids), log.rows, log.torn_files)


def _judged(
    log: Log | EmbeddedLog, folder: Path, options: Options, stored: Stored | None, ids: Collection[str]
) -> Audit:
    """Judge by the checks of these ids, or by all that the inputs allow."""
    checks = {name: CHECKS[name] for name in ids} or (CHECKS if stored else EVENT_CHECKS)
    return audit(
        log.event_log,
        folder,
        options=options,
        store=stored,
        checks=checks,
        given_rows=log.rows,
        pictures=False,
    )


def _outcome(done: Audit, rows: int, torn_files: int) -> Outcome:
    seen = done.overview
    return Outcome(
        findings=Counter(query(f"SELECT * FROM {all_found(done.findings)}")),
        verdicts={each.id: (each.verdict, each.detail, dict(each.counts)) for each in done.results},
        tallies=done.tallies,
        witnesses={each.id: tuple(witness.text for witness in each.witnesses) for each in done.results},
        unreadable_rows=done.unreadable_rows,
        torn_files=torn_files,
        facts=(
            seen, done.deduplicated_rows, done.skew_us, done.skew_seen_us, rows, done.set_aside_rows,
            done.set_aside,
        ),
    )  # fmt: skip
