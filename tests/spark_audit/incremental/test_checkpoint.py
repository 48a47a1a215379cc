"""Incremental runs together find the violations of one run over the whole log, wherever the log is split.

Method: take logs with random faults and split them at random times, a little differently for each node. All
violations that the runs reported, without the withdrawn ones, must be those of one run.
"""

import random
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest
from pyspark.sql import DataFrame, SparkSession

from mqproof.spark_audit.audit import Audit, audit, violations
from mqproof.spark_audit.checks import EVENT_CHECKS, Check
from mqproof.spark_audit.engine import active
from mqproof.spark_audit.engine.embedded.database import Database
from mqproof.spark_audit.incremental.carried_state import NO_BATCH, Batch, CarriedState, Manifest
from mqproof.spark_audit.incremental.checkpoint import by_hour, newest_batch, next_watermark, remembered
from mqproof.spark_audit.incremental.continuation import Continuation
from mqproof.spark_audit.incremental.state_folder import (
    FORGET_US,
    SCHEMA_VERSION,
    IncrementalRun,
    next_state,
    open_run,
    state_path,
)
from mqproof.spark_audit.passes.message_columns import SCHEDULE_TOPIC
from mqproof.spark_audit.passes.profile_partition import profile
from mqproof.spark_audit.schema import KEY
from mqproof.spark_audit.sources.event_log import EventLog
from mqproof.spark_audit.sources.inputs import InputError
from tests.spark_audit.conftest import STEP_US, LogBuilder, frame
from tests.spark_audit.passes.test_fingerprint import faulty_log

LATE_US = 200 * STEP_US
"""Longer than the time between related events in `long_log`, and far shorter than the whole log."""

OF_TRAFFIC = {name: EVENT_CHECKS[name] for name in ("DELIV-1", "DELIV-3", "DELIV-4", "DELIV-5")}

Rows = list[dict[str, Any]]


def long_log(parts: int) -> Rows:
    """Return small logs one after the other, each with its own nodes, topics, groups and ids."""
    return [
        row
        | {name: f"{row[name]}{part}" for name in ("node", "topic", "msg_id", "group") if row.get(name)}
        | {
            "attrs": {"broker": f"broker{part}", **row.get("attrs", {})},
            "ts": row["ts"] + part * 40 * STEP_US,
        }
        for part in range(parts)
        for row in faulty_log(part)
    ]


def cut(rows: Rows, ends: Sequence[int]) -> list[Rows]:
    """Split the rows at these times, a little later for some nodes than for others."""
    chance = random.Random(1)
    runs: list[Rows] = [[] for _ in range(len(ends) + 1)]
    for node in sorted({row["node"] for row in rows}):
        run, longer = 0, chance.randrange(20 * STEP_US)
        for row in sorted((row for row in rows if row["node"] == node), key=lambda row: row["seq"]):
            while run < len(ends) and row["ts"] >= ends[run] + longer:
                run += 1
            runs[run].append(row)
    return runs


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
    run = open_run(spark, state, LATE_US, forget_us)
    with next_state(run) as following:
        return audit(log, scratch, pictures=False, checks=checks, history=Continuation(run, following))


def split_log(begins: Sequence[int]) -> list[Rows]:
    """Return a log whose violations are split between three runs; the runs are further apart than LATE_US.

    m_lost and m_3 are acknowledged in the first run and skipped later. m_twice is delivered to its group in
    the first run and again in the last. A consumer skips a message that another group received in the run
    before. A committed offset goes back from one run to the next.
    """
    log, ends = LogBuilder(), []
    for offset, name in enumerate(("m_twice", "m_1", "m_lost", "m_3", "m_4", "m_5")):
        log.stored(name, offset)
    for offset, name in enumerate(("m_twice", "m_1")):
        log.deliver(name, offset).deliver(name, offset, "h", "other")
    log.commit(2)
    ends.append(len(log.rows))
    log.commit(1)
    for offset, name in ((3, "m_3"), (4, "m_4")):
        log.deliver(name, offset, "h", "other")
    ends.append(len(log.rows))
    log.deliver("m_twice", 0, node="again").deliver("m_4", 4).deliver("m_5", 5)
    log.deliver("m_5", 5, "h", "other")
    ends.append(len(log.rows))
    return at_runs(log, begins, ends)


