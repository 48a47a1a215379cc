"""Fingerprints exclude only messages about which no check can find anything.

Method: compare the ambiguous messages of small logs with the expected ones; the work of the tasks runs in
this process. On logs with random faults, every check must find the same with and without fingerprints.
"""

import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from mqproof.spark_audit.checks import EVENT_CHECKS
from mqproof.spark_audit.evidence.collect import collected
from mqproof.spark_audit.evidence.options import Options
from mqproof.spark_audit.evidence.tables import Evidence
from mqproof.spark_audit.passes import extraction
from tests.spark_audit.conftest import STEP_US, LogBuilder, embedded_evidence, evidence_in, frame
from tests.spark_audit.passes.in_process import judged

GROUPS = ("g", "h")
PREFIX = 2
"""Length of the prefix of an id that identifies its small log."""


def checked_exactly(builder: LogBuilder) -> frozenset[str]:
    return judged(builder.rows, ("broker",)).messages


def test_only_ambiguous_messages_are_checked_exactly() -> None:
    builder = LogBuilder().stored("m_clean", 0).stored("m_lost_for_h", 1).stored("m_twice_for_g", 2)
    builder.send("m_never_stored").append("m_phantom", 3).send("m_recovered").append("m_recovered", 4)
    builder.add("send_fail", "producer", msg_id="m_recovered", status="unknown")
    for msg_id, offset, groups in (
        ("m_clean", 0, "gh"),
        ("m_lost_for_h", 1, "g"),
        ("m_twice_for_g", 2, "gg"),
        ("m_phantom", 3, "gh"),
        ("m_recovered", 4, "gh"),
    ):
        for group in groups:
            builder.deliver(msg_id, offset, group, node=f"consumer-{group}")
    assert checked_exactly(builder) == {
        "m_lost_for_h",
        "m_twice_for_g",
        "m_phantom",
        "m_recovered",
    }


def test_a_truncated_message_is_checked_exactly_although_it_was_delivered() -> None:
    builder = LogBuilder().stored("m_kept", 0).stored("m_gone", 1).deliver("m_kept", 0).deliver("m_gone", 1)
    assert checked_exactly(builder.crash(kept_end=100)) == {"m_gone"}


def clean_log() -> LogBuilder:
    builder = LogBuilder()
    for offset in range(12):
        builder.stored(f"m_{offset}", offset)
    for group in GROUPS:
        for offset in range(12):
            builder.deliver(f"m_{offset}", offset, group, node=f"consumer-{group}")
    for offset in range(6):
        builder.commit(2 * offset)
    return builder


def test_clean_buckets_are_not_read_again() -> None:
    found = judged(clean_log().rows, ("broker",))
    assert (found.buckets.count, len(found.buckets.read)) == (12, 0)
    assert found.buckets.clean["acked_and_delivered"] == 12
    assert (found.messages, found.tallies["messages"]) == (frozenset(), 0)


CHANGES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("deliver", {"queue_offset": 99}),
    ("deliver", {"group": None}),
    ("deliver", {"topic": "%RETRY%g"}),
    ("send", {"attempt": 2}),
    ("send_ack", {"status": "FLUSH_DISK_TIMEOUT"}),
    ("send_ack", {"status": None}),
    ("append", {"queue_id": 7}),
    ("send", {"kind": "send_fail", "status": "unknown"}),
    ("append", {"topic": None}),
)


def of_log(number: int, row: dict[str, Any]) -> dict[str, Any]:
    """Return the row with the names of small log `number`, which is also the prefix of its ids."""
    names = {name: f"{row[name]}{number}" for name in ("node", "topic", "group") if row.get(name)}
    msg_id = {"msg_id": f"{number:0{PREFIX}}{row['msg_id']}"} if row.get("msg_id") else {}
    return row | names | msg_id | {"attrs": {"broker": f"broker{number}", **row.get("attrs", {})}}


def test_a_bucket_with_one_differing_row_is_read_again() -> None:
    # One small log has no change, and there is one for each change; the ids of each log are one bucket.
    rows = clean_log().rows
    logs = [rows]
    for kind, change in CHANGES:
        at = next(i for i, row in enumerate(rows) if row["kind"] == kind)
        logs.append([*rows[:at], rows[at] | change, *rows[at + 1 :]])
    brokers = tuple(f"broker{number}" for number in range(len(logs)))
    all_rows = [of_log(number, row) for number, log in enumerate(logs) for row in log]
    buckets = judged(all_rows, brokers, Options(id_prefix=PREFIX)).buckets
    assert buckets.count == len(logs)
    read = buckets.read["text"].to_pylist()
    assert sorted(read) == [f"{number:0{PREFIX}}" for number in range(1, len(logs))]


OF_MESSAGES = ("FLUSH-1", "DELIV-1", "DELIV-2", "DELIV-3", "DELIV-4", "DELIV-5")
"""The invariants that the changes of `faulty_log` can violate."""


