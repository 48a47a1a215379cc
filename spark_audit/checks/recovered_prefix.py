"""FLUSH-5 RecoveredPrefix: the log holds whole records, one after the other, none altered or invented.

A record's CRC, lengths, texts and the position that it was written for are compared with what is there.
Damage behind the last whole record of a log that was not shut down is a torn tail, which recovery cuts off
(cause `torn_tail`).
Cannot conclude: anything about headers, topics and properties altered without changing their length, which
have no checksum; whether whole records at the end are missing.
"""

from collections.abc import Mapping
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from spark_audit.checks.check import Check, findings
from spark_audit.evidence import Evidence

INVARIANT: Final = "FLUSH-5"
RULE: Final = "altered-record"


def recovered_prefix(evidence: Evidence) -> DataFrame:
    store = evidence.stored
    damage = store.gaps.where("kind = 'damage'").join(f.broadcast(store.bounds), "broker")
    is_tail = (f.col("commit_offset") >= f.col("whole_end")) & ~f.col("is_clean")
    return findings(
        damage,
        INVARIANT,
        "critical",
        rule=f.lit(RULE),
        cause=f.when(is_tail, f.lit("torn_tail")),
        evidence=f.format_string("%d bytes at commit offset %d: %s", "size", "commit_offset", "detail"),
    )


def _looked_at(tallies: Mapping[str, int]) -> dict[str, int]:
    return {name: tallies[name] for name in ("stored_records", "stored_bytes")}


def _blind(tallies: Mapping[str, int], causes: Mapping[str, int]) -> str:
    del causes
    return "" if tallies["stored_records"] else "no record is in the stores"


CHECK: Final = Check(INVARIANT, (RULE,), recovered_prefix, _looked_at, _blind, False, True)
