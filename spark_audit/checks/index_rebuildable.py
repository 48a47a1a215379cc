"""FLUSH-6 IndexRebuildable: queues and index contain exactly the entries that follow from the commit log.

A record without an entry was never dispatched. If it lies behind the last entry of its queue, and the broker
was not shut down cleanly, it may still be dispatched (cause `dispatch_lag`). An index entry must point at a
record; legal exceptions are those of QueuePointsIntoLog. Brokers without any queue entry are not judged.

Cannot conclude: whether the index lacks keys (a broker may run without it), or has a wrong hash.
"""

from collections.abc import Mapping
from typing import Final

from mqproof.spark_audit.checks.check import Check, examined_tallies, findings
from mqproof.spark_audit.engine import functions as f
from mqproof.spark_audit.engine.frames import DataFrame
from mqproof.spark_audit.evidence.tables import Evidence
from mqproof.spark_audit.sources.store.stored import QUEUE, Stored

INVARIANT: Final = "FLUSH-6"
UNDISPATCHED: Final = "not-dispatched"
DANGLING: Final = "index-dangling"
DAMAGED: Final = "damaged-index"


def index_rebuildable(evidence: Evidence) -> DataFrame:
    store = evidence.stored
    entries = store.index.where("kind = 'entry'").select("broker", "file", "commit_offset")
    dangling = entries.join(store.records, ["broker", "commit_offset"], "left_anti")
    dangling = findings(
        store.explained(dangling),
        INVARIANT,
        "error",
        rule=f.lit(DANGLING),
        evidence=f.format_string(
            "an entry of %s points at commit offset %d, where no record begins", "file", "commit_offset"
        ),
    )
    damaged = findings(
        store.index.where("kind = 'damage'"),
        INVARIANT,
        "error",
        rule=f.lit(DAMAGED),
        evidence=f.format_string("%s: %s", "file", "detail"),
    )
    return _undispatched(store).unionByName(dangling).unionByName(damaged)


def _undispatched(store: Stored) -> DataFrame:
    entries = store.entries.where("kind = 'entry'")
    records = store.ambiguous_rows(store.records.where("queued"))
    undispatched = records.join(store.ambiguous_rows(entries), [*QUEUE, "queue_offset"], "left_anti")
    undispatched = undispatched.join(f.broadcast(entries.select("broker").distinct()), "broker", "left_semi")
    ends = entries.groupBy(*QUEUE).agg(f.max("queue_offset").alias("last_entry"))
    known = undispatched.join(f.broadcast(ends), list(QUEUE), "left").join(
        f.broadcast(store.bounds), "broker"
    )
    is_behind = f.col("queue_offset") > f.coalesce("last_entry", f.lit(-1))
    return findings(
        known,
        INVARIANT,
        "critical",
        rule=f.lit(UNDISPATCHED),
        cause=f.when(is_behind & ~f.col("is_clean"), f.lit("dispatch_lag")),
        first_ts=f.col("stored_ms") * 1000,
        last_ts=f.col("stored_ms") * 1000,
        evidence=f.format_string(
            "stored at commit offset %d, and no queue entry points to it", "commit_offset"
        ),
    )


def _unknown_reason(tallies: Mapping[str, int], causes: Mapping[str, int]) -> str:
    del causes
    if not tallies["stored_records"]:
        return "no record is in the stores"
    return "" if tallies["queue_entries"] else "no consume-queue entry is in the stores"


CHECK: Final = Check(
    INVARIANT,
    (UNDISPATCHED, DANGLING, DAMAGED),
    index_rebuildable,
    examined_tallies("stored_records", "queue_entries", "index_entries"),
    _unknown_reason,
    of_events=False,
    of_stores=True,
)
