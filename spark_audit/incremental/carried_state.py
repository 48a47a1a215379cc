"""The state with which an incremental run begins, and how it is joined with the run's own rows."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import reduce
from typing import Final

import msgspec

from mqproof.spark_audit.engine import functions as f
from mqproof.spark_audit.engine.frames import Column, DataFrame
from mqproof.spark_audit.evidence.places import name_broker, spans_of
from mqproof.spark_audit.evidence.tables import Evidence
from mqproof.spark_audit.passes.message_columns import SCHEDULE_TOPIC
from mqproof.spark_audit.passes.profile import Overview, overview
from mqproof.spark_audit.passes.steps import SEQUENCE
from mqproof.spark_audit.schema import EVENT_COLUMNS, KEY
from mqproof.spark_audit.sources.inputs import InputError
from mqproof.spec.events import Kind

EARLIER: Final = "(an earlier run)"
"""The node of rows that stand for rows no longer kept."""

_ORIGIN: Final = (Kind.SEND, Kind.SEND_ACK)

QUEUE: Final = ("broker", "topic", "queue_id")

IDENTITY: Final = (*KEY, "cause", "first_ts")
"""Columns that identify a finding across runs; its other columns may change."""


class Batch(msgspec.Struct, frozen=True):
    """A batch of a watch, and the places in its input that follow it."""

    number: int = -1
    """Counted from 0; -1 if there was no batch."""
    files: tuple[str, ...] = ()
    """The files of the watched folders that were read; empty if Spark's checkpoint knows them."""
    places: dict[str, int] = {}
    """`TOPIC@BROKER:QUEUE` to the offset of its next message, likewise."""


NO_BATCH: Final = Batch()


class Manifest(msgspec.Struct, frozen=True):
    schema: int
    run: int = msgspec.field(name="night")
    """The number of the run that left this state, counted from 1."""
    watermark: int
    """Microseconds: rows before it are no longer kept, except those that are carried."""
    missing_rows: int
    """Gaps in the sequence numbers that no run has filled."""
    batch: int = -1
    """For a watch: the number of its newest batch."""
    files: tuple[str, ...] = ()
    """For a watch without Spark: as in Batch."""
    places: dict[str, int] = {}
    """Likewise."""

    @property
    def newest_batch(self) -> Batch:
        return Batch(self.batch, self.files, self.places)


