"""The whole audit finds exactly the injected anomalies; no verdict is stronger than the evidence."""

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from mqproof.report.model import Exit, Verdict, exit_code
from mqproof.spark_audit.audit import Audit, audit, violations, write_violations
from mqproof.spark_audit.checks import CHECKS
from mqproof.spark_audit.engine import active
from mqproof.spark_audit.engine.embedded.database import Database
from mqproof.spark_audit.evidence.options import ANY, Options
from mqproof.spark_audit.evidence.skew import with_skew
from mqproof.spark_audit.generator.generate import LogRequest, write_in_process
from mqproof.spark_audit.generator.scenario import ANOMALIES
from mqproof.spark_audit.generator.spark_generate import generate
from mqproof.spark_audit.generator.truth import compare, read_truth
from mqproof.spark_audit.passes.profile import Overview
from mqproof.spark_audit.quality.bench import measure
from mqproof.spark_audit.sources.embedded_read import read_embedded
from mqproof.spark_audit.sources.inputs import InputError, find_files
from mqproof.spark_audit.sources.read import read
from mqproof.spark_audit.spark_schema import FINDINGS
from tests.spark_audit.conftest import (
    STEP_US,
    LogBuilder,
    embedded_audit,
    embedded_evidence,
)

GENERATED = {"FLUSH-1", "DELIV-1", "DELIV-2", "DELIV-3", "DELIV-4", "DELIV-5"}
"""The invariants that the generator's anomalies violate; their checks always run."""

RUN = GENERATED | {"DELIV-7"}
"""The checks that run on a generated log without anomalies."""

FINGERPRINTED = Options(exact=False)
"""The options with which large logs are judged."""


def _verdicts(done: Audit) -> dict[str, Verdict]:
    """Return the verdicts of all checks that ran."""
    return {result.id: result.verdict for result in done.results if result.verdict is not Verdict.NOT_TESTED}


def test_the_checks_find_exactly_the_injected_anomalies(tmp_path: Path) -> None:
    log = tmp_path / "log"
    write_in_process(LogRequest(32_000, dict.fromkeys(ANOMALIES, 3), seed=11), log)
    truth = read_truth(log)
    with active.embedded(), closing(Database(tmp_path)) as database:
        done = audit(read_embedded(database, find_files([str(log)]), tmp_path), tmp_path)
        found = violations(done)
        rows = write_violations(done, tmp_path / "violations.parquet")
    difference = compare(found, truth)
    assert difference.expected > 3 * len(ANOMALIES)
    assert (difference.missed, difference.false_alarms) == ((), ())
    violated = GENERATED | {"DELIV-13"}
    expected = {name: Verdict.VIOLATED if name in violated else Verdict.HELD for name in RUN | violated}
    assert _verdicts(done) == expected
    assert all(result.witnesses for result in done.results if result.id in violated)
    assert done.pictures["over_time"]
    table = pq.read_table(tmp_path / "violations.parquet")
    assert (rows, table.num_rows) == (difference.expected, difference.expected)
    assert table.column_names == FINDINGS.fieldNames()


