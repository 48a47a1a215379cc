"""Judges logs of the second writer, and compares the findings with what was injected.

    python -m tests.spark_audit.independent.judged 100

prints recall and precision of each kind of anomaly over this number of seeds, and the findings in clean logs.
"""

import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from mqproof.spark_audit.audit import Audit, audit, violations
from mqproof.spark_audit.engine import active
from mqproof.spark_audit.engine.embedded.database import Database
from mqproof.spark_audit.sources.embedded_read import read_embedded
from mqproof.spark_audit.sources.inputs import find_files
from tests.spark_audit.independent import anomalies, ledger_anomalies
from tests.spark_audit.independent.anomalies import Truth, Violation
from tests.spark_audit.independent.clean_cluster import LENGTH_S, OPTIONS, build_clean_cluster
from tests.spark_audit.independent.collection import Damage, collect
from tests.spark_audit.independent.simulation import BEGIN, MS, SECOND, Cluster

SKEWS_US = (5 * SECOND, 0, 200 * MS, SECOND)
ROTATED_S, READ_S = 40, 195
KEPT_WHOLE = ("harness",)
"""The program that injects faults does not rotate its log."""


@dataclass(frozen=True)
class Outcome:
    """The violations of a log: those injected, and those found."""

    injected: list[Violation]
    missed: list[Violation]
    unexpected: list[dict[str, Any]]


@contextmanager
def audited(seed: int, truth: Truth | None = None) -> Iterator[Audit]:
    """Yield the audit of the log of a seed, with all anomalies if `truth` is given."""
    cluster = Cluster(seed, SKEWS_US[seed % 4])
    build_clean_cluster(cluster)
    if truth is not None:
        anomalies.inject(cluster, truth)
        ledger_anomalies.inject(cluster, truth)
    cluster.run(BEGIN + LENGTH_S * SECOND)
    random = Random(seed)
    with tempfile.TemporaryDirectory() as folder, active.embedded():
        collect(cluster.rows, _damage(seed), random, Path(folder), KEPT_WHOLE)
        with tempfile.TemporaryDirectory() as scratch, closing(Database(Path(scratch))) as database:
            log = read_embedded(database, find_files([folder]), Path(scratch))
            yield audit(log, Path(scratch), options=OPTIONS, given_rows=log.rows, pictures=False)


def _damage(seed: int) -> Damage:
    """Return the damage of a seed. Seed 0 has every kind of damage."""
    return Damage(
        rotated_until=BEGIN + ROTATED_S * SECOND if seed % 3 < 2 else 0,
        ends_at=BEGIN + READ_S * SECOND if seed % 4 < 3 else None,
        is_shuffled=seed % 5 < 4,
        is_given_twice=seed % 7 < 6,
    )


def outcome(seed: int, *, clean: bool) -> Outcome:
    """Judge the log of a seed."""
    truth = Truth()
    with audited(seed, None if clean else truth) as done:
        found = violations(done)
    missed, unexpected = list(truth.violations), []
    for finding in found:
        match = next((each for each in missed if _is_found(each, finding)), None)
        if match:
            missed.remove(match)
        else:
            unexpected.append(finding)
    return Outcome(truth.violations, missed, unexpected)


def _is_found(expected: Violation, finding: dict[str, Any]) -> bool:
    if (expected.invariant, expected.rule) != (finding["invariant"], finding["rule"]):
        return False
    texts = " ".join(str(value) for value in finding.values())
    return all(
        value in texts if name == "names" else finding[name] == value for name, value in expected.columns
    )


def _print_table(seeds: int) -> None:
    injected: Counter[tuple[str, str]] = Counter()
    missed: Counter[tuple[str, str]] = Counter()
    unexpected: Counter[tuple[str, str]] = Counter()
    in_clean = 0
    for seed in range(seeds):
        judged = outcome(seed, clean=False)
        injected.update((each.invariant, each.rule) for each in judged.injected)
        missed.update((each.invariant, each.rule) for each in judged.missed)
        unexpected.update((each["invariant"], each["rule"]) for each in judged.unexpected)
        in_clean += len(outcome(seed, clean=True).unexpected)
    print(f"| invariant | rule | injected | recall | precision |\n|{'---|' * 5}")
    for kind in sorted({*injected, *unexpected}):
        right = injected[kind] - missed[kind]
        found = right + unexpected[kind]
        shares = (_share(right, injected[kind]), _share(right, found))
        print("|", " | ".join((*kind, str(injected[kind]), *shares)), "|")
    print(f"\n{seeds} logs with anomalies; {in_clean} findings in {seeds} clean logs")


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.3f}" if whole else "-"


if __name__ == "__main__":
    _print_table(int(sys.argv[1]))
