"""The history of a message: all facts about it from every input, in time order.

It consists of the message's own events and of the other events that decided its outcome: the first flush that
made it durable, recoveries that truncated it, the first commit of each group that passed it. It also has the
message's remains in the stores.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from mqproof.report.model import Moment
from mqproof.spark_audit.engine import functions as f
from mqproof.spark_audit.engine.frames import DataFrame, Row, SparkSession
from mqproof.spark_audit.engine.sql_text import quoted
from mqproof.spark_audit.evidence.places import name_broker
from mqproof.spark_audit.sources.otel.span_files import load_spans
from mqproof.spark_audit.sources.store.stored import Stored
from mqproof.spec.events import Kind

_CUTS: Final = (Kind.CRASH, Kind.RECOVER, Kind.TRUNCATE)
_PLACE_SCHEMA: Final = (
    "life string, since bigint, place_broker string, place_topic string, place_queue_id int, "
    "place_offset bigint, place_at bigint"
)
_BROKERS_ID: Final = re.compile("(?:[0-9A-Fa-f]{16}|[0-9A-Fa-f]{40})[0-7][0-9A-Fa-f]{15}")
"""A broker's message id: address and port, then the commit offset."""
_DETAILS: Final = ("group", "client", "status", "attempt")


@dataclass(frozen=True, slots=True)
class Step:
    """One line of the history."""

    ts: int | None
    """Microseconds; None for facts without a time."""
    where: str
    """A node, or the store of a broker."""
    what: str
    place: str
    detail: str

    @property
    def at(self) -> str:
        return "" if self.ts is None else utc(self.ts)

    def line(self) -> str:
        return f"{self.at:26}  {self.where:20}  {self.what:14}  {self.place:28}  {self.detail}".rstrip()

    def moment(self) -> Moment:
        """Return the step in the form used by reports."""
        return Moment(self.at, self.where, "  ".join(filter(None, (self.what, self.place, self.detail))))


def utc(ts: int) -> str:
    """Format microseconds of an event log as UTC; values outside the valid range are returned unchanged."""
    try:
        return f"{datetime.fromtimestamp(ts / 1e6, UTC):%Y-%m-%d %H:%M:%S.%f}"
    except (OverflowError, ValueError):
        return str(ts)


def message_steps(
    spark: SparkSession,
    msg_ids: Collection[str],
    log: DataFrame,
    brokers: tuple[str, ...],
    store: Stored | None,
    traces: DataFrame | None = None,
) -> dict[str, list[Step]]:
    """Return each message's steps in time order, those without a time last; unknown messages are left out.

    The log is read twice, regardless of the number of messages.
    """
    named = name_broker(log, brokers)
    wanted = f.col("msg_id").isin(*msg_ids)
    own = named.where(wanted).collect()
    records = store.records.where(wanted).collect() if store else []
    steps: dict[str, set[Step]] = defaultdict(set)
    for row in own:
        steps[row["msg_id"]].add(_event(row))
    for row in records:
        place = _path(row["topic"], row["queue_id"], row["queue_offset"])
        detail = f"commit offset {row['commit_offset']}, {row['size']} bytes"
        stored = Step(row["stored_ms"] * 1000, f"store {row['broker']}", "record", place, detail)
        steps[row["msg_id"]].add(stored)
    for row in traces.where(wanted).collect() if traces else ():
        steps[row["msg_id"]].add(_traced(row))
    if places := _places(own, records):
        marks = f.broadcast(spark.createDataFrame(places, _PLACE_SCHEMA))
        for msg_id, step in [*_around(named, marks), *(_in_store(store, marks) if store else ())]:
            steps[msg_id].add(step)
    return {msg_id: sorted(found, key=_order) for msg_id, found in steps.items()}


def ids_of_broker_id(text: str, store: Stored) -> list[str]:
    """Return the messages in the stores at the place in a broker's message id, whose address is ignored."""
    if not _BROKERS_ID.fullmatch(text):
        return []
    at = store.records.where(f.col("commit_offset") == f.lit(int(text[-16:], 16)))
    return sorted({row["msg_id"] for row in at.select("msg_id").collect()})


def with_span_steps(
    steps: Mapping[str, list[Step]], files: Sequence[Path], scratch: Path, msg_ids: Collection[str]
) -> dict[str, list[Step]]:
    """Return the steps with those of the OpenTelemetry spans of these messages.

    Raises:
        InputError: a file of spans is damaged.
    """
    if not files:
        return dict(steps)
    import duckdb

    found = {msg_id: list(known) for msg_id, known in steps.items()}
    names = ("message_id", "start_us", "operation", "topic", "consumers", "failed", "trace_id")
    with duckdb.connect() as database:
        database.execute(f"SET temp_directory = {quoted(str(scratch))}")
        load_spans(database, files)
        rows = database.execute(
            f"SELECT {', '.join(names)} FROM spans WHERE message_id IN ({quoted(*msg_ids)})"
        ).fetchall()
    for row in rows:
        span = dict(zip(names, row, strict=True))
        found.setdefault(span["message_id"], []).append(_spanned(span))
    return {msg_id: sorted(each, key=_order) for msg_id, each in found.items()}