@pytest.mark.deep("Spark compiles each query; it interprets them in engine/test_same_results.py")
def test_spark_finds_exactly_the_injected_anomalies_with_the_settings_of_users(
    compiling_spark: SparkSession, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    generate(compiling_spark, LogRequest(100_000, dict.fromkeys(ANOMALIES, 9), seed=11), log)
    done = audit(read(compiling_spark, [str(log)], tmp_path).events, tmp_path, options=FINGERPRINTED)
    difference = compare(violations(done), read_truth(log))
    assert difference.expected > 9 * len(ANOMALIES)
    assert (difference.missed, difference.false_alarms) == ((), ())
    assert done.pictures["over_time"]


def test_violations_that_cannot_be_written_are_an_error_of_the_file(tmp_path: Path) -> None:
    seen = Overview(0, {}, (), (), 0, 0, 0, 0, ())
    empty = Audit(seen, {}, (), Counter(), tmp_path)
    with pytest.raises(OSError, match=r"no/violations\.parquet"):
        write_violations(empty, tmp_path / "no" / "violations.parquet")


@pytest.mark.deep("up to 100 million events")
@pytest.mark.timeout(4 * 3600)
@pytest.mark.parametrize("events", [1_000_000, 10_000_000, 100_000_000])
def test_millions_of_events_are_judged_exactly(events: int) -> None:
    # It stops its session, which other tests must not share, and it needs more memory.
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        measured = pool.submit(measure, events, injected=40 if events < 10_000_000 else 125).result()
    assert measured.truth
    assert measured.truth.exact
    assert measured.clean_findings == 0
    assert measured.duckdb
    assert measured.duckdb.exact


@pytest.mark.deep("100 audits on Spark")
@pytest.mark.timeout(4 * 3600)
def test_no_seed_causes_a_false_alarm(spark: SparkSession, tmp_path: Path) -> None:
    for seed in range(100, 200):
        write_in_process(LogRequest(20_000, seed=seed), tmp_path / str(seed))
        log = read(spark, [str(tmp_path / str(seed))], tmp_path).events
        assert violations(audit(log, tmp_path, pictures=False)) == [], seed


def _of_seed(folder: Path, seed: int) -> Iterator[dict[str, Any]]:
    """Yield the rows of a generated log with unique names, so that several logs can be joined to one."""
    for row in pa.concat_tables(map(pq.read_table, folder.glob("part-*.parquet"))).to_pylist():
        named = {name: f"{row[name]}-{seed}" for name in ("node", "msg_id", "topic", "group") if row[name]}
        attrs = {
            key: f"{value}-{seed}" if key in ("broker", "node") else value
            for key, value in row["attrs"] or ()
        }
        yield {name: value for name, value in (row | named | {"attrs": attrs}).items() if value is not None}


def test_logs_with_only_harmless_faults_hold(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = []
    for seed in (12, 13, 14):
        write_in_process(LogRequest(2_500, seed=seed), tmp_path / str(seed))
        rows += _of_seed(tmp_path / str(seed), seed)
    done = embedded_audit(rows, tmp_path)
    assert violations(done) == []
    assert _verdicts(done) == dict.fromkeys(RUN, Verdict.HELD)
    assert done.explained[("DELIV-3", "duplicate-delivery", "rebalance")] > 0


def test_an_empty_log_is_unknown(tmp_path: Path) -> None:
    done = embedded_audit([], tmp_path)
    assert _verdicts(done) == dict.fromkeys(GENERATED - {"FLUSH-1"}, Verdict.UNKNOWN)
    assert all(result.detail for result in done.results)
    assert exit_code(done.results) == Exit.INCONCLUSIVE


def test_one_event_or_only_messages_in_flight_give_unknown(tmp_path: Path) -> None:
    checks = {name: CHECKS[name] for name in ("DELIV-1", "DELIV-2")}
    for rows in (LogBuilder().rows, LogBuilder().stored("m_0", 0).stored("m_1", 1).rows):
        done = embedded_audit(rows, tmp_path, checks=checks)
        assert violations(done) == []
        assert _verdicts(done) == dict.fromkeys(checks, Verdict.UNKNOWN)


@pytest.mark.parametrize("has_offset", [False, True])
def test_with_client_logs_only_a_delayed_message_is_lost_if_its_place_was_passed(
    tmp_path: Path, has_offset: bool
) -> None:
    """Our producers report no offset for a delayed message; a reported offset is trusted.

    See docs/reference/protocol/event-log.md, "Event writers and audit inputs".
    """
    builder = LogBuilder()
    for number, msg_id in enumerate(("m_put", "m_waits")):
        at = {"queue_offset": number} if has_offset else {}
        acked = {"msg_id": msg_id, "topic": "t", "queue_id": 0, "status": "SEND_OK", **at}
        builder.send(msg_id).add("send_ack", "producer", **acked)
    for offset in range(4):
        msg_id = "m_put" if offset == 3 else f"m_{offset}"
        if msg_id != "m_put":
            builder.send(msg_id).ack(msg_id, offset)
        builder.deliver(msg_id, offset)
    rows = [row | {"attrs": {"broker": "b"}} for row in builder.rows if row["node"] != "broker"]
    checks = {"DELIV-1": CHECKS["DELIV-1"]}
    done = embedded_audit(rows, tmp_path, checks=checks, options=Options(subscriptions=((ANY, ANY, "*"),)))
    lost = [(found["invariant"], found["rule"], found["msg_id"]) for found in violations(done)]
    assert lost == ([("DELIV-1", "lost-write", "m_waits")] if has_offset else [])
    if not has_offset:
        assert _verdicts(done)["DELIV-1"] is Verdict.HELD


def test_observed_clock_skew_is_allowed_unless_the_skew_is_given() -> None:
    # The producer's clock is three seconds ahead: its send has a later time than the append.
    builder = LogBuilder(subscribed=()).append("m_0", 0).send("m_0").ack("m_0", 0).deliver("m_0", 0)
    builder.rows[2]["ts"] += 2 * STEP_US
    builder.crash(kept_end=0)
    options = Options(skew_us=0, exact=True)
    with embedded_evidence(builder.rows, ("broker",), options) as evidence:
        for given, allowed_us in ((False, 3 * STEP_US), (True, 0)):
            evidence_given = replace(evidence, options=replace(options, is_skew_given=given))
            allowed, seen_us = with_skew(evidence_given)
            assert (allowed.options.skew_us, seen_us) == (allowed_us, 3 * STEP_US)


def test_rows_collected_twice_count_once(tmp_path: Path) -> None:
    builder = LogBuilder().stored("m_0", 0).deliver("m_0", 0)
    done = embedded_audit(builder.rows * 2, tmp_path, checks={"DELIV-3": CHECKS["DELIV-3"]})
    assert done.deduplicated_rows == len(builder.rows)
    assert [result.verdict for result in done.results] == [Verdict.HELD]


def test_two_nodes_of_one_name_are_refused(tmp_path: Path) -> None:
    builder, other = LogBuilder().deliver("m_0", 0), LogBuilder().add("flush", "broker").deliver("m_1", 1)
    with pytest.raises(InputError, match="sequence numbers are given twice"):
        embedded_audit([*builder.rows, *other.rows], tmp_path)


def test_brokers_without_synchronous_flush_or_replication_are_not_tested(tmp_path: Path) -> None:
    builder = LogBuilder(flush="ASYNC_FLUSH").append("m_0", 0)
    for attrs in ({"role": "ASYNC_MASTER", "slave": "s"}, {"index": "0", "leader": "broker-n0"}):
        builder.add("ha_ack", "broker", commit_offset=100, attrs=attrs)
    builder.add("flush", "broker", commit_offset=100, attrs={"file": "log"})
    builder.add("send_ack", "broker", msg_id="m_0", status="SEND_OK", commit_offset=0)
    checks = {name: CHECKS[name] for name in ("REPL-1", "REPL-3")}
    done = embedded_audit(builder.rows, tmp_path, checks=checks)
    assert {result.verdict for result in done.results} == {Verdict.NOT_TESTED}


ENDS = (
    ("crash", "SYNC_FLUSH", False, True),
    ("reported by another node", "SYNC_FLUSH", False, True),
    ("abnormal", "SYNC_FLUSH", False, True),
    ("shutdown", "SYNC_FLUSH", False, False),
    ("crash", "ASYNC_FLUSH", False, False),
    ("crash", "SYNC_FLUSH", True, False),
)
"""End of a broker, its flush mode, whether its messages were stored only afterwards, and whether FLUSH-1 is
tested."""


def _broker_that_ended(number: int, how: str, flush: str, sent_late: bool) -> list[dict[str, Any]]:
    """Return the rows of broker and producer `number`, with 2**number messages."""
    builder, broker = LogBuilder(flush=flush), f"broker-{number}"

    def store(first: int) -> None:
        for offset in range(first, first + 2**number):
            builder.stored(f"m_{number}_{offset}", offset)

    if not sent_late:
        store(0)
    if how == "reported by another node":
        builder.add("crash", "harness", attrs={"node": broker, "kind": "process"})
    elif how == "crash":
        builder.add("crash", "broker", attrs={"kind": "unknown"})
    attrs = {"flush_disk_type": flush, "abnormal": str(how == "abnormal").lower()}
    builder.add("recover", "broker", commit_offset=100 * 2**number, attrs=attrs)
    if sent_late:
        store(2**number)
        builder.add("recover", "broker", commit_offset=100_000, attrs={"flush_disk_type": flush})
    topic = {"topic": f"t-{number}"}
    return [
        row
        | {"node": f"{row['node']}-{number}", "attrs": {"broker": broker, **row["attrs"]}}
        | (topic if "topic" in row else {})
        for row in builder.rows
    ]


def test_crashes_of_synchronously_flushing_brokers_test_durability(tmp_path: Path) -> None:
    # The number of messages at risk, in binary, shows which brokers are tested.
    logs = [_broker_that_ended(number, *end[:3]) for number, end in enumerate(ENDS)]
    testing = {number for number, end in enumerate(ENDS) if end[3]}
    checks = {"FLUSH-1": CHECKS["FLUSH-1"]}
    for numbers, verdict in (
        (set(range(len(ENDS))), Verdict.HELD),
        (set(range(len(ENDS))) - testing, Verdict.NOT_TESTED),
    ):
        rows = [row for number in sorted(numbers) for row in logs[number]]
        done = embedded_audit(rows, tmp_path, checks=checks)
        [result] = done.results
        assert result.verdict is verdict
        if verdict is Verdict.HELD:
            assert result.counts["acked_sync_at_risk"] == sum(2**number for number in testing)