@dataclass(frozen=True, slots=True)
class CarriedState:
    """The state with which a run begins."""

    manifest: Manifest
    rows: DataFrame
    """Events that are examined again: schema.EVENT_COLUMNS."""
    profile: DataFrame
    """The profile of all rows of all runs, as profile.py makes it, including the rare rows."""
    steps: DataFrame
    """Odd steps (sequences.py) whose cause may still be found."""
    reach: DataFrame
    """One row per run and (group, broker, topic, queue_id): the extent of its deliveries.

    The extent is offset_min, offset_max, first_ts. Rows without a group describe the stored messages.
    """
    node_states: DataFrame
    """Events needed to judge routing, replication and ledgers: schema.EVENT_COLUMNS."""
    findings: DataFrame
    """schema.FINDING_COLUMNS with `night` (the run that found it first) and `final`.

    It has all violations, and other findings that are not final.
    """

    def count(self, own: DataFrame, seen: Overview) -> tuple[DataFrame, Overview]:
        """Return the profile of all runs, and this run's overview.

        The overview has the brokers of all runs, and only new gaps.

        Raises:
            InputError: rows of an earlier run are given again.
        """
        profiled = own.unionByName(self.profile)
        whole = overview(profiled)
        if whole.repeated_rows:
            raise InputError(
                f"{whole.repeated_rows} rows, some of node {whole.repeating_nodes[0]!r}, have the numbers of "
                "rows of an earlier run, expected only rows logged since"
            )
        new_holes = max(0, whole.missing_rows - self.manifest.missing_rows)
        holed = tuple(node for node in whole.holed_nodes if new_holes and node in seen.nodes)
        return profiled, replace(
            seen,
            brokers=whole.brokers,
            missing_rows=new_holes,
            holed_nodes=holed,
            begun_late=whole.begun_late,
            complete_from=whole.complete_from,
        )

    def needed_rows(self, own: DataFrame, profiled: DataFrame, brokers: tuple[str, ...]) -> DataFrame:
        """Return the rows of earlier runs that are needed to judge this run's rows, `profiled`."""
        old = self._old(name_broker(own, brokers)) if self._refers_to_earlier(profiled, brokers) else None
        if old is None:
            return self.rows
        return self.rows.unionByName(self._substitutes(old, own.unionByName(self.rows)))

    def with_node_states(self, own: DataFrame) -> DataFrame:
        """Return this run's rows with the carried state, for checks of what nodes report in their own order.

        The carried state has earlier node states and earlier delayed messages.
        """
        delayed = self.rows.where((f.col("kind") == Kind.APPEND) & (f.col("topic") == SCHEDULE_TOPIC))
        return own.unionByName(self.node_states).unionByName(delayed)

    def amend(self, evidence: Evidence, brokers: tuple[str, ...]) -> Evidence:
        """Remove steps between rows that were not neighbours: rows between them are no longer kept."""
        before = renamed(last_rows(self.profile, brokers), (*SEQUENCE, "seq"))
        joined = evidence.steps.where(f.col("node") != EARLIER).join(
            f.broadcast(before), same(SEQUENCE), "left"
        )
        real = joined.where(f.col("seq_of").isNull() | (f.col("seq") > f.col("seq_of")))
        steps = real.select(*evidence.steps.columns).unionByName(self.steps)
        return replace(evidence, steps=steps)

    # Rows that are no longer kept, and are referred to again

    def _refers_to_earlier(self, profiled: DataFrame, brokers: tuple[str, ...]) -> bool:
        """Return whether a group receives messages before its end, or starts before the end of others."""
        begun = spans_of(profiled, brokers).withColumn("queue_offset", f.col("offset_min"))
        return bool(self._old(begun).head(1))

    def _old(self, rows: DataFrame) -> DataFrame:
        """Return the deliveries that lie before the end of what was delivered in earlier runs."""
        of_group = self.reach.groupBy("group", *QUEUE).agg(f.max("offset_max").alias("own_end"))
        of_queue = self.reach.groupBy(*QUEUE).agg(f.max("offset_max").alias("any_end"))
        known = rows.where(f.col("kind") == Kind.DELIVER)
        known = known.join(f.broadcast(renamed(of_group, ("group", *QUEUE))), same(("group", *QUEUE)), "left")
        known = known.drop(*[f"{name}_of" for name in ("group", *QUEUE)])
        known = known.join(f.broadcast(renamed(of_queue, QUEUE)), same(QUEUE), "left")
        return known.where(f.col("queue_offset") <= f.coalesce("own_end", "any_end")).select(*rows.columns)

    def _substitutes(self, old: DataFrame, log: DataFrame) -> DataFrame:
        """Return rows for settled messages: sent, acknowledged, and delivered to the groups past their place.

        The time of each delivery is no longer known: it is no earlier than its group's first delivery of that
        run.
        """
        sent = log.where(f.col("kind") == Kind.SEND).select("msg_id")
        # The carried rows are all rows of such a message: no send of it was recorded.
        stored_only = self.rows.where(f.col("kind") == Kind.APPEND).select("msg_id")
        sent = sent.unionByName(stored_only).distinct()
        places = old.select("msg_id", *QUEUE, "queue_offset").distinct().join(sent, "msg_id", "left_anti")
        covering = (
            same(QUEUE)
            & (f.col("queue_offset") >= f.col("offset_min"))
            & (f.col("queue_offset") <= f.col("offset_max"))
        )
        delivered = places.join(f.broadcast(renamed(self.reach, QUEUE)), covering)
        delivered = delivered.groupBy("msg_id", *QUEUE, "queue_offset", "group").agg(
            f.min("first_ts").alias("ts")
        )
        stored = delivered.groupBy("msg_id", *QUEUE, "queue_offset").agg(f.min("ts").alias("ts"))
        stored = stored.withColumn("group", f.lit(None).cast("string"))
        # If producers' logs were never given, missing sends mean nothing.
        kinds = [row["kind"] for row in self.profile.select("kind").distinct().collect()]
        sends = [stored.withColumn("kind", f.lit(str(kind))) for kind in _ORIGIN if kind in kinds]
        rows = delivered.where(f.col("group").isNotNull()).withColumn("kind", f.lit(str(Kind.DELIVER)))
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
                given.get(name, f.col(name) if name in rows.columns else f.lit(None)).cast(kind).alias(name)
                for name, kind in EVENT_COLUMNS.items()
            ]
        )


def last_rows(profiled: DataFrame, brokers: tuple[str, ...]) -> DataFrame:
    """Return one row per sequence of sequences.py: the number of its newest row."""
    return spans_of(profiled, brokers).select(*SEQUENCE, f.col("seq_max").alias("seq"))


def renamed(rows: DataFrame, names: Iterable[str]) -> DataFrame:
    """Append `_of` to the names of these columns, so that `same` can compare the rows with others."""
    return rows.withColumnsRenamed({name: f"{name}_of" for name in names})


def same(names: Iterable[str]) -> Column:
    equal = [f.col(name).eqNullSafe(f.col(f"{name}_of")) for name in names]
    return reduce(lambda one, other: one & other, equal)
