"""One message's whole life: what every input says of it, in order of time.

Its own events; of the rest, only what decided its fate: the first flush that made it durable, recoveries that
cut it off, the first commit of each group that passed it; and what is left of it in the stores.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as f

from spark_audit.evidence import name_broker
from spark_audit.store import Stored
from spec.events import Kind

_CUTS: Final = (Kind.CRASH, Kind.RECOVER, Kind.TRUNCATE)
_PLACE_SCHEMA: Final = (
    "place_broker string, place_topic string, place_queue_id int, place_offset bigint, place_at bigint"
)
_DETAILS: Final = ("group", "client", "status", "attempt")


@dataclass(frozen=True, slots=True)
class Step:
    """One line of the life."""

    ts: int | None
    """Microseconds; None for what has no time of its own."""
    where: str
    """A node, or the store of a broker."""
    what: str
    place: str
    detail: str

    def line(self) -> str:
        at = (
            f"{datetime.fromtimestamp(self.ts / 1e6, UTC):%Y-%m-%d %H:%M:%S.%f}"
            if self.ts is not None
            else ""
        )
        return f"{at:26}  {self.where:20}  {self.what:14}  {self.place:28}  {self.detail}".rstrip()


@dataclass(frozen=True, slots=True)
class Place:
    """Where some input says that the message was stored."""

    broker: str | None
    topic: str
    queue_id: int
    queue_offset: int
    commit_offset: int | None


def explain(
    spark: SparkSession, msg_id: str, log: DataFrame, brokers: tuple[str, ...], store: Stored | None
) -> list[Step]:
    """The steps in order of time, what has none last; empty when no input knows the message."""
    named = name_broker(log, brokers)
    own = named.where(f.col("msg_id") == msg_id).collect()
    records = store.records.where(f.col("msg_id") == msg_id).collect() if store else []
    places = _places(own, records)
    steps = [_event(row) for row in own]
    if places:
        since = min((row["ts"] for row in own), default=0)
        marks = spark.createDataFrame([_mark(place) for place in places], _PLACE_SCHEMA)
        steps += [_event(row) for row in _around(named, marks, since)]
        steps += _in_store(store, marks) if store else []
    steps += [
        Step(
            row["stored_ms"] * 1000,
            f"store {row['broker']}",
            "record",
            _path(row["topic"], row["queue_id"], row["queue_offset"]),
            f"commit offset {row['commit_offset']}, {row['size']} bytes",
        )
        for row in records
    ]
    return sorted(
        {*steps}, key=lambda step: (step.ts is None, step.ts or 0, step.where, step.what, step.place)
    )


def _places(own: Iterable[Row], records: Iterable[Row]) -> list[Place]:
    found: dict[tuple[str | None, str, int, int], int | None] = {}
    for row in [*own, *records]:
        if row["queue_offset"] is not None and row["topic"] is not None and row["queue_id"] is not None:
            key = (row["broker"], row["topic"], row["queue_id"], row["queue_offset"])
            at = row["commit_offset"]
            found[key] = found.get(key) if at is None else at
    return [Place(*key, at) for key, at in found.items()]


def _mark(place: Place) -> tuple[str | None, str, int, int, int | None]:
    return place.broker, place.topic, place.queue_id, place.queue_offset, place.commit_offset


def _around(named: DataFrame, marks: DataFrame, since: int) -> Iterator[Row]:
    """Others' events that decided its fate."""
    others = named.where(f"msg_id IS NULL AND ts >= {since}").join(
        f.broadcast(marks), f.col("broker").eqNullSafe(f.col("place_broker"))
    )
    in_queue = "topic = place_topic AND queue_id = place_queue_id"
    kept = {
        "flush": f"kind = '{Kind.FLUSH}' AND commit_offset > place_at",
        "commit": f"kind = '{Kind.OFFSET_COMMIT}' AND {in_queue} AND queue_offset > place_offset",
        "dispatch": f"kind = '{Kind.DISPATCH}' AND {in_queue} AND queue_offset = place_offset",
    }
    for condition in kept.values():
        first = f.min_by(f.struct("*"), "ts").alias("row")
        per = ("node", "kind", "group", "topic", "queue_id", "place_offset")
        for found in others.where(condition).groupBy(*per).agg(first).collect():
            yield found["row"]
    cut = f.col("kind").isin(*map(str, _CUTS)) & (
        f.col("commit_offset").isNull() | (f.col("commit_offset") <= f.col("place_at"))
    )
    yield from others.where(cut).collect()


def _event(row: Row) -> Step:
    details = [f"{name} {row[name]}" for name in _DETAILS if row[name] is not None]
    if row["commit_offset"] is not None:
        details.append(f"commit offset {row['commit_offset']}")
    details += [f"{name} {value}" for name, value in sorted((row["attrs"] or {}).items())]
    place = _path(row["topic"], row["queue_id"], row["queue_offset"])
    return Step(row["ts"], row["node"], row["kind"], place, ", ".join(details))


def _in_store(store: Stored, marks: DataFrame) -> Iterator[Step]:
    """The queue entry at each place, index entries that point at it, and how far each group is."""
    at_queue = (
        (f.col("topic") == f.col("place_topic"))
        & (f.col("queue_id") == f.col("place_queue_id"))
        & f.coalesce(f.col("broker") == f.col("place_broker"), f.lit(True))
    )
    marks = f.broadcast(marks)
    entries = store.entries.where("kind = 'entry'").join(
        marks, at_queue & (f.col("queue_offset") == f.col("place_offset"))
    )
    for row in entries.collect():
        yield _stored(row, "queue entry", f"points at commit offset {row['commit_offset']}")
    pointing = store.index.where("kind = 'entry'").join(
        marks, (f.col("commit_offset") == f.col("place_at")) & (f.col("broker") == f.col("place_broker"))
    )
    counted = pointing.groupBy("broker", "commit_offset").count().collect()
    for row in counted:
        detail = f"{row['count']} point at commit offset {row['commit_offset']}"
        yield Step(None, f"store {row['broker']}", "index entries", "", detail)
    for row in store.offsets.join(marks, at_queue).collect():
        passed = row["queue_offset"] > row["place_offset"]
        detail = f"group {row['group']} {'is past it' if passed else 'has not reached it'}"
        yield _stored(row, "committed", detail)


def _stored(row: Any, what: str, detail: str) -> Step:
    place = _path(row["topic"], row["queue_id"], row["queue_offset"])
    return Step(None, f"store {row['broker']}", what, place, detail)


def _path(*parts: object) -> str:
    return "/".join(str(part) for part in parts if part is not None)
