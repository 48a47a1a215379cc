"""Routes, replication and ledgers from night to night: whatever is cut in two is found, once, as in one run.

Method: the injected stories several times over, each later than the one before, so that a night's end cuts
each of them elsewhere; what all nights told must be what is injected.
"""

import random
import re
from collections import Counter
from dataclasses import replace
from functools import reduce
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from mqproof.spark_audit.checks import CHECKS
from mqproof.spark_audit.evidence.gather import gather
from mqproof.spark_audit.evidence.options import Options
from mqproof.spark_audit.evidence.places import name_broker
from mqproof.spark_audit.generator.cluster_log import Row, events
from mqproof.spark_audit.incremental.carried_state import IDENTITY
from mqproof.spark_audit.incremental.checkpoint import OF_ONE_NODE
from mqproof.spark_audit.incremental.node_states import carried_rows
from mqproof.spark_audit.passes.profile import BROKER_KINDS
from mqproof.spark_audit.sources.event_log import EventLog
from tests.spark_audit.conftest import STEP_US, frame
from tests.spark_audit.incremental.test_checkpoint import cut, keys

JUDGED = (
    "ROUTE-1", "ROUTE-2", "ROUTE-3", "REPL-1", "REPL-3",
    "RAFT-1", "RAFT-2", "RAFT-3", "RAFT-4", "RAFT-5", "RAFT-6",
)  # fmt: skip
TELLERS = {"calm", "torn", "loss", "names", "sync", "lazy", "late", "disk", "lonely", "prompt"}
"""Nodes of the injected stories that these are about, but for what stands behind a dash."""
LATE_US = 30 * STEP_US


def stories(copies: int) -> tuple[list[Row], list[Row]]:
    """The rows that `copies` tell, and the violations in them."""
    script = events()
    told = [row for row in script.rows if row["node"].split("-")[0] in TELLERS]
    lasts_us = told[-1]["ts"] - told[0]["ts"]
    rows = [_of_copy(row, n, n * lasts_us // copies) for n in range(copies) for row in told]
    due = [row for row in script.truth if row["invariant"] in JUDGED]
    return rows, [_of_copy(row, n, 0) for n in range(copies) for row in due]


def _of_copy(row: Row, number: int, later_us: int) -> Row:
    """Nodes, brokers, addresses, topics and ids have names of their own."""

    def named(name: str | None) -> str | None:
        """The part before a dash or a colon tells nodes and brokers of two copies apart."""
        return name and re.sub(r"^([^-:,]+)", rf"\g<1>{number}", name)

    attrs = dict(row.get("attrs", {}))
    for name in attrs.keys() & {"broker", "address", "brokers", "writable"}:
        attrs[name] = ",".join(str(named(part)) for part in attrs[name].split(","))
    known = {name: named(row[name]) for name in ("node", "broker", "topic", "msg_id") if row.get(name)}
    return row | known | ({"ts": row["ts"] + later_us, "attrs": attrs} if "ts" in row else {})


def found(spark: SparkSession, log: DataFrame, seen: list[Row]) -> list[Row]:
    brokers = tuple(sorted({row["node"] for row in seen if row["kind"] in BROKER_KINDS}))
    # What starts tell of flush modes is of all nights, as the profile is.
    starts = frame(spark, [row for row in seen if row["kind"] == "recover"])
    evidence = gather(EventLog.of(log), brokers, Options(is_skew_given=True))
    evidence = replace(evidence, rare=name_broker(starts, brokers))
    parts = [CHECKS[name].findings(evidence) for name in JUDGED]
    return [row.asDict() for row in reduce(DataFrame.unionByName, parts).collect()]


def night_by_night(spark: SparkSession, nights: list[list[Row]]) -> tuple[list[Row], int]:
    """All that was told and not taken back, and how often nights told something, as checkpoint.py counts
    it."""
    known: dict[tuple[Any, ...], tuple[Row, bool]] = {}
    stand: list[Row] = []
    seen: list[Row] = []
    told = 0
    for rows in nights:
        seen += rows
        log = frame(spark, rows + stand)
        tonight = {tuple(row[name] for name in IDENTITY): row for row in found(spark, log, seen)}
        watermark = max(row["ts"] for row in seen) - LATE_US
        known = {key: last for key, last in known.items() if last[1] or key in tonight}
        for key, row in tonight.items():
            told += key not in known
            final = row["invariant"] in OF_ONE_NODE or row["last_ts"] < watermark
            known[key] = (row, final or (key in known and known[key][1]))
        kinds = {row["kind"] for row in seen}
        stand = [row.asDict(recursive=True) for row in carried_rows(log, kinds, watermark).collect()]
    return [row for row, _ in known.values()], told


@pytest.mark.parametrize(
    ("copies", "seeds"), [(4, range(1)), pytest.param(12, range(1, 6), marks=pytest.mark.deep)]
)
def test_a_violation_split_between_two_runs_is_found_once(
    spark: SparkSession, copies: int, seeds: range
) -> None:
    rows, due = stories(copies)
    times = sorted(row["ts"] for row in rows)
    for seed in seeds:
        ends = sorted(random.Random(seed).sample(times, 1 + len(seeds) // 2))
        violations, told = night_by_night(spark, [night for night in cut(rows, ends) if night])
        assert (keys(violations), told) == (keys(due), len(due)), seed


def test_only_unsettled_entries_of_a_ledger_are_carried(spark: SparkSession) -> None:
    rows: list[Row] = []

    def tell(node: str, kind: str, term: int, **attrs: Any) -> None:
        seq = sum(row["node"] == node for row in rows)
        told = {name: str(value) for name, value in attrs.items()}
        rows.append({"ts": len(rows), "seq": seq, "node": node, "kind": kind, "term": term, "attrs": told})

    for node in ("n-0", "n-1"):
        tell(node, "recover", 0, index=-1, members="0,1")
    tell("n-0", "become_leader", 1)
    for index in range(50):
        tell("n-0", "raft_append", 1, index=index)
        # The other is behind, and of the last that it holds nobody has said that it is committed.
        if index < 40:
            tell("n-1", "raft_append", 1, index=index)
        tell("n-0", "raft_commit", 1, index=min(index, 30))
    kept = carried_rows(frame(spark, rows), {row["kind"] for row in rows}, len(rows)).collect()
    assert Counter((row.node, row.kind) for row in kept) == {
        ("n-0", "recover"): 1, ("n-1", "recover"): 1, ("n-0", "become_leader"): 1,
        ("n-0", "raft_append"): 50 - 30, ("n-1", "raft_append"): 40 - 30, ("n-0", "raft_commit"): 1,
    }  # fmt: skip