def _spanned(span: Mapping[str, Any]) -> Step:
    details = [f"group {span['consumers']}"] if span["consumers"] else []
    details += ["failed"] if span["failed"] else []
    details += [f"trace {span['trace_id']}"] if span["trace_id"] else []
    return Step(span["start_us"], "span", span["operation"], span["topic"] or "", ", ".join(details))


def _order(step: Step) -> tuple[bool, int, str, str, str]:
    return (step.ts is None, step.ts or 0, step.where, step.what, step.place)


def _places(own: Iterable[Row], records: Iterable[Row]) -> list[tuple[Any, ...]]:
    """Return the places at which any input shows a message stored: rows of _PLACE_SCHEMA."""
    since: dict[str, int] = {}
    for row in own:
        since[row["msg_id"]] = min(since.get(row["msg_id"], row["ts"]), row["ts"])
    found: dict[tuple[Any, ...], int | None] = {}
    for row in [*own, *records]:
        if row["queue_offset"] is not None and row["topic"] is not None and row["queue_id"] is not None:
            msg_id = row["msg_id"]
            key = (
                msg_id,
                since.get(msg_id, 0),
                *(row[name] for name in ("broker", "topic", "queue_id", "queue_offset")),
            )
            at = row["commit_offset"]
            found[key] = found.get(key) if at is None else at
    return [(*key, at) for key, at in found.items()]


def _around(named: DataFrame, marks: DataFrame) -> Iterator[tuple[str, Step]]:
    """Yield other events that decided the outcome: the first of each kind, and every truncation."""
    others = named.where("msg_id IS NULL").join(
        marks, f.col("broker").eqNullSafe(f.col("place_broker")) & (f.col("ts") >= f.col("since"))
    )
    cuts = ", ".join(f"'{kind}'" for kind in _CUTS)
    in_queue = "topic = place_topic AND queue_id = place_queue_id"
    sort = f.expr(
        f"CASE WHEN kind = '{Kind.FLUSH}' AND commit_offset > place_at"
        " AND coalesce(attrs['file'], 'log') = 'log' THEN 'flush'"
        f" WHEN kind = '{Kind.OFFSET_COMMIT}' AND {in_queue} AND queue_offset > place_offset THEN 'commit'"
        f" WHEN kind = '{Kind.DISPATCH}' AND {in_queue} AND queue_offset = place_offset THEN 'dispatch'"
        f" WHEN kind IN ({cuts}) AND (commit_offset IS NULL OR commit_offset <= place_at)"
        " THEN concat('cut ', node, ' ', seq) END"
    )
    decided = others.withColumn("sort", sort).where("sort IS NOT NULL")
    first = f.min_by(f.struct(*named.columns), "ts").alias("row")
    per = ("life", "sort", "node", "group", "topic", "queue_id", "place_offset")
    for found in decided.groupBy(*per).agg(first).collect():
        yield found["life"], _event(found["row"])


def _event(row: Row) -> Step:
    details = [f"{name} {row[name]}" for name in _DETAILS if row[name] is not None]
    if row["commit_offset"] is not None:
        details.append(f"commit offset {row['commit_offset']}")
    details += [f"{name} {value}" for name, value in sorted((row["attrs"] or {}).items())]
    place = _path(row["topic"], row["queue_id"], row["queue_offset"])
    return Step(row["ts"], row["node"], row["kind"], place, ", ".join(details))


def _traced(row: Row) -> Step:
    """Return the step of a client's trace; older clients omit the time of a call's end."""
    details = [
        f"{name} {row[name]}" for name in ("success", "state", "times", "store_host") if row[name] is not None
    ]
    return Step(
        row["ts"], f"trace of {row['group'] or '?'}", row["type"], row["topic"] or "", ", ".join(details)
    )


def _in_store(store: Stored, marks: DataFrame) -> Iterator[tuple[str, Step]]:
    """Yield the queue entry at each place, the index entries that point to it, and each group's position."""
    at_queue = (
        (f.col("topic") == f.col("place_topic"))
        & (f.col("queue_id") == f.col("place_queue_id"))
        & f.coalesce(f.col("broker") == f.col("place_broker"), f.lit(True))
    )
    entries = store.entries.where("kind = 'entry'").join(
        marks, at_queue & (f.col("queue_offset") == f.col("place_offset"))
    )
    for row in entries.collect():
        yield row["life"], _stored(row, "queue entry", f"points at commit offset {row['commit_offset']}")
    pointing = store.index.where("kind = 'entry'").join(
        marks, (f.col("commit_offset") == f.col("place_at")) & (f.col("broker") == f.col("place_broker"))
    )
    for row in pointing.groupBy("life", "broker", "commit_offset").count().collect():
        detail = f"{row['count']} point at commit offset {row['commit_offset']}"
        yield row["life"], Step(None, f"store {row['broker']}", "index entries", "", detail)
    for row in store.offsets.join(marks, at_queue).collect():
        passed = row["queue_offset"] > row["place_offset"]
        detail = f"group {row['group']} {'is past it' if passed else 'has not reached it'}"
        yield row["life"], _stored(row, "committed", detail)


def _stored(row: Any, what: str, detail: str) -> Step:
    place = _path(row["topic"], row["queue_id"], row["queue_offset"])
    return Step(None, f"store {row['broker']}", what, place, detail)


def _path(*parts: object) -> str:
    return "/".join(str(part) for part in parts if part is not None)
