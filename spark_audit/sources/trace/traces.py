"""Message traces: reports of RocketMQ's clients about single messages, from a trace topic's store or as text.

A client sends its traces in the background and may drop them: a trace proves what it reports, but a missing
trace proves nothing. So loss, phantoms and repeats only have bounds here, and the verdict is unknown.

Format: docs/reference/protocol/event-log.md, "Message trace".
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Final

from mqproof.report.model import Result, Verdict, Witness
from mqproof.spark_audit.engine import functions as f
from mqproof.spark_audit.engine.frames import Column, DataFrame
from mqproof.spark_audit.sources.inputs import InputError
from mqproof.spark_audit.sources.store.ranges import is_store
from mqproof.spec.catalogue import catalogue

TRACE_TOPIC: Final = "RMQ_SYS_TRACE_TOPIC"
CLOUD_TOPIC_PREFIX: Final = "rmq_sys_TRACE_DATA_"

LAYER: Final = "traces"
"""The layer of the results, separate from those of events and stores for the same invariant."""

TRACED: Final = ("DELIV-1", "DELIV-2", "DELIV-3", "DELIV-9")
"""Invariants about which traces give information."""

_FIELD: Final = "\x01"
RECORD: Final = "\x02"
"""What ends a record."""
_HIDDEN: Final = (".", "_")

_PLACES: Final[dict[str, dict[str, int]]] = {
    "Pub": {"ts": 1, "group": 3, "topic": 4, "msg_id": 5, "store_host": 8, "msg_type": 11},
    "SubBefore": {"ts": 1, "group": 3, "request_id": 4, "msg_id": 5, "times": 6},
    "SubAfter": {"request_id": 1, "msg_id": 2, "success": 4, "ts": 7, "group": 8},
    "EndTransaction": {"ts": 1, "group": 3, "topic": 4, "msg_id": 5, "store_host": 8, "state": 11},
    "Recall": {"ts": 1, "group": 3, "topic": 4, "msg_id": 5, "success": 6},
}
"""Maps the type of a record to the positions of the fields that are read."""
_FIELDS_MIN: Final = {"Pub": 13, "SubBefore": 8, "SubAfter": 6, "EndTransaction": 13, "Recall": 7}
_COLUMNS: Final = (
    "ts", "group", "topic", "msg_id", "store_host", "msg_type", "request_id", "times", "success", "state",
)  # fmt: skip
_PRODUCER: Final = ("Pub", "EndTransaction", "Recall")


@dataclass(frozen=True, slots=True)
class Traces:
    records: DataFrame
    """The records of the traces.

    The columns are type, ts (microseconds), group, topic, msg_id, store_host, msg_type, request_id, times,
    success, state.
    """
    unreadable: DataFrame
    """file (for a store, its directory) and line of unreadable records.

    These are lines that are not records, and records of a known type with too few fields or an invalid
    number. The line is null for a message that is not text.
    """


def find_traces(paths: Sequence[str]) -> tuple[list[Path], list[Path]]:
    """Return the store directories and text files among the paths; of other folders, the files in them.

    Raises:
        InputError: a path does not exist, or a folder is empty.
    """
    stores, texts = [], []
    for path in map(Path, paths):
        if is_store(path):
            stores.append(path)
        elif path.is_dir():
            inside = [p for p in path.rglob("*") if p.is_file() and not p.name.startswith(_HIDDEN)]
            if not inside:
                raise InputError(
                    f"{path}: no file in this folder, expected exported traces or a store directory"
                )
            texts += inside
        elif path.is_file():
            texts.append(path)
        else:
            raise InputError(f"{path}: no such file or folder")
    return _once(stores), _once(texts)


def parsed(read: DataFrame) -> Traces:
    """Parse the lines of `read`: file and line, which is null for a message that is not text."""
    whole = f.trim(f.regexp_replace("line", "[\\r\\n]+", ""))
    lines = read.select("file", whole.alias("line")).where("line <> '' OR line IS NULL")
    split = lines.select("file", "line", f.split("line", _FIELD).alias("fields"))
    typed = split.withColumn("type", f.get("fields", f.lit(0)))
    # Types of a newer release are skipped, as RocketMQ's own readers do. A line without fields is not a
    # record.
    is_record = f.col("line").isNotNull() & (f.size("fields") > 1)
    known = typed.where(f.col("type").isin(*_PLACES) | ~is_record)
    rows = known.select("file", "line", "type", "fields", *[_field(name).alias(name) for name in _COLUMNS])
    pub_success = f.get("fields", f.when(f.size("fields") == 13, 12).otherwise(13))
    rows = rows.withColumn("success", f.when(f.col("type") == "Pub", pub_success).otherwise(f.col("success")))
    size = reduce(
        lambda least, kind: least.when(f.col("type") == kind, f.size("fields") >= _FIELDS_MIN[kind]),
        _FIELDS_MIN,
        f.when(f.lit(False), f.lit(False)),
    )
    timed = (f.col("type") == "SubAfter") | f.col("ts").isNotNull()
    whole = f.coalesce(size & timed & f.col("msg_id").isNotNull(), f.lit(False))
    records = _each_message(rows.where(whole).drop("file", "line", "fields"))
    return Traces(_deduplicated(records), rows.where(~whole).select("file", "line"))


def _each_message(records: DataFrame) -> DataFrame:
    """Split records of a batch: a producer reports all messages of a batch in one record."""
    return records.withColumn("msg_id", f.explode(f.split("msg_id", ",")))


def _deduplicated(records: DataFrame) -> DataFrame:
    """Drop repetitions: a trace message may be sent, stored or exported more than once."""
    return records.distinct()


def _field(name: str) -> Column:
    places = [(kind, own[name]) for kind, own in _PLACES.items() if name in own]
    text: Column = f.lit(None).cast("string")
    for kind, place in places:
        text = f.when(f.col("type") == kind, f.get("fields", f.lit(place))).otherwise(text)
    # Java writes a missing value as "null".
    value = f.when((text != "") & (text != "null"), text)
    if name == "ts":
        return value.cast("string").try_cast("long") * 1000
    return value.cast("string").try_cast("int") if name in ("times", "msg_type") else value


# --- conclusions from the traces


Bounds = tuple[str, dict[str, int], str]
"""Invariant, counts, and a text."""


def judge_traces(traces: Traces, skew_us: int, *, judged: Sequence[str]) -> tuple[Result, ...]:
    """Return what the traces alone show about DELIV-1, DELIV-2, DELIV-3 and DELIV-9. Runs a few aggregations.

    `judged` are invariants with better evidence, which gives their verdict; traces only add the bounds.
    """
    # Parsed once.
    records = traces.records.persist()
    try:
        deliveries = _deliveries(records)
        shown = (
            _loss(_expected(records), deliveries, skew_us),
            _phantoms(records, deliveries),
            _repeats(deliveries),
        )
        return tuple(_result(*each, judged) for each in shown) + _transactions(records)
    finally:
        records.unpersist()


def _deliveries(records: DataFrame) -> DataFrame:
    """Return one row for each message and group that received it."""
    rows = records.where("type = 'SubBefore'").groupBy("msg_id", "group")
    return rows.agg(
        f.count(f.lit(1)).alias("rows"), f.countDistinct("times").alias("rounds"), f.max("ts").alias("ts")
    )


def _expected(records: DataFrame) -> DataFrame:
    """Return the messages stored for their readers; rolled-back messages are due to no group."""
    rows = records.where("type = 'Pub' AND success = 'true'").groupBy("msg_id")
    sent = rows.agg(f.max("topic").alias("topic"), f.min("ts").alias("sent_ts"))
    return sent.join(_rolled_back(records), "msg_id", "left_anti")


def _rolled_back(records: DataFrame) -> DataFrame:
    return records.where("state = 'ROLLBACK_MESSAGE'").select("msg_id")


def _loss(sent: DataFrame, deliveries: DataFrame, skew_us: int) -> Bounds:
    read = deliveries.join(sent.select("msg_id", "topic"), "msg_id")
    groups = read.groupBy("topic", "group").agg(f.max("ts").alias("last_ts"))
    expected = sent.join(f.broadcast(groups), "topic").join(
        deliveries.select("msg_id", "group", "rows"), ["msg_id", "group"], "left"
    )
    # Messages sent after the last one known to be delivered to the group are in flight.
    is_due = f.col("sent_ts") + skew_us < f.col("last_ts")
    is_missing = f.col("rows").isNull()
    counts = _numbers(
        expected,
        traced_due=is_due | ~is_missing,
        traced_unseen=is_due & is_missing,
        traced_in_flight=is_missing & ~is_due,
    )
    counts["lost_min"], counts["lost_max"] = 0, counts["traced_unseen"]
    return "DELIV-1", counts, f"between 0 and {counts['lost_max']} of {counts['traced_due']} are lost"


def _phantoms(records: DataFrame, deliveries: DataFrame) -> Bounds:
    known = (
        records.where(f.col("type").isin(*_PRODUCER))
        .select("msg_id")
        .distinct()
        .withColumn("sent", f.lit(True))
    )
    joined = deliveries.select("msg_id").distinct().join(known, "msg_id", "left")
    counts = _numbers(joined, traced_delivered=f.lit(True), traced_unsent=f.col("sent").isNull())
    counts["phantoms_min"], counts["phantoms_max"] = 0, counts["traced_unsent"]
    text = f"between 0 and {counts['phantoms_max']} of {counts['traced_delivered']} were never sent"
    return "DELIV-2", counts, text


def _repeats(deliveries: DataFrame) -> Bounds:
    # A redelivered message has a higher count; a repeated delivery without redelivery has the same count.
    counts = _numbers(
        deliveries,
        traced_deliveries=f.lit(True),
        traced_repeats=f.col("rows") > f.greatest("rounds", f.lit(1)),
    )
    counts["unexplained_min"], counts["unexplained_max"] = 0, counts["traced_repeats"]
    repeats, deliveries_total = counts["unexplained_max"], counts["traced_deliveries"]
    text = f"between 0 and {repeats} of {deliveries_total} deliveries are repeats without a cause"
    return "DELIV-3", counts, text


def _transactions(records: DataFrame) -> tuple[Result, ...]:
    """Return the violations: messages rolled back and delivered, which no missing record could explain."""
    state = f.when(f.col("type") == "EndTransaction", f.col("state"))
    each = records.groupBy("msg_id").agg(
        f.max(state == "ROLLBACK_MESSAGE").alias("rolled_back"),
        f.max(state == "COMMIT_MESSAGE").alias("committed"),
        f.max(f.col("type") == "SubBefore").alias("delivered"),
    )
    both = f.col("rolled_back") & (f.coalesce("committed", f.lit(False)) | f.col("delivered"))
    ended = each.where("rolled_back IS NOT NULL OR committed IS NOT NULL")
    counts = _numbers(ended, traced_transactions=f.lit(True), rolled_back_and_visible=both)
    invariant = "DELIV-9"
    name = catalogue()[invariant].name
    if not counts["traced_transactions"]:
        detail = "the traces contain no end of a transaction"
        return (Result(invariant, name, LAYER, Verdict.NOT_TESTED, detail=detail),)
    found = ended.where(both).select("msg_id").orderBy("msg_id").limit(8).collect()
    witnesses = tuple(
        Witness(
            f"rolled back, and delivered or committed: message {row['msg_id']}", {"msg_id": row["msg_id"]}
        )
        for row in found
    )
    verdict = Verdict.VIOLATED if witnesses else Verdict.UNKNOWN
    detail = "by traces: rolled back, and visible" if witnesses else "by traces, which may lack records"
    return (Result(invariant, name, LAYER, verdict, counts, witnesses, detail),)


def _numbers(rows: DataFrame, **conditions: Column) -> dict[str, int]:
    counts = rows.agg(
        *[
            f.coalesce(f.sum(f.when(c, 1).otherwise(0)), f.lit(0)).alias(name)
            for name, c in conditions.items()
        ]
    ).first()
    assert counts is not None, "an aggregate without keys has one row"
    found: dict[str, int] = counts.asDict()
    return found


def _result(invariant: str, counts: dict[str, int], text: str, judged: Sequence[str]) -> Result:
    verdict = Verdict.NOT_TESTED if invariant in judged else Verdict.UNKNOWN
    detail = f"by traces, which may lack records: {text}"
    return Result(invariant, catalogue()[invariant].name, LAYER, verdict, counts, detail=detail)


def _once(paths: Sequence[Path]) -> list[Path]:
    return sorted({path.resolve(): path for path in paths}.values())
