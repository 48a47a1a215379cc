"""The one pass over an event log: its profile, its runs and its buckets."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame

from mqproof.spark_audit.evidence.options import Options
from mqproof.spark_audit.passes import fingerprint, profile, sequences
from mqproof.spark_audit.passes.bucket_plan import BucketPlan, Guess, parts_of
from mqproof.spark_audit.passes.over_log import fold
from mqproof.spark_audit.passes.partition import Fold
from mqproof.spark_audit.schema import PASS
from mqproof.spark_audit.sources.event_log import EventLog
from mqproof.spark_audit.sources.store_tables import Stored


@dataclass(frozen=True, slots=True)
class Passed:
    """What one pass over the whole log told, partition by partition."""

    rows: DataFrame
    """All of it: schema.PASS."""
    told: DataFrame
    """Its profile and runs; what is of a node together."""
    plan: BucketPlan | None
    """How buckets were summed up; None where they were not."""

    def plus(self, other: "Passed") -> "Passed":
        """What was told of another log, too."""
        return Passed(self.rows.unionByName(other.rows), self.told.unionByName(other.told), self.plan)


Keep = Callable[[DataFrame], DataFrame]


def sum_up(log: EventLog, plan: BucketPlan | None = None, keep: Keep = lambda frame: frame) -> Passed:
    """Pass over the log; a plan."""
    rows = fold(log, folds(plan), PASS)
    if plan:
        rows = keep(rows)
    cores = log.rows.sparkSession.sparkContext.defaultParallelism
    # It is small, and read by several jobs, each of which would have a task a split.
    told = rows.where("part IN ('profile', 'run')").repartition(cores, "node")
    return Passed(rows, keep(told), plan)


def plan_buckets(
    log: EventLog,
    options: Options,
    store: Stored | None = None,
    guess: Guess | None = None,
    folder: Path | None = None,
) -> BucketPlan | None:
    """How the buckets of a log are summed up; not at all where every message is looked at."""
    if reads_all(options, store):
        return None
    return BucketPlan(guess or Guess(), options.id_prefix, options.sample, parts_of(log), folder)


def folds(plan: BucketPlan | None) -> tuple[Fold, ...]:
    """What the pass asks of each partition."""
    return (profile.of_partition, sequences.of_partition, *((fingerprint.fold(plan),) if plan else ()))


def reads_all(options: Options, store: Stored | None) -> bool:
    """Whether every message is looked at, clean or not."""
    # What was acknowledged is looked up in the store, clean or not.
    return bool(options.exact) or store is not None
