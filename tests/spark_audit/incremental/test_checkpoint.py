"""Nights: whatever is cut in two, the sum of nights is one run over all.

Method: logs into which random trouble is put row by row, cut at random times, each node's a little elsewhere;
all violations that the nights told, less those that they took back, must be those of one run.
"""

import random
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from pyspark.sql import SparkSession

from mqproof.spark_audit.audit import Audit, audit, violations
from mqproof.spark_audit.checks import EVENT_CHECKS, Check
from mqproof.spark_audit.incremental.carried_state import CarriedState, Manifest
from mqproof.spark_audit.incremental.checkpoint import remembered
from mqproof.spark_audit.incremental.continuation import Continuation
from mqproof.spark_audit.incremental.state_folder import (
    FORGET_US,
    SCHEMA_VERSION,
    next_state,
    open_run,
    state_path,
)
from mqproof.spark_audit.passes.message_columns import SCHEDULE_TOPIC
from mqproof.spark_audit.passes.profile import profile
from mqproof.spark_audit.schema import KEY
from mqproof.spark_audit.sources.event_log import EventLog
from mqproof.spark_audit.sources.inputs import InputError
from tests.spark_audit.conftest import STEP_US, Story, frame
from tests.spark_audit.passes.test_fingerprint import failure_events

LATE_US = 200 * STEP_US
"""More than what belongs together in `long_log` is apart, and far less than the whole."""

OF_TRAFFIC = {name: EVENT_CHECKS[name] for name in ("DELIV-1", "DELIV-3", "DELIV-4", "DELIV-5")}

Rows = list[dict[str, Any]]


def long_log(parts: int) -> Rows:
    """Small logs one after the other, each with nodes, topics, groups and ids of its own."""
    return [
        row
        | {name: f"{row[name]}{part}" for name in ("node", "topic", "msg_id", "group") if row.get(name)}
        | {
            "attrs": {"broker": f"broker{part}", **row.get("attrs", {})},
            "ts": row["ts"] + part * 40 * STEP_US,
        }
        for part in range(parts)
        for row in failure_events(part)
    ]


def cut(rows: Rows, ends: Sequence[int]) -> list[Rows]:
    """Nights that end then: of each node a stretch of its numbers, a little longer than of another."""
    chance = random.Random(1)
    nights: list[Rows] = [[] for _ in range(len(ends) + 1)]
    for node in sorted({row["node"] for row in rows}):
        night, longer = 0, chance.randrange(20 * STEP_US)
        for row in sorted((row for row in rows if row["node"] == node), key=lambda row: row["seq"]):
            while night < len(ends) and row["ts"] >= ends[night] + longer:
                night += 1
            nights[night].append(row)
    return nights


def keys(found: Rows) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row[name] for name in KEY) for row in found)


def audited(
    spark: SparkSession,
    rows: Rows,
    scratch: Path,
    state: Path | None = None,
    checks: Mapping[str, Check] = OF_TRAFFIC,
    forget_us: int = FORGET_US,
) -> Audit:
    log = frame(spark, rows)
    scratch.mkdir(exist_ok=True)
    if state is None:
        return audit(log, scratch, pictures=False, checks=checks)
    night = open_run(spark, state, LATE_US, forget_us)
    with next_state(night) as following:
        return audit(log, scratch, pictures=False, checks=checks, history=Continuation(night, following))


def story(begins: Sequence[int]) -> list[Rows]:
    """What is cut by three nights, the first and the last further apart than `late`.

    m_lost is acknowledged in the first night and passed over later; m_twice is handed to its group in the
    first and again in the last; a consumer jumps over what another group was handed the night before; a
    committed offset goes back from one night to the next.
    """
    told, ends = Story(), []
    for offset, name in enumerate(("m_twice", "m_1", "m_lost", "m_3", "m_4", "m_5")):
        told.stored(name, offset)
    for offset, name in enumerate(("m_twice", "m_1")):
        told.deliver(name, offset).deliver(name, offset, "h", "other")
    told.commit(2)
    ends.append(len(told.rows))
    told.commit(1)
    for offset, name in ((3, "m_3"), (4, "m_4")):
        told.deliver(name, offset, "h", "other")
    ends.append(len(told.rows))
    told.deliver("m_twice", 0, node="again").deliver("m_4", 4).deliver("m_5", 5)
    told.deliver("m_3", 3, node="late").deliver("m_5", 5, "h", "other")
    ends.append(len(told.rows))
    return at_nights(told, begins, ends)


