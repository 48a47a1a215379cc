"""The one pass over an event log: its profile, its runs and its buckets."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame

from mqproof.spark_audit.evidence.options import Options
from mqproof.spark_audit.passes import fingerprint, profile_partition, sequences
from mqproof.spark_audit.passes.bucket_plan import BucketPlan, Guess, parts_of
from mqproof.spark_audit.scan.partition import Fold
from mqproof.spark_audit.scan.run_over_log import fold
from mqproof.spark_audit.sources.event_log import EventLog
from mqproof.spark_audit.sources.store.stored import Stored
from mqproof.spark_audit.spark_schema import PASS


@dataclass(frozen=True, slots=True)
class Passed:
    """Results of one pass over the whole log, partition by partition."""

    rows: DataFrame
    """All results: schema.PASS."""
    profile_and_runs: DataFrame
    """The profile and the runs, partitioned by node."""
    plan: BucketPlan | None
    """How buckets were aggregated; None if they were not."""

    def plus(self, other: "Passed") -> "Passed":
        """Add the results for another log."""
        return Passed(
            self.rows.unionByName(other.rows),
            self.profile_and_runs.unionByName(other.profile_and_runs),
            self.plan,
        )


Keep = Callable[[DataFrame], DataFrame]


def sum_up(log: EventLog, plan: BucketPlan | None = None, keep: Keep = lambda frame: frame) -> Passed:
    """Return the results of one pass over the log. `keep` stores tables that are read more than once."""
    rows = fold(log, folds(plan), PASS)
    if plan:
        rows = keep(rows)
    cores = log.rows.sparkSession.sparkContext.defaultParallelism
    # The table is small and read by several jobs, each of which would have one task per split.
    profile_and_runs = rows.where("part IN ('profile', 'run')").repartition(cores, "node")
    return Passed(rows, keep(profile_and_runs), plan)


def plan_buckets(
    log: EventLog,
    options: Options,
    store: Stored | None = None,
    guess: Guess | None = None,
    folder: Path | None = None,
) -> BucketPlan | None:
    """Return how the buckets of a log are aggregated; None if every message is checked exactly."""
    if reads_all(options, store):
        return None
    return BucketPlan(guess or Guess(), options.id_prefix, options.sample, parts_of(log), folder)


def folds(plan: BucketPlan | None) -> tuple[Fold, ...]:
    """Return the folds that the pass applies to each partition."""
    return (
        profile_partition.of_partition,
        sequences.of_partition,
        *((fingerprint.fold(plan),) if plan else ()),
    )


def reads_all(options: Options, store: Stored | None) -> bool:
    """Return whether every message is checked exactly, clean or not."""
    # With a store, every acknowledged message is looked up in it.
    return bool(options.exact) or store is not None
