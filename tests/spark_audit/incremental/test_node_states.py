"""Incremental runs over routes, replication and ledgers find each violation once, wherever the log is split.

Method: take several copies of the injected scenarios, each later than the one before, so that the end of a
run splits each copy at another place. All reported violations must be the injected ones. Spark selects the
carried rows, as in a run; the embedded engine, which is faster for small logs, judges.
"""

import random
import re
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from mqproof.spark_audit.checks import CHECKS
from mqproof.spark_audit.evidence.embedded_collect import evidence_of
from mqproof.spark_audit.evidence.options import Options
from mqproof.spark_audit.evidence.places import name_broker
from mqproof.spark_audit.generator.cluster_log import Row, events
from mqproof.spark_audit.incremental.carried_state import IDENTITY
from mqproof.spark_audit.incremental.checkpoint import OF_ONE_NODE
from mqproof.spark_audit.incremental.node_states import carried_rows
from mqproof.spark_audit.passes.profile import BROKER_KINDS, profiled_rows
from tests.spark_audit.conftest import STEP_US, embedded_log, frame
from tests.spark_audit.incremental.test_checkpoint import cut, keys

JUDGED = (
    "ROUTE-1", "ROUTE-2", "ROUTE-3", "REPL-1", "REPL-3",
    "RAFT-1", "RAFT-2", "RAFT-3", "RAFT-4", "RAFT-5", "RAFT-6",
)  # fmt: skip
NODES = {"calm", "torn", "loss", "names", "sync", "lazy", "late", "disk", "lonely", "prompt"}
"""Nodes of the injected scenarios of these invariants, without the part after a dash."""
LATE_US = 30 * STEP_US


def log_of_copies(copies: int) -> tuple[list[Row], list[Row]]:
    """Return the rows of so many copies of the scenarios, and their violations."""
    script = events()
    of_nodes = [row for row in script.rows if row["node"].split("-")[0] in NODES]
    lasts_us = of_nodes[-1]["ts"] - of_nodes[0]["ts"]
    rows = [_of_copy(row, n, n * lasts_us // copies) for n in range(copies) for row in of_nodes]
    expected = [row for row in script.truth if row["invariant"] in JUDGED]
    return rows, [_of_copy(row, n, 0) for n in range(copies) for row in expected]


def _of_copy(row: Row, number: int, later_us: int) -> Row:
    """Return the row with the node, broker, address, topic and id names of copy `number`."""

    def named(name: str | None) -> str | None:
        """Add the number of the copy to the part of the name before a dash, colon or comma."""
        return name and re.sub(r"^([^-:,]+)", rf"\g<1>{number}", name)

    attrs = dict(row.get("attrs", {}))
    for name in attrs.keys() & {"broker", "address", "brokers", "writable"}:
        attrs[name] = ",".join(str(named(part)) for part in attrs[name].split(","))
    known = {name: named(row[name]) for name in ("node", "broker", "topic", "msg_id") if row.get(name)}
    return row | known | ({"ts": row["ts"] + later_us, "attrs": attrs} if "ts" in row else {})


def found(log: list[Row], seen: list[Row]) -> list[Row]:
    """Return the findings in the log of a run on the embedded engine; `seen` are the rows of all runs."""
    brokers = tuple(sorted({row["node"] for row in seen if row["kind"] in BROKER_KINDS}))
    known = {(row["node"], row["seq"]) for row in log}
    # Flush modes are taken from the starts in all runs, like the profile.
    starts = [row for row in seen if row["kind"] == "recover" and (row["node"], row["seq"]) not in known]
    earlier = [row | {"attrs": {**row["attrs"], "of_earlier_run": "true"}} for row in starts]
    with embedded_log([*log, *earlier]) as rows:
        events = rows.events.where("attrs['of_earlier_run'] IS NULL").persist()
        named, profiled = name_broker(events, brokers), profiled_rows(events).persist()
        evidence = evidence_of(named, profiled, brokers, Options(is_skew_given=True))
        evidence = replace(evidence, rare=name_broker(rows.events.where("kind = 'recover'"), brokers))
        return [row.asDict() for name in JUDGED for row in CHECKS[name].findings(evidence).collect()]


def judge_runs(spark: SparkSession, runs: list[list[Row]]) -> tuple[list[Row], int]:
    """Return the violations that were reported and not withdrawn, and the number of reports.

    They are counted as in checkpoint.py.
    """
    known: dict[tuple[Any, ...], tuple[Row, bool]] = {}
    carried: list[Row] = []
    seen: list[Row] = []
    reported = 0
    for rows in runs:
        seen += rows
        log = rows + carried
        current = {tuple(row[name] for name in IDENTITY): row for row in found(log, seen)}
        watermark = max(row["ts"] for row in seen) - LATE_US
        known = {key: last for key, last in known.items() if last[1] or key in current}
        for key, row in current.items():
            reported += key not in known
            final = row["invariant"] in OF_ONE_NODE or row["last_ts"] < watermark
            known[key] = (row, final or (key in known and known[key][1]))
        if rows is runs[-1]:
            break
        kept = carried_rows(frame(spark, log), {row["kind"] for row in seen}, watermark)
        carried = [row.asDict(recursive=True) for row in kept.collect()]
    return [row for row, _ in known.values()], reported


DEEP = pytest.mark.deep("five seeds of a larger log on Spark; one is judged in every run")


@pytest.mark.parametrize(("copies", "seeds"), [(4, range(1)), pytest.param(12, range(1, 6), marks=DEEP)])
def test_a_violation_split_between_two_runs_is_found_once(
    spark: SparkSession, copies: int, seeds: range
) -> None:
    rows, expected = log_of_copies(copies)
    times = sorted(row["ts"] for row in rows)
    for seed in seeds:
        ends = sorted(random.Random(seed).sample(times, 1 + len(seeds) // 2))
        violations, reported = judge_runs(spark, [run for run in cut(rows, ends) if run])
        assert (keys(violations), reported) == (keys(expected), len(expected)), seed


def test_only_unsettled_entries_of_a_ledger_are_carried(spark: SparkSession) -> None:
    rows: list[Row] = []

    def add(node: str, kind: str, term: int, **attrs: Any) -> None:
        seq = sum(row["node"] == node for row in rows)
        texts = {name: str(value) for name, value in attrs.items()}
        rows.append({"ts": len(rows), "seq": seq, "node": node, "kind": kind, "term": term, "attrs": texts})

    for node in ("n-0", "n-1"):
        add(node, "recover", 0, index=-1, members="0,1")
    add("n-0", "become_leader", 1)
    for index in range(50):
        add("n-0", "raft_append", 1, index=index)
        # The other node is behind, and its last entries are not known to be committed.
        if index < 40:
            add("n-1", "raft_append", 1, index=index)
        add("n-0", "raft_commit", 1, index=min(index, 30))
    kept = carried_rows(frame(spark, rows), {row["kind"] for row in rows}, len(rows)).collect()
    assert Counter((row.node, row.kind) for row in kept) == {
        ("n-0", "recover"): 1, ("n-1", "recover"): 1, ("n-0", "become_leader"): 1,
        ("n-0", "raft_append"): 50 - 30, ("n-1", "raft_append"): 40 - 30, ("n-0", "raft_commit"): 1,
    }  # fmt: skip