def at_nights(told: Story, begins: Sequence[int], ends: Sequence[int]) -> list[Rows]:
    """The rows up to each of the ends, from these times on."""
    return [
        [
            row | {"ts": at + number * STEP_US, "attrs": {"broker": "broker", **row["attrs"]}}
            for number, row in enumerate(told.rows[begin:end])
        ]
        for at, begin, end in zip(begins, [0, *ends], ends, strict=False)
    ]


SHOWN = {
    (2, "offset-regression", "g"),
    (2, "lost-write", "h"),
    (3, "lost-write", "g"),
    (3, "duplicate-delivery", "g"),
    (3, "poll-skip", "g"),
}
"""(night, rule, group) of what is wrong in `story`."""


def summed(
    spark: SparkSession, nights: list[Rows], tmp_path: Path, checks: Mapping[str, Check] = OF_TRAFFIC
) -> tuple[list[Counter[tuple[Any, ...]]], CarriedState]:
    """What each night told and what the last one left, after a look at whether that is one run over all."""
    told: list[Counter[tuple[Any, ...]]] = []
    taken_back = 0
    for number, rows in enumerate(nights):
        done = audited(spark, rows, tmp_path / f"{number}", tmp_path / "state", checks)
        told.append(keys(violations(done)))
        taken_back += done.withdrawn
    whole = [row for rows in nights for row in rows]
    due = keys(violations(audited(spark, whole, tmp_path / "all", checks=checks)))
    in_all = Counter(key for found in told for key in found.elements())
    assert (due - in_all, (in_all - due).total()) == (Counter(), taken_back)
    carried = open_run(spark, tmp_path / "state").carried
    assert carried is not None
    assert keys([row.asDict() for row in carried.findings.where("cause IS NULL").collect()]) == due
    return told, carried


@pytest.mark.deep
def test_a_violation_split_between_runs_is_reported_once_by_the_run_that_shows_it(
    spark: SparkSession, tmp_path: Path
) -> None:
    nights = story((0, 350 * STEP_US, 700 * STEP_US))
    told, carried = summed(spark, nights, tmp_path)
    assert {(night, key[1], key[-1]) for night, found in enumerate(told, 1) for key in found} == SHOWN
    assert "m_lost" in {row.msg_id for row in carried.rows.collect()}
    state = tmp_path / "state"
    before = sorted(state.iterdir())
    with pytest.raises(InputError, match="rows of an earlier run"):
        audited(spark, nights[2], tmp_path / "again", state)
    assert sorted(state.iterdir()) == before, "the state of an interrupted night is not there"


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(3))
def test_incremental_runs_together_find_the_violations_of_one_run(
    spark: SparkSession, tmp_path: Path, seed: int
) -> None:
    chance, log = random.Random(seed), long_log(40)
    last = max(row["ts"] for row in log)
    ends = sorted(chance.randrange(last) for _ in range(2))
    _, carried = summed(spark, cut(log, ends), tmp_path)
    # What is settled was left behind.
    assert carried.rows.count() < len(log) / 2


OF_CONSUMERS = {name: EVENT_CHECKS[name] for name in ("DELIV-2", "DELIV-6", "DELIV-7", "DELIV-13")}