def faulty_log(seed: int) -> list[dict[str, Any]]:
    """Return a clean log with a few rows dropped, doubled or changed."""
    chance = random.Random(seed)
    rows = [dict(row) for row in clean_log().rows]
    for change in range(chance.randrange(4)):
        at = chance.randrange(1, len(rows))
        row = rows[at]
        match chance.randrange(6):
            case 0:
                del rows[at]
            case 1:
                rows.insert(at, row | {"ts": row["ts"] + 5 * STEP_US, "seq": 1000 + change})
            case 2:
                rows[at] = row | {"msg_id": chance.choice(("m_3", "m_never_sent"))}
            case 3:
                rows[at] = row | {"queue_offset": chance.randrange(12)}
            case 4:
                rows[at] = row | {"attempt": 2} if row["kind"] == "send" else row | {"status": "unknown"}
            case 5:
                same_node = [i for i, other in enumerate(rows) if other["node"] == row["node"]]
                ahead = chance.choice(same_node)
                rows[at], rows[ahead] = (
                    row | {"seq": rows[ahead]["seq"]},
                    rows[ahead] | {"seq": row["seq"]},
                )
    if chance.random() < 0.3:
        broker = {"node": "broker", "attrs": rows[0]["attrs"], "ts": 80 * STEP_US}
        rows.append(broker | {"kind": "crash", "seq": 5000})
        rows.append(broker | {"kind": "recover", "seq": 5001, "commit_offset": chance.randrange(1400)})
    return rows


@pytest.mark.deep("two audits on Spark; engine/test_same_results.py compares the two ways")
def test_checks_find_the_same_with_and_without_fingerprints(spark: SparkSession) -> None:
    # Many small logs form one log: each has its own nodes, topics, groups and ids.
    # The number is at the end of the ids, so that a log has many buckets.
    rows = [
        of_log(part, row) | ({"msg_id": f"{row['msg_id']}{part}"} if "msg_id" in row else {})
        for part in range(100)
        for row in faulty_log(part)
    ]
    log = frame(spark, rows)
    found = []
    for options in (Options(exact=False), Options(exact=True)):
        with collected(log, options) as seen:
            evidence = seen.evidence
            found.append(
                {
                    invariant: Counter(map(str, EVENT_CHECKS[invariant].findings(evidence).collect()))
                    for invariant in OF_MESSAGES
                }
            )
            if options.exact:
                assert not evidence.buckets
            else:
                assert evidence.buckets
                assert 0 < len(evidence.buckets.read) < evidence.buckets.count
    assert found[0] == found[1]
    assert sum(found[0]["DELIV-1"].values()) > 20
    assert all(found[0].values())


EXAMINED = ("messages", "ambiguous_events", "steps", "failure_events")
"""The parts of the evidence that are computed from the ambiguous rows."""


def examined(evidence: Evidence, names: Sequence[str] = EXAMINED) -> dict[str, set[tuple[Any, ...]]]:
    """Return what identifies the rows of these parts."""
    found = {}
    for name in names:
        keys = ("msg_id",) if name == "messages" else ("node", "seq")
        found[name] = {tuple(row[key] for key in keys) for row in getattr(evidence, name).collect()}
    return found


DEEP = pytest.mark.deep("test_bucket_sums.py and test_audit.py extract rows this way in every run")


@pytest.mark.parametrize(
    ("exact", "named_max"),
    [
        pytest.param(True, 100, id="at once by message"),
        pytest.param(False, 100, id="by bucket, then by message", marks=DEEP),
        pytest.param(False, 0, id="by bucket", marks=DEEP),
    ],
)
def test_the_ambiguous_rows_are_sufficient_for_all_findings(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exact: bool, named_max: int
) -> None:
    builder = clean_log().stored("m_jumped_over", 12).stored("m_13", 13)
    for group in GROUPS:
        builder.deliver("m_13", 13, group, node=f"consumer-{group}")
    builder.deliver("m_3", 3, "g", node="consumer-g").commit(14).commit(2)
    builder.add("consume_fail", "consumer-h", msg_id="m_5", topic="t", queue_id=0, queue_offset=5, group="h")
    # The embedded engine takes the evidence from all rows.
    with embedded_evidence(builder.rows, ("broker",)) as evidence:
        expected = examined(evidence)
    assert all(expected.values())
    monkeypatch.setattr(extraction, "_NAMED_MAX", named_max)
    assert examined(evidence_in(spark, builder.rows, ("broker",), Options(exact=exact), tmp_path)) == expected
    rows = [row for file in tmp_path.iterdir() for row in pq.read_table(file).to_pylist()]
    assert 0 < len({(row["node"], row["seq"]) for row in rows}) < len(builder.rows) / 2


def test_checks_find_the_same_for_any_bucket_size() -> None:
    builder = clean_log()
    del builder.rows[-7]
    found = []
    for prefix in (0, 3):
        done = judged(builder.rows, ("broker",), Options(id_prefix=prefix))
        found.append(done.messages)
        assert 0 < len(done.buckets.read) < done.buckets.count
    assert found[0] == found[1]
    assert found[0]
