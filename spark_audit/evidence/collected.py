"""What the stages before the checks collect, on either engine."""

from dataclasses import dataclass

from mqproof.spark_audit.engine.frames import DataFrame
from mqproof.spark_audit.evidence.history import ExaminedRows
from mqproof.spark_audit.evidence.tables import Evidence
from mqproof.spark_audit.passes.profile import Overview
from mqproof.spark_audit.passes.times import NOTHING_SET_ASIDE, SetAside
from mqproof.spark_audit.sources.inputs import InputError


@dataclass(frozen=True, slots=True)
class Collected:
    evidence: Evidence
    overview: Overview
    repeated_rows: int
    """Rows that were given twice and counted once."""
    examined: ExaminedRows
    set_aside: SetAside = NOTHING_SET_ASIDE


def without_repeats(log: DataFrame) -> DataFrame:
    """Drop rows that were collected twice (the same file under two names)."""
    return log.dropDuplicates(["node", "seq", "ts", "kind", "msg_id"])


def refuse_namesakes(seen: Overview) -> None:
    """Raise an InputError if two different rows have one node and number: two nodes have the same name."""
    if seen.repeating_nodes:
        raise InputError(
            f"node {seen.repeating_nodes[0]!r}: {seen.repeated_rows} sequence numbers are given twice, to "
            "different events; expected one name for each node, and one numbering across its restarts"
        )
