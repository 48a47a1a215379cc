"""Judges buckets and messages in this process, by the work that Spark's tasks do in an audit.

The facts about the whole log come from the embedded engine. So no query has to be planned by Spark, which
takes longer than all else if the log is small.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema

from mqproof.spark_audit.engine import functions as f
from mqproof.spark_audit.evidence.broker_cuts import append_outcomes
from mqproof.spark_audit.evidence.options import Options
from mqproof.spark_audit.evidence.participants import Participants, participants_of
from mqproof.spark_audit.evidence.places import name_broker
from mqproof.spark_audit.passes import fingerprint, sums
from mqproof.spark_audit.passes.bucket_plan import BucketPlan, Guess
from mqproof.spark_audit.passes.fingerprint import Buckets
from mqproof.spark_audit.passes.message_judgement import TALLIED
from mqproof.spark_audit.passes.profile import RARE_KINDS, profiled_rows
from mqproof.spark_audit.passes.sums import Known
from mqproof.spark_audit.scan.partial_aggregates import PARTIAL_AGGREGATES
from mqproof.spark_audit.scan.partition import WHOLE, Fold, of_rows
from mqproof.spark_audit.scan.sql import Work, of_aggregates
from mqproof.spark_audit.spark_schema import PASS
from tests.spark_audit.conftest import embedded_log, table

OUTCOMES = pa.schema(
    [
        ("cut_node", pa.string()),
        *((name, pa.int64()) for name in ("after_seq", "until_seq", "kept_end")),
        ("is_at_risk", pa.bool_()),
    ]
)


@dataclass(frozen=True)
class Judged:
    buckets: Buckets
    messages: frozenset[str]
    """Ids of the messages that are checked exactly."""
    tallies: dict[str, int]
    """Tallies of the messages that are in no clean bucket."""


def judged(
    rows: Sequence[Mapping[str, Any]], brokers: tuple[str, ...], options: Options | None = None
) -> Judged:
    """Judge all buckets of a log, and each message of the buckets that are read."""
    options = options or Options()
    log, (known, participants) = table([*map(dict, rows)]), facts(rows, brokers, options)
    plan = BucketPlan(Guess(), options.id_prefix, options.sample, parts=1)
    expected = fingerprint.expected_readers(plan.guess, participants.readers, participants.topics)
    assert expected is not None, "without a guess, each topic is a class"
    partial = folded(log, fingerprint.fold(plan), to_arrow_schema(PASS))
    buckets = fingerprint.judged(merged(partial, fingerprint.judging(plan, known, expected, brokers)))
    summed = folded(
        log, sums.message_fold(known, plan.prefix, buckets.read, plan.parts), PARTIAL_AGGREGATES, sums.SUMMED
    )
    messages = merged(summed, sums.judging(known, plan.prefix, plan.sample, return_all=False)).to_pylist()
    ids = frozenset(row["msg_id"] for row in messages if row["part"] == "message" and not row["clean"])
    of_tallies = [row for row in messages if row["part"] == "tally"]
    tallies = {name: sum(row[name] for row in of_tallies) for name in TALLIED}
    return Judged(buckets, ids, tallies)


def facts(
    rows: Sequence[Mapping[str, Any]], brokers: tuple[str, ...], options: Options
) -> tuple[Known, Participants]:
    with embedded_log(rows) as log:
        participants = participants_of(profiled_rows(log.events), brokers)
        rare = name_broker(log.events, brokers).where(f.col("kind").isin(*RARE_KINDS))
        outcomes = append_outcomes(rare, options).select(*OUTCOMES.names).collect()
    cut = pa.Table.from_pylist([row.asDict() for row in outcomes], OUTCOMES)
    return Known(participants.readers_table, cut, participants.roles), participants


def folded(log: pa.Table, fold: Fold, schema: pa.Schema, columns: Sequence[str] = WHOLE) -> pa.Table:
    """Return the result of a fold over the log as one partition."""
    return pa.Table.from_batches([*of_rows([fold], schema, columns)(iter(log.to_batches()))], schema)


def merged(partial: pa.Table, work: Work) -> pa.Table:
    return pa.Table.from_batches([*of_aggregates(work)(iter(partial.to_batches()))], work.schema)
