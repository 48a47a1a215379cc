"""Fingerprints let only those messages pass that no check has anything to say about.

Method: what is doubted, story by story; and logs into which random trouble is put row by row, on which every
check must find the same with fingerprints and without.
"""

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from mqproof.spark_audit.checks import EVENT_CHECKS
from mqproof.spark_audit.evidence.collect import collected
from mqproof.spark_audit.evidence.options import Options
from mqproof.spark_audit.passes import extraction
from tests.spark_audit.conftest import STEP_US, Story, evidence_in, frame

GROUPS = ("g", "h")
PREFIX = 2
"""Of an id: which small log it is of."""


def doubted(spark: SparkSession, story: Story) -> set[str]:
    return {row.msg_id for row in evidence_in(spark, story.rows, ("broker",)).messages.collect()}


def test_only_messages_that_leave_a_doubt_are_looked_at(spark: SparkSession) -> None:
    story = Story().stored("m_clean", 0).stored("m_lost_for_h", 1).stored("m_twice_for_g", 2)
    story.send("m_never_stored").append("m_phantom", 3).send("m_recovered").append("m_recovered", 4)
    story.add("send_fail", "producer", msg_id="m_recovered", status="unknown")
    for msg_id, offset, groups in (
        ("m_clean", 0, "gh"),
        ("m_lost_for_h", 1, "g"),
        ("m_twice_for_g", 2, "gg"),
        ("m_phantom", 3, "gh"),
        ("m_recovered", 4, "gh"),
    ):
        for group in groups:
            story.deliver(msg_id, offset, group, node=f"consumer-{group}")
    assert doubted(spark, story) == {"m_lost_for_h", "m_twice_for_g", "m_phantom", "m_recovered"}


def test_what_recovery_cut_off_is_looked_at_though_it_was_delivered(spark: SparkSession) -> None:
    story = Story().stored("m_kept", 0).stored("m_gone", 1).deliver("m_kept", 0).deliver("m_gone", 1)
    assert doubted(spark, story.crash(kept_end=100)) == {"m_gone"}


def read_buckets(spark: SparkSession, story: Story) -> int:
    """How many buckets are read again."""
    buckets = evidence_in(spark, story.rows, ("broker",)).buckets
    assert buckets
    return len(buckets.read)


def clean_story() -> Story:
    story = Story()
    for offset in range(12):
        story.stored(f"m_{offset}", offset)
    for group in GROUPS:
        for offset in range(12):
            story.deliver(f"m_{offset}", offset, group, node=f"consumer-{group}")
    for offset in range(6):
        story.commit(2 * offset)
    return story


def test_where_everything_agrees_nothing_is_read_again(spark: SparkSession) -> None:
    assert read_buckets(spark, clean_story()) == 0
    judged = evidence_in(spark, clean_story().rows, ("broker",)).judged
    assert {row.messages for row in judged.where("part = 'tally'").collect()} <= {0}


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
    """The row with the names of small log `number`; the first PREFIX characters of its ids are the number."""
    names = {name: f"{row[name]}{number}" for name in ("node", "topic", "group") if row.get(name)}
    msg_id = {"msg_id": f"{number:0{PREFIX}}{row['msg_id']}"} if row.get("msg_id") else {}
    return row | names | msg_id | {"attrs": {"broker": f"broker{number}", **row.get("attrs", {})}}


def test_one_row_that_disagrees_has_its_bucket_read_again(spark: SparkSession) -> None:
    # One small log without a change, and one for each change; the ids of each are one bucket.
    rows = clean_story().rows
    logs = [rows]
    for kind, change in CHANGES:
        at = next(i for i, row in enumerate(rows) if row["kind"] == kind)
        logs.append([*rows[:at], rows[at] | change, *rows[at + 1 :]])
    brokers = tuple(f"broker{number}" for number in range(len(logs)))
    all_rows = [of_log(number, row) for number, log in enumerate(logs) for row in log]
    buckets = evidence_in(spark, all_rows, brokers, Options(id_prefix=PREFIX)).buckets
    assert buckets
    assert buckets.count == len(logs)
    read = buckets.read["text"].to_pylist()
    assert sorted(read) == [f"{number:0{PREFIX}}" for number in range(1, len(logs))]


OF_MESSAGES = ("FLUSH-1", "DELIV-1", "DELIV-2", "DELIV-3", "DELIV-4", "DELIV-5")
"""What the changes of `troubled` can break."""


def troubled(seed: int) -> list[dict[str, Any]]:
    """A clean log with a few rows dropped, doubled or changed."""
    chance = random.Random(seed)
    rows = [dict(row) for row in clean_story().rows]
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


def test_checks_find_the_same_with_fingerprints_and_without(spark: SparkSession) -> None:
    # Many small logs as one: each has nodes, topics, groups and ids of its own.
    # With the number at the end of its ids, a log has many buckets.
    rows = [
        of_log(part, row) | ({"msg_id": f"{row['msg_id']}{part}"} if "msg_id" in row else {})
        for part in range(100)
        for row in troubled(part)
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


@pytest.mark.parametrize(("exact", "named_max"), [(False, 0), (False, 100), (True, 100)])
def test_the_rows_in_doubt_are_enough_to_tell_all_that_the_log_does(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, exact: bool, named_max: int
) -> None:
    monkeypatch.setattr(extraction, "_NAMED_MAX", named_max)
    story = clean_story().stored("m_jumped_over", 12).stored("m_13", 13)
    for group in GROUPS:
        story.deliver("m_13", 13, group, node=f"consumer-{group}")
    story.deliver("m_3", 3, "g", node="consumer-g").commit(14).commit(2)
    story.add("consume_fail", "consumer-h", msg_id="m_5", topic="t", queue_id=0, queue_offset=5, group="h")
    whole, once = (
        evidence_in(spark, story.rows, ("broker",), Options(exact=exact), folder)
        for folder in (None, tmp_path)
    )
    for name in ("messages", "doubted", "steps", "troubled"):
        expected, found = ([str(row) for row in getattr(of, name).collect()] for of in (whole, once))
        assert sorted(found) == sorted(expected), name
        assert found, name
    kept = spark.read.parquet(str(tmp_path)).dropDuplicates(["node", "seq"])
    assert 0 < kept.count() < len(story.rows) / 2


def test_checks_find_the_same_whatever_a_cell_is(spark: SparkSession) -> None:
    story = clean_story()
    del story.rows[-7]
    found = []
    for prefix in (0, 3):
        evidence = evidence_in(spark, story.rows, ("broker",), Options(id_prefix=prefix))
        found.append({row.msg_id for row in evidence.messages.collect()})
        assert evidence.buckets
        assert 0 < len(evidence.buckets.read) < evidence.buckets.count
    assert found[0] == found[1]
    assert found[0]
