"""The kinds of rows, topics and readers of a log: facts that tasks need to judge buckets and messages."""

from dataclasses import dataclass

import pyarrow as pa

from mqproof.spark_audit.engine import functions as f
from mqproof.spark_audit.engine.frames import DataFrame
from mqproof.spark_audit.passes.bucket_plan import readers_of
from mqproof.spec.events import Kind


@dataclass(frozen=True, slots=True)
class Participants:
    readers: dict[str, tuple[str, ...]]
    """Maps a topic to the groups that read it."""
    topics: frozenset[str | None]
    roles: int
    """The number of recorded roles, as in sums.Known."""

    @property
    def readers_table(self) -> pa.Table:
        """The readers, in the form of sums.Known."""
        pairs = [(topic, group) for topic, groups in self.readers.items() for group in groups]
        topics, groups = (pa.array([pair[at] for pair in pairs], pa.string()) for at in range(2))
        return pa.table({"subscribed_topic": topics, "group": groups})


def participants_of(profiled: DataFrame, brokers: tuple[str, ...]) -> Participants:
    """Return the participants, given the profile of the log. Runs a job."""
    of_broker = f.coalesce(f.col("node").isin(*brokers), f.lit(False)).alias("of_broker")
    sorts = profiled.select("kind", of_broker, "topic", "group", "placed").distinct().collect()
    deliveries = [row.asDict() for row in sorts if row["kind"] == Kind.DELIVER and row["placed"]]
    # A broker that reports its acknowledgements does so in addition to the producers.
    sources = {
        (row["kind"], row["of_broker"] and row["kind"] == Kind.SEND_ACK)
        for row in sorts
        if row["kind"] in (Kind.SEND, Kind.SEND_ACK, Kind.APPEND)
    }
    topics = frozenset(row["topic"] for row in sorts)
    return Participants(readers_of(deliveries), topics, len(sources))