def at_runs(log: LogBuilder, begins: Sequence[int], ends: Sequence[int]) -> list[Rows]:
    """Split the rows at the ends, and let each part begin at the given time."""
    return [
        [
            row | {"ts": at + number * STEP_US, "attrs": {"broker": "broker", **row["attrs"]}}
            for number, row in enumerate(log.rows[begin:end])
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
"""(run, rule, group) of the violations in `split_log`."""


def summed(
    spark: SparkSession, runs: list[Rows], tmp_path: Path, checks: Mapping[str, Check] = OF_TRAFFIC
) -> tuple[list[Counter[tuple[Any, ...]]], CarriedState]:
    """Return the violations that each run reported and the state of the last one.

    Assert that together they are the violations of one run over the whole log.
    """
    reported: list[Counter[tuple[Any, ...]]] = []
    withdrawn = 0
    for number, rows in enumerate(runs):
        done = audited(spark, rows, tmp_path / f"{number}", tmp_path / "state", checks)
        reported.append(keys(violations(done)))
        withdrawn += done.withdrawn
    whole = [row for rows in runs for row in rows]
    expected = keys(violations(audited(spark, whole, tmp_path / "all", checks=checks)))
    in_all = Counter(key for found in reported for key in found.elements())
    assert (expected - in_all, (in_all - expected).total()) == (Counter(), withdrawn)
    carried = open_run(spark, tmp_path / "state").carried
    assert carried is not None
    assert keys([row.asDict() for row in carried.findings.where("cause IS NULL").collect()]) == expected
    return reported, carried


@pytest.mark.deep("four audits on Spark")
def test_a_violation_split_between_runs_is_reported_once_by_the_run_that_shows_it(
    spark: SparkSession, tmp_path: Path
) -> None:
    runs = split_log((0, 350 * STEP_US, 700 * STEP_US))
    reported, carried = summed(spark, runs, tmp_path)
    assert {(run, key[1], key[-1]) for run, found in enumerate(reported, 1) for key in found} == SHOWN
    assert "m_lost" in {row.msg_id for row in carried.rows.collect()}
    state = tmp_path / "state"
    before = sorted(state.iterdir())
    with pytest.raises(InputError, match="rows of an earlier run"):
        audited(spark, runs[2], tmp_path / "again", state)
    assert sorted(state.iterdir()) == before, "an interrupted run leaves no state"


@pytest.mark.deep("four audits on Spark for each seed")
@pytest.mark.parametrize("seed", range(3))
def test_incremental_runs_together_find_the_violations_of_one_run(
    spark: SparkSession, tmp_path: Path, seed: int
) -> None:
    chance, log = random.Random(seed), long_log(40)
    last = max(row["ts"] for row in log)
    ends = sorted(chance.randrange(last) for _ in range(2))
    _, carried = summed(spark, cut(log, ends), tmp_path)
    # Settled rows are not carried.
    assert carried.rows.count() < len(log) / 2


OF_CONSUMERS = {name: EVENT_CHECKS[name] for name in ("DELIV-2", "DELIV-6", "DELIV-7", "DELIV-13")}


def consumers(begins: Sequence[int]) -> list[Rows]:
    """Return a log of consumers whose violations are split between the runs.

    Two consumers receive messages of one queue in turn in each run, and the only rebalance is at the
    beginning. A message fails in the first run and is committed as consumed in the last. In the last run, a
    group begins to read a topic that had no reader. In the first run, two members of an orderly group process
    messages at the same time.
    """
    log, ends = LogBuilder(), []
    for group, attrs in (("g", {}), ("lined", {"orderly": "true"})):
        log.add("rebalance", "one", group=group, client="one", attrs=attrs)
    for offset in range(6 * len(begins)):
        log.stored(f"m_{offset}", offset)
    unread = {"msg_id": "m_unread", "topic": "unread", "queue_id": 0, "queue_offset": 0}
    log.add("send", "producer", msg_id="m_unread", topic="unread", attempt=1)
    log.add("append", "broker", commit_offset=10_000, **unread)
    log.add("send_ack", "producer", status="SEND_OK", **unread)
    log.deliver("m_0", 0, "f", "failing")
    log.add(
        "consume_fail", "failing", msg_id="m_0", topic="t", queue_id=0, queue_offset=0, group="f",
        client="failing",
    )  # fmt: skip
    log.deliver("m_0", 0, "lined", "a").deliver("m_1", 1, "lined", "b")
    for number, node in enumerate(("b", "a")):
        log.add(
            "consume_ok", node, msg_id=f"m_{1 - number}", topic="t", queue_id=0, queue_offset=1 - number,
            group="lined", client=node,
        )  # fmt: skip
    for run in range(len(begins)):
        for turn in range(6):
            offset = 6 * run + turn
            log.deliver(f"m_{offset}", offset, "g", ("one", "two")[turn % 2])
            if offset:
                log.deliver(f"m_{offset}", offset, "f", "failing")
            if offset > 1:
                log.deliver(f"m_{offset}", offset, "lined", "b")
        ends.append(len(log.rows))
    log.add("offset_commit", "failing", topic="t", queue_id=0, queue_offset=1, group="f", client="failing")
    log.add("deliver", "newcomer", group="newcomers", client="newcomer", **unread)
    ends[-1] = len(log.rows)
    return at_runs(log, begins, ends)


@pytest.mark.deep("four audits on Spark")
def test_a_violation_of_consumers_over_several_runs_is_reported_once(
    spark: SparkSession, tmp_path: Path
) -> None:
    runs = consumers((0, 400 * STEP_US, 800 * STEP_US))
    reported, _ = summed(spark, runs, tmp_path, OF_CONSUMERS)
    shown = {(run, key[1], key[-2]) for run, found in enumerate(reported, 1) for key in found.elements()}
    assert shown == {
        (1, "double-owned", None), (1, "orderly-overlap", "m_1"), (3, "failed-and-dropped", "m_0"),
    }  # fmt: skip


@pytest.mark.deep("three audits on Spark")
def test_a_master_is_judged_by_the_mode_that_it_reported_in_an_earlier_run(
    spark: SparkSession, tmp_path: Path
) -> None:
    log = LogBuilder()
    for number in range(2):
        log.add("flush", "broker", commit_offset=100, attrs={"file": "log"})
        log.add("ha_ack", "broker", commit_offset=100, attrs={"role": "SYNC_MASTER", "slave": "s"})
        log.add("send_ack", "broker", msg_id=f"m_{number}", status="SEND_OK", commit_offset=100 * number)
    # The second run has no event of the disk or the slave.
    runs = at_runs(log, (0, 400 * STEP_US), [4, len(log.rows)])
    runs[1] = [row for row in runs[1] if row["kind"] == "send_ack"]
    runs[1][0]["seq"] = len(runs[0])
    checks = {name: EVENT_CHECKS[name] for name in ("REPL-1", "REPL-3")}
    found, _ = summed(spark, runs, tmp_path, checks)
    assert [{key[:2] for key in of_run} for of_run in found] == [
        set(), {("REPL-1", "acked-before-slave"), ("REPL-3", "ok-before-flush")},
    ]  # fmt: skip


@pytest.mark.deep("three audits on Spark")
def test_an_early_delivery_of_a_message_delayed_in_an_earlier_run_is_found(
    spark: SparkSession, tmp_path: Path
) -> None:
    log = LogBuilder().stored("m_0", 0).deliver("m_0", 0)
    for number, name in enumerate(("m_early", "m_due")):
        log.send(name).ack(name, 1 + number)
        log.add(
            "append", "broker", msg_id=name, topic=SCHEDULE_TOPIC, queue_id=(17, 4)[number], queue_offset=0,
            commit_offset=1000 + number,
        )  # fmt: skip
    ends = [len(log.rows)]
    for number, name in enumerate(("m_early", "m_due")):
        log.append(name, 1 + number, 2000 + number).deliver(name, 1 + number)
    runs = at_runs(log, (0, 400 * STEP_US), [*ends, len(log.rows)])
    found, _ = summed(spark, runs, tmp_path, {"DELIV-8": EVENT_CHECKS["DELIV-8"]})
    assert [{key[6] for key in of_run} for of_run in found] == [set(), {"m_early"}]


def inactive_client(begins: Sequence[int]) -> list[Rows]:
    """Return a log with two groups, of which one is inactive in the second run.

    Both groups read a topic in the first run, where one of them misses a message. In the last run, that group
    returns with another client and reads the messages stored in the meantime.
    """
    log, ends = LogBuilder(), []
    for run, offset in enumerate(range(0, 9, 3)):
        for number in range(offset, offset + 3):
            log.stored(f"m_{number}", number).deliver(f"m_{number}", number, "h", "stays")
            if run == 0 and number != 1:
                log.deliver(f"m_{number}", number, "g", "leaves")
        if run == 2:
            for number in (4, 5, 6):
                log.deliver(f"m_{number}", number, "g", "comes")
        ends.append(len(log.rows))
    return at_runs(log, begins, ends)


@pytest.mark.deep("three audits on Spark")
def test_an_inactive_client_is_forgotten_and_starts_again_when_it_returns(
    spark: SparkSession, tmp_path: Path
) -> None:
    checks = OF_TRAFFIC | {"DELIV-2": EVENT_CHECKS["DELIV-2"]}
    reported: list[set[Any]] = []
    for number, rows in enumerate(inactive_client((0, 400 * STEP_US, 800 * STEP_US))):
        done = audited(
            spark, rows, tmp_path / f"{number}", tmp_path / "state", checks, forget_us=100 * STEP_US
        )
        reported.append({(row["rule"], row["msg_id"], row["group"]) for row in violations(done)})
        carried = open_run(spark, tmp_path / "state").carried
        assert carried is not None
        known = {row["node"] for row in carried.profile.select("node").collect()}
        assert ("leaves" in known) == (number == 0)
        if number == 1:
            assert "leaves" not in {row.node for row in carried.rows.collect()}
            assert {row.group for row in carried.reach.collect()} == {"h", None}
    assert reported == [{(rule, "m_1", "g") for rule in ("lost-write", "poll-skip")}, set(), set()]


def test_clients_are_forgotten_and_brokers_are_not(spark: SparkSession) -> None:
    builder = LogBuilder().stored("m_0", 0).deliver("m_0", 0, node="leaves").stored("m_1", 1)
    builder.deliver("m_1", 1, node="stays")
    profiled = profile(EventLog.of(frame(spark, builder.rows)))
    ends = {row["node"]: row["ts"] for row in builder.rows}

    def known(since: int) -> set[str]:
        return {row["node"] for row in remembered(profiled, since).select("node").collect()}

    assert known(ends["leaves"]) == {"broker", "producer", "leaves", "stays"}
    assert known(ends["leaves"] + 1) == {"broker", "producer", "stays"}
    assert known(ends["stays"] + 1) == {"broker"}


def run_after(watermark: int = 0, batch: int = -1) -> IncrementalRun:
    """Return the run after a state without tables."""
    tables = dict.fromkeys(CarriedState.__dataclass_fields__.keys() - {"manifest"})
    carried = CarriedState(Manifest(SCHEMA_VERSION, 1, watermark, 0, batch), **cast(Any, tables))
    return IncrementalRun(Path("state"), LATE_US, carried)


FIRST = IncrementalRun(Path("state"), LATE_US)


@pytest.mark.parametrize(
    ("run", "batch", "newest"),
    [
        (FIRST, NO_BATCH, NO_BATCH),
        (FIRST, Batch(3), Batch(3)),
        (run_after(batch=7), NO_BATCH, Batch(7)),
        (run_after(batch=7), Batch(8, ("a",)), Batch(8, ("a",))),
        (run_after(batch=-1), NO_BATCH, NO_BATCH),
    ],
)
def test_a_run_that_is_no_batch_keeps_the_newest_batch(
    run: IncrementalRun, batch: Batch, newest: Batch
) -> None:
    assert newest_batch(run, batch) == newest


def test_a_clock_that_is_ahead_does_not_advance_the_watermark() -> None:
    last = 1_000 * LATE_US
    assert next_watermark(FIRST, last, last + 1) == last - LATE_US
    assert next_watermark(FIRST, last + FORGET_US, last) == last - LATE_US
    assert next_watermark(run_after(last), last + FORGET_US, last) == last
    assert next_watermark(run_after(last), last + 2 * LATE_US, last + FORGET_US) == last + LATE_US


def write_state(spark: SparkSession, state: Path, manifest: Manifest) -> Path:
    """Write a state without events, and return its folder."""
    folder = state_path(state, manifest.run)
    folder.mkdir(parents=True)
    (folder / "manifest.json").write_bytes(msgspec.json.encode(manifest))
    frame(spark, []).write.parquet(str(folder / "rows"))
    for name in ("profile", "steps", "reach", "standing", "findings"):
        shutil.copytree(folder / "rows", folder / name)
    return folder


def test_a_state_given_by_its_own_folder_is_used_without_a_new_state(
    spark: SparkSession, tmp_path: Path
) -> None:
    folder = write_state(spark, tmp_path, Manifest(SCHEMA_VERSION, 7, 0, 0))
    run = open_run(spark, folder)
    assert (run.number, run.is_replay, run.before) == (8, True, folder)
    with next_state(run) as following:
        assert following is None
    newest = open_run(spark, tmp_path)
    assert (newest.number, newest.is_replay, newest.before) == (8, False, folder)
    with pytest.raises(InputError, match="another process has finished this run"), next_state(newest):
        state_path(tmp_path, 8).mkdir()
    assert not list(tmp_path.glob(".night*"))
    shutil.rmtree(folder / "reach")
    with pytest.raises(InputError, match="reach: not a table of a state"):
        open_run(spark, folder)


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


def test_old_extents_of_one_hour_are_merged(tmp_path: Path) -> None:
    hour = 3_600_000_000
    given = [
        ("g", "b", "t", 0, 0, 4, hour), ("g", "b", "t", 0, 6, 9, hour + 1),
        ("g", "b", "t", 0, 10, 12, 2 * hour),
        (None, "b", "t", 0, 0, 9, hour + 1), ("g", "b", "t", 0, 13, 14, 3 * hour),
        ("g", "b", "t", 0, 15, 15, 3 * hour + 1),
    ]  # fmt: skip
    columns = (
        "group string, broker string, topic string, queue_id int, offset_min bigint, offset_max bigint,"
        " first_ts bigint"
    )
    with active.embedded(), closing(Database(tmp_path)) as database:
        reach = cast(DataFrame, database.createDataFrame(given, columns))
        merged = by_hour(reach, 3 * hour).select("group", "offset_min", "offset_max", "first_ts")
        found = {tuple(row) for row in merged.collect()}
    assert found == {
        ("g", 0, 9, hour), ("g", 10, 12, 2 * hour), (None, 0, 9, hour + 1),
        ("g", 13, 14, 3 * hour), ("g", 15, 15, 3 * hour + 1),
    }  # fmt: skip
