"""The state that an incremental run begins with, and how it joins the run's own rows."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import reduce
from typing import Final

import msgspec
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from mqproof.spark_audit.evidence.places import name_broker, spans_of
from mqproof.spark_audit.evidence.tables import Evidence
from mqproof.spark_audit.passes.message_columns import SCHEDULE_TOPIC
from mqproof.spark_audit.passes.profile import Overview, overview
from mqproof.spark_audit.passes.sequences import SEQUENCE
from mqproof.spark_audit.schema import EVENTS, KEY
from mqproof.spark_audit.sources.inputs import InputError
from mqproof.spec.events import Kind

EARLIER: Final = "(an earlier night)"
"""The node of rows that stand for what was left behind."""

_ORIGIN: Final = (Kind.SEND, Kind.SEND_ACK)

QUEUE: Final = ("broker", "topic", "queue_id")

IDENTITY: Final = (*KEY, "cause", "first_ts")
"""What tells findings of two runs apart; the rest of a finding may grow."""


class Manifest(msgspec.Struct, frozen=True):
    schema: int
    run: int = msgspec.field(name="night")
    """The number of the run that left this state, counted from 1."""
    watermark: int
    """Microseconds: rows before it were left behind, but for those that are carried."""
    missing_rows: int
    """Holes in the sequence numbers that no run has filled."""
    batch: int = -1
    """Of a stream: the number of its newest batch (watch.py)."""


@dataclass(frozen=True, slots=True)
class CarriedState:
    """The state that a run begins with."""

    manifest: Manifest
    rows: DataFrame
    """Events that are looked at again: schema.EVENTS."""
    profile: DataFrame
    """Of all rows of all runs, as profile.py makes it; it has the rare rows in it."""
    steps: DataFrame
    """Odd steps (sequences.py) whose cause may still turn up."""
    reach: DataFrame
    """One row a run and (group, broker, topic, queue_id): offset_min, offset_max, first_ts of what the
    group was handed; without a group, of what was stored."""
    node_states: DataFrame
    """Events by which routes, replication and ledgers are judged: schema.EVENTS."""
    findings: DataFrame
    """schema.FINDINGS with `night`, which found it first, and `final`: all violations, and what else was
    found and is not final."""

    def count(self, own: DataFrame, seen: Overview) -> tuple[DataFrame, Overview]:
        """The profile of all runs; and `seen`, this run's overview, with the brokers of all and what holes
        are new.

        Raises:
            InputError: rows of an earlier run are given again.
        """
        profiled = own.unionByName(self.profile)
        whole = overview(profiled)
        if whole.repeated_rows:
            raise InputError(
                f"{whole.repeated_rows} rows, some of node {whole.repeating_nodes[0]!r}, have the numbers of "
                "rows that an earlier run had, expected only what was logged since"
            )
        new_holes = max(0, whole.missing_rows - self.manifest.missing_rows)
        holed = tuple(node for node in whole.holed_nodes if new_holes and node in seen.nodes)
        return profiled, replace(seen, brokers=whole.brokers, missing_rows=new_holes, holed_nodes=holed)

    def beside(self, own: DataFrame, profiled: DataFrame, brokers: tuple[str, ...]) -> DataFrame:
        """What is needed of earlier runs to judge this run's rows, `profiled`."""
        old = self._old(name_broker(own, brokers)) if self._goes_back(profiled, brokers) else None
        if old is None:
            return self.rows
        return self.rows.unionByName(self._stand_ins(old, own.unionByName(self.rows)))

    def told(self, own: DataFrame) -> DataFrame:
        """Tonight's rows, for checks of what nodes tell in their own order, with where they stood before and
        what was delayed before."""
        delayed = self.rows.where((f.col("kind") == Kind.APPEND) & (f.col("topic") == SCHEDULE_TOPIC))
        return own.unionByName(self.node_states).unionByName(delayed)

    def amend(self, evidence: Evidence, brokers: tuple[str, ...]) -> Evidence:
        """Steps between rows that were no neighbours, because those between were left behind, are none."""
        before = renamed(last_rows(self.profile, brokers), (*SEQUENCE, "seq"))
        met = evidence.steps.where(f.col("node") != EARLIER).join(f.broadcast(before), same(SEQUENCE), "left")
        real = met.where(f.col("seq_of").isNull() | (f.col("seq") > f.col("seq_of")))
        steps = real.select(*evidence.steps.columns).unionByName(self.steps)
        return replace(evidence, steps=steps)

    # What was left behind, and is spoken of again

    def _goes_back(self, profiled: DataFrame, brokers: tuple[str, ...]) -> bool:
        """Some group is handed what lies before its end, or begins with what lies before others' end."""
        begun = spans_of(profiled, brokers).withColumn("queue_offset", f.col("offset_min"))
        return bool(self._old(begun).head(1))

    def _old(self, rows: DataFrame) -> DataFrame:
        """Those deliveries that lie before the end of what was delivered in earlier runs."""
        of_group = self.reach.groupBy("group", *QUEUE).agg(f.max("offset_max").alias("own_end"))
        of_queue = self.reach.groupBy(*QUEUE).agg(f.max("offset_max").alias("any_end"))
        known = rows.where(f.col("kind") == Kind.DELIVER)
        known = known.join(f.broadcast(renamed(of_group, ("group", *QUEUE))), same(("group", *QUEUE)), "left")
        known = known.drop(*[f"{name}_of" for name in ("group", *QUEUE)])
        known = known.join(f.broadcast(renamed(of_queue, QUEUE)), same(QUEUE), "left")
        return known.where(f.col("queue_offset") <= f.coalesce("own_end", "any_end")).select(*rows.columns)

    def _stand_ins(self, old: DataFrame, log: DataFrame) -> DataFrame:
        """Rows for messages that were settled: sent, acknowledged, handed to the groups that passed there.

        When each was delivered is not known any more: no earlier than what its group was handed that run.
        """
        sent = log.where(f.col("kind") == Kind.SEND).select("msg_id")
        # What is carried is all there is of a message: no send of it was recorded.
        stored_only = self.rows.where(f.col("kind") == Kind.APPEND).select("msg_id")
        sent = sent.unionByName(stored_only).distinct()
        places = old.select("msg_id", *QUEUE, "queue_offset").distinct().join(sent, "msg_id", "left_anti")
        covering = (
            same(QUEUE)
            & (f.col("queue_offset") >= f.col("offset_min"))
            & (f.col("queue_offset") <= f.col("offset_max"))
        )
        handed = places.join(f.broadcast(renamed(self.reach, QUEUE)), covering)
        handed = handed.groupBy("msg_id", *QUEUE, "queue_offset", "group").agg(f.min("first_ts").alias("ts"))
        stored = handed.groupBy("msg_id", *QUEUE, "queue_offset").agg(f.min("ts").alias("ts"))
        stored = stored.withColumn("group", f.lit(None).cast("string"))
        # Where producers' logs were never given, their silence tells nothing.
        told = [row["kind"] for row in self.profile.select("kind").distinct().collect()]
        sends = [stored.withColumn("kind", f.lit(str(kind))) for kind in _ORIGIN if kind in told]
        rows = handed.where("group IS NOT NULL").withColumn("kind", f.lit(str(Kind.DELIVER)))
        for part in sends:
            rows = rows.unionByName(part)
        given = {
            "seq": f.lit(0),
            "node": f.lit(EARLIER),
            "status": f.when(f.col("kind") == Kind.SEND_ACK, f.lit("SEND_OK")),
            "attempt": f.when(f.col("kind") == Kind.SEND, f.lit(1)),
            "attrs": f.when(f.col("broker").isNotNull(), f.create_map(f.lit("broker"), f.col("broker"))),
        }
        return rows.select(
            *[
                given.get(field.name, f.col(field.name) if field.name in rows.columns else f.lit(None))
                .cast(field.dataType)
                .alias(field.name)
                for field in EVENTS.fields
            ]
        )


def last_rows(profiled: DataFrame, brokers: tuple[str, ...]) -> DataFrame:
    """One row a sequence of sequences.py: the number of its newest row."""
    return spans_of(profiled, brokers).select(*SEQUENCE, f.col("seq_max").alias("seq"))


def renamed(rows: DataFrame, names: Iterable[str]) -> DataFrame:
    """For the other side of `same`."""
    return rows.withColumnsRenamed({name: f"{name}_of" for name in names})


def same(names: Iterable[str]) -> Column:
    equal = [f.col(name).eqNullSafe(f.col(f"{name}_of")) for name in names]
    return reduce(Column.__and__, equal)
