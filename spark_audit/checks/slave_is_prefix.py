"""REPL-2 SlaveIsPrefix: a slave's log is a prefix of its master's, byte range by byte range.

Stores of a slave are given as BROKER:ID. What both logs span is compared record by record where fingerprints
of 1 MiB of log differ. A slave may be behind; it may be ahead of a master that was not shut down and lost
its tail (cause `master_lost_tail`). Damage is RecoveredPrefix's to judge (`damaged_record`).
Cannot conclude: anything about bytes between records, or behind the end of the shorter log.
"""

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from spark_audit.checks.check import Check, counted, findings, never_blind
from spark_audit.evidence import Evidence
from spark_audit.store import Stored

INVARIANT: Final = "REPL-2"
DIVERGES: Final = "replica-divergence"
LACKS: Final = "missing-on-slave"
STRANGE: Final = "not-of-the-master"
AHEAD: Final = "slave-ahead"

_CELL_BITS: Final = 20


def slave_is_prefix(evidence: Evidence) -> DataFrame:
    store = evidence.stored
    of_master, of_slave = _sides(store)
    doubtful = _doubtful(of_master, of_slave)
    masters = of_master.join(doubtful, ["slave", "cell"], "left_semi")
    slaves = of_slave.join(doubtful, ["slave", "cell"], "left_semi")
    both = masters.select(
        "slave", "master", "commit_offset", *[f.col(c).alias(f"its_{c}") for c in _TOLD]
    ).join(
        slaves.select("slave", f.col("master").alias("other"), "commit_offset", *_TOLD),
        ["slave", "commit_offset"],
        "full_outer",
    )
    both = both.withColumn("master", f.coalesce("master", "other")).drop("other")
    here, there = f.col("size").isNotNull(), f.col("its_size").isNotNull()
    lacking = store.explained(both.where(there & ~here).withColumn("broker", f.col("slave"))).drop(*_TOLD)
    lacking = lacking.withColumnsRenamed({f"its_{name}": name for name in _TOLD})
    strange = store.explained(both.where(here & ~there).withColumn("broker", f.col("master")))
    differs = both.where(here & there).where("hashed <> its_hashed OR size <> its_size")
    return (
        _found(lacking, LACKS, "the master's record at commit offset %d is not in the slave's log")
        .unionByName(
            _found(strange, STRANGE, "the slave's record at commit offset %d is not in the master's log")
        )
        .unionByName(_found(differs, DIVERGES, "master and slave have different records at commit offset %d"))
        .unionByName(_ahead(store))
    )


_TOLD: Final = ("size", "hashed", "topic", "queue_id", "queue_offset", "msg_id")


def _sides(store: Stored) -> tuple[DataFrame, DataFrame]:
    """The records of masters and slaves that lie in what both logs span."""
    bounds = store.bounds.select("broker", "log_begin", "whole_end")
    span = (
        store.replicas.join(
            bounds.withColumnsRenamed({"broker": "master", "log_begin": "b1", "whole_end": "e1"}), "master"
        )
        .join(bounds.withColumnsRenamed({"broker": "slave", "log_begin": "b2", "whole_end": "e2"}), "slave")
        .select("master", "slave", f.greatest("b1", "b2").alias("begin"), f.least("e1", "e2").alias("end"))
    )
    cell = f.shiftright("commit_offset", _CELL_BITS).alias("cell")

    def side(which: str) -> DataFrame:
        inside = (f.col("broker") == f.col(which)) & f.col("commit_offset").between(
            f.col("begin"), f.col("end") - 1
        )
        met = store.records.join(f.broadcast(span), inside)
        return met.select("master", "slave", "commit_offset", cell, *_TOLD)

    return side("master"), side("slave")


def _doubtful(of_master: DataFrame, of_slave: DataFrame) -> DataFrame:
    def fingerprint(rows: DataFrame, name: str) -> DataFrame:
        hashed = f.xxhash64("commit_offset", "hashed")
        return rows.groupBy("slave", "cell").agg(f.struct(f.count(f.lit(1)), f.bit_xor(hashed)).alias(name))

    both = fingerprint(of_master, "one").join(fingerprint(of_slave, "other"), ["slave", "cell"], "full_outer")
    return both.where(~f.col("one").eqNullSafe(f.col("other"))).select("slave", "cell")


def _found(rows: DataFrame, rule: str, text: str) -> DataFrame:
    return findings(
        rows,
        INVARIANT,
        "critical",
        rule=f.lit(rule),
        broker="slave",
        evidence=f.format_string(text, "commit_offset"),
    )


def _ahead(store: Stored) -> DataFrame:
    ends = store.bounds.select("broker", "whole_end", "is_clean")
    pairs = store.replicas.join(
        ends.withColumnsRenamed({"broker": "master", "whole_end": "masters_end", "is_clean": "master_clean"}),
        "master",
    ).join(ends.withColumnsRenamed({"broker": "slave"}), "slave")
    ahead = pairs.where("whole_end > masters_end")
    return findings(
        ahead,
        INVARIANT,
        "error",
        rule=f.lit(AHEAD),
        broker="slave",
        cause=f.when(~f.col("master_clean"), f.lit("master_lost_tail")),
        evidence=f.format_string(
            "its log ends at %d, that of %s at %d", "whole_end", "master", "masters_end"
        ),
    )


CHECK: Final = Check(
    INVARIANT,
    (DIVERGES, LACKS, STRANGE, AHEAD),
    slave_is_prefix,
    counted("replicas", "stored_records"),
    never_blind,
    of_events=False,
    of_stores=True,
    needs=("replicas",),
)