def consumers(begins: Sequence[int]) -> list[Rows]:
    """Two consumers take turns at one queue in each night, and no owners change but at the beginning; a
    message fails in the first night and is committed as done in the last; in the last a group begins to read
    a topic that nobody read; in the first, two listeners of a group in order are at work at once."""
    told, ends = Story(), []
    for group, attrs in (("g", {}), ("lined", {"orderly": "true"})):
        told.add("rebalance", "one", group=group, client="one", attrs=attrs)
    for offset in range(6 * len(begins)):
        told.stored(f"m_{offset}", offset)
    unread = {"msg_id": "m_unread", "topic": "unread", "queue_id": 0, "queue_offset": 0}
    told.add("send", "producer", msg_id="m_unread", topic="unread", attempt=1)
    told.add("append", "broker", commit_offset=10_000, **unread)
    told.add("send_ack", "producer", status="SEND_OK", **unread)
    told.deliver("m_0", 0, "f", "failing")
    told.add(
        "consume_fail", "failing", msg_id="m_0", topic="t", queue_id=0, queue_offset=0, group="f",
        client="failing",
    )  # fmt: skip
    told.deliver("m_0", 0, "lined", "a").deliver("m_1", 1, "lined", "b")
    for number, node in enumerate(("b", "a")):
        told.add(
            "consume_ok", node, msg_id=f"m_{1 - number}", topic="t", queue_id=0, queue_offset=1 - number,
            group="lined", client=node,
        )  # fmt: skip
    for night in range(len(begins)):
        for turn in range(6):
            offset = 6 * night + turn
            told.deliver(f"m_{offset}", offset, "g", ("one", "two")[turn % 2])
            if offset:
                told.deliver(f"m_{offset}", offset, "f", "failing")
            if offset > 1:
                told.deliver(f"m_{offset}", offset, "lined", "b")
        ends.append(len(told.rows))
    told.add("offset_commit", "failing", topic="t", queue_id=0, queue_offset=1, group="f", client="failing")
    told.add("deliver", "newcomer", group="newcomers", client="newcomer", **unread)
    ends[-1] = len(told.rows)
    return at_nights(told, begins, ends)


@pytest.mark.deep
def test_a_violation_of_consumers_over_several_runs_is_reported_once(
    spark: SparkSession, tmp_path: Path
) -> None:
    nights = consumers((0, 400 * STEP_US, 800 * STEP_US))
    told, _ = summed(spark, nights, tmp_path, OF_CONSUMERS)
    shown = {(night, key[1], key[-2]) for night, found in enumerate(told, 1) for key in found.elements()}
    assert shown == {
        (1, "double-owned", None), (1, "orderly-overlap", "m_1"), (3, "failed-and-dropped", "m_0"),
    }  # fmt: skip


@pytest.mark.deep
def test_a_master_is_judged_by_the_mode_that_it_reported_in_an_earlier_run(
    spark: SparkSession, tmp_path: Path
) -> None:
    told = Story()
    for number in range(2):
        told.add("flush", "broker", commit_offset=100, attrs={"file": "log"})
        told.add("ha_ack", "broker", commit_offset=100, attrs={"role": "SYNC_MASTER", "slave": "s"})
        told.add("send_ack", "broker", msg_id=f"m_{number}", status="SEND_OK", commit_offset=100 * number)
    # In the second night neither disk nor slave is heard of.
    nights = at_nights(told, (0, 400 * STEP_US), [4, len(told.rows)])
    nights[1] = [row for row in nights[1] if row["kind"] == "send_ack"]
    nights[1][0]["seq"] = len(nights[0])
    checks = {name: EVENT_CHECKS[name] for name in ("REPL-1", "REPL-3")}
    found, _ = summed(spark, nights, tmp_path, checks)
    assert [{key[:2] for key in of_night} for of_night in found] == [
        set(), {("REPL-1", "acked-before-slave"), ("REPL-3", "ok-before-flush")},
    ]  # fmt: skip


@pytest.mark.deep
def test_an_early_delivery_of_a_message_delayed_in_an_earlier_run_is_found(
    spark: SparkSession, tmp_path: Path
) -> None:
    told = Story().stored("m_0", 0).deliver("m_0", 0)
    for number, name in enumerate(("m_early", "m_due")):
        told.send(name).ack(name, 1 + number)
        told.add(
            "append", "broker", msg_id=name, topic=SCHEDULE_TOPIC, queue_id=(17, 4)[number], queue_offset=0,
            commit_offset=1000 + number,
        )  # fmt: skip
    ends = [len(told.rows)]
    for number, name in enumerate(("m_early", "m_due")):
        told.append(name, 1 + number, 2000 + number).deliver(name, 1 + number)
    nights = at_nights(told, (0, 400 * STEP_US), [*ends, len(told.rows)])
    found, _ = summed(spark, nights, tmp_path, {"DELIV-8": EVENT_CHECKS["DELIV-8"]})
    assert [{key[6] for key in of_night} for of_night in found] == [set(), {"m_early"}]


