"""REPL-2 SlaveIsPrefix: a slave's log is a prefix of its master's, byte range by byte range.

Stores of a slave are given as BROKER:ID. The range that both logs span is compared record by record where the
fingerprints of 1 MiB of log differ. A slave may be behind. It may be ahead of a master that was not shut down
and lost its tail (cause `master_lost_tail`). Damage is judged by RecoveredPrefix (`damaged_record`).

Cannot conclude: anything about bytes between records, or behind the end of the shorter log.
"""

from typing import Final

from mqproof.spark_audit.checks.check import Check, examined_tallies, findings, never_unknown
from mqproof.spark_audit.checks.log_comparison import compared
from mqproof.spark_audit.engine import functions as f
from mqproof.spark_audit.engine.frames import DataFrame
from mqproof.spark_audit.evidence.tables import Evidence
from mqproof.spark_audit.sources.store.stored import Stored

INVARIANT: Final = "REPL-2"
DIVERGES: Final = "replica-divergence"
MISSING_ON_SLAVE: Final = "missing-on-slave"
MISSING_ON_MASTER: Final = "not-of-the-master"
AHEAD: Final = "slave-ahead"


def slave_is_prefix(evidence: Evidence) -> DataFrame:
    store = evidence.stored
    differences = compared(store, store.replicas)
    return (
        _found(
            differences.missing_on_slave,
            MISSING_ON_SLAVE,
            "the master's record at commit offset %d is not in the slave's log",
        )
        .unionByName(
            _found(
                differences.missing_on_master,
                MISSING_ON_MASTER,
                "the slave's record at commit offset %d is not in the master's log",
            )
        )
        .unionByName(
            _found(
                differences.differing, DIVERGES, "master and slave have different records at commit offset %d"
            )
        )
        .unionByName(_ahead(store))
    )


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
    (DIVERGES, MISSING_ON_SLAVE, MISSING_ON_MASTER, AHEAD),
    slave_is_prefix,
    examined_tallies("replicas", "stored_records"),
    never_unknown,
    of_events=False,
    of_stores=True,
    needs=("replicas",),
)