def leavers(begins: Sequence[int]) -> list[Rows]:
    """Two groups read a topic in the first night, one of them until it misses a message; in the second only
    the other does; in the last it comes back, with a client of another name, to what was stored meanwhile."""
    told, ends = Story(), []
    for night, offset in enumerate(range(0, 9, 3)):
        for number in range(offset, offset + 3):
            told.stored(f"m_{number}", number).deliver(f"m_{number}", number, "h", "stays")
            if night == 0 and number != 1:
                told.deliver(f"m_{number}", number, "g", "leaves")
        if night == 2:
            for number in (4, 5, 6):
                told.deliver(f"m_{number}", number, "g", "comes")
        ends.append(len(told.rows))
    return at_nights(told, begins, ends)


@pytest.mark.deep
def test_an_inactive_client_is_forgotten_and_starts_again_when_it_returns(
    spark: SparkSession, tmp_path: Path
) -> None:
    checks = OF_TRAFFIC | {"DELIV-2": EVENT_CHECKS["DELIV-2"]}
    told: list[set[Any]] = []
    for number, rows in enumerate(leavers((0, 400 * STEP_US, 800 * STEP_US))):
        done = audited(
            spark, rows, tmp_path / f"{number}", tmp_path / "state", checks, forget_us=100 * STEP_US
        )
        told.append({(row["rule"], row["msg_id"], row["group"]) for row in violations(done)})
        carried = open_run(spark, tmp_path / "state").carried
        assert carried is not None
        known = {row["node"] for row in carried.profile.select("node").collect()}
        assert ("leaves" in known) == (number == 0)
        if number == 1:
            assert "leaves" not in {row.node for row in carried.rows.collect()}
            assert {row.group for row in carried.reach.collect()} == {"h", None}
    assert told == [{(rule, "m_1", "g") for rule in ("lost-write", "poll-skip")}, set(), set()]


def test_clients_are_forgotten_and_brokers_are_not(spark: SparkSession) -> None:
    story = Story().stored("m_0", 0).deliver("m_0", 0, node="leaves").stored("m_1", 1)
    story.deliver("m_1", 1, node="stays")
    profiled = profile(EventLog.of(frame(spark, story.rows)))
    ends = {row["node"]: row["ts"] for row in story.rows}

    def known(since: int) -> set[str]:
        return {row["node"] for row in remembered(profiled, since).select("node").collect()}

    assert known(ends["leaves"]) == {"broker", "producer", "leaves", "stays"}
    assert known(ends["leaves"] + 1) == {"broker", "producer", "stays"}
    assert known(ends["stays"] + 1) == {"broker"}


def test_a_clock_that_is_ahead_does_not_advance_the_watermark(spark: SparkSession, tmp_path: Path) -> None:
    now = time.time_ns() // 1_000
    rows = at_nights(Story().stored("m_0", 0), [now], [4])[0]
    rows[-1]["ts"] += FORGET_US
    audited(spark, rows, tmp_path, tmp_path / "state", {})
    carried = open_run(spark, tmp_path / "state").carried
    assert carried is not None
    assert now - LATE_US <= carried.manifest.watermark < now - LATE_US + 600_000_000
    assert carried.rows.count() == len(rows)


def test_a_state_given_by_its_own_folder_is_used_without_a_new_state(
    spark: SparkSession, tmp_path: Path
) -> None:
    folder = state_path(tmp_path, 7)
    folder.mkdir()
    manifest = Manifest(SCHEMA_VERSION, 7, 0, 0)
    (folder / "manifest.json").write_bytes(msgspec.json.encode(manifest))
    for name in ("rows", "profile", "steps", "reach", "standing", "findings"):
        frame(spark, []).write.parquet(str(folder / name))
    night = open_run(spark, folder)
    assert (night.number, night.is_replay, night.before) == (8, True, folder)
    with next_state(night) as following:
        assert following is None
    newest = open_run(spark, tmp_path)
    assert (newest.number, newest.is_replay, newest.before) == (8, False, folder)
    with pytest.raises(InputError, match="another process has finished this run"), next_state(newest):
        state_path(tmp_path, 8).mkdir()
    assert not list(tmp_path.glob(".night*"))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("notes.txt", b"mine", "not a state of an audit, and not empty"),
        ("manifest.json", b"{", "not a state of an audit"),
        (
            "manifest.json",
            b'{"schema":99,"night":1,"watermark":0,"missing_rows":0}',
            "its schema version is 99",
        ),
    ],
)
def test_a_folder_without_a_valid_state_is_refused(
    spark: SparkSession, tmp_path: Path, name: str, content: bytes, message: str
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=message):
        open_run(spark, tmp_path)
