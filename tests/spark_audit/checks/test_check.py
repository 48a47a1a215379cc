"""Logs whose beginning is missing, and findings that are consequences of others.

Method: small logs are judged whole, and without the first rows of some nodes (`rotated`).
"""

from collections import Counter
from pathlib import Path
from typing import Any

from mqproof.report.model import Result, Verdict
from mqproof.spark_audit.audit import Audit
from mqproof.spark_audit.checks import EVENT_CHECKS
from mqproof.spark_audit.evidence.options import Options
from mqproof.spark_audit.judging.findings import all_found, query
from mqproof.spark_audit.passes.message_columns import SCHEDULE_TOPIC
from tests.spark_audit.conftest import STEP_US, LogBuilder, embedded_audit

Rows = list[dict[str, Any]]
LONG_US = 60 * STEP_US
"""Longer than the time in which a cause counts."""


def rotated(builder: LogBuilder, before: int, *nodes: str) -> Rows:
    """Return the rows without those that the nodes wrote before a time."""
    return [row for row in builder.rows if row["ts"] >= before or row["node"] not in nodes]


def wait(builder: LogBuilder) -> int:
    """Let time pass, with messages of another topic. Returns the time."""
    for at in range(LONG_US // STEP_US):
        number = len(builder.rows)
        node = ("producer", "consumer", "broker")[at % 3]
        builder.add("send_fail", node, msg_id=f"m_other_{number}", topic="other", status="NO_PERMISSION")
    return len(builder.rows) * STEP_US


def found(rows: Rows, scratch: Path, *invariants: str, **options: Any) -> tuple[set[tuple[Any, ...]], Result]:
    """Return rule, cause and message of each finding of some checks, and the result of the first."""
    checks = {name: EVENT_CHECKS[name] for name in invariants}
    done: Audit = embedded_audit(rows, scratch, options=Options(**options), checks=checks)
    of_checks = set(query(f"SELECT rule, cause, msg_id FROM {all_found(done.findings)}"))
    return of_checks, next(result for result in done.results if result.id == invariants[0])


def in_retry(builder: LogBuilder, msg_id: str, offset: int, **more: Any) -> LogBuilder:
    place = {"topic": "%RETRY%g", "queue_id": 0, "queue_offset": offset, "group": "g", "client": "consumer"}
    return builder.add("deliver", "consumer", msg_id=msg_id, **place, **more)


def test_a_copy_of_a_message_from_before_the_log_is_no_phantom(tmp_path: Path) -> None:
    builder = LogBuilder().stored("m_retried", 0)
    cut = wait(builder)
    in_retry(builder.stored("m_new", 1).deliver("m_new", 1), "m_retried", 0)
    assert found(builder.rows, tmp_path, "DELIV-2")[1].verdict is Verdict.HELD
    findings, result = found(rotated(builder, cut - LONG_US, "producer"), tmp_path, "DELIV-2")
    assert findings == {("phantom", "before_log", "m_retried")}
    assert result.verdict is Verdict.UNKNOWN
    assert "1 finding may have an earlier cause; the log is complete only from" in result.detail
    assert "producer begins with seq 2" in result.detail


def test_a_message_that_was_created_after_the_log_begins_and_never_sent_is_a_phantom(tmp_path: Path) -> None:
    builder = LogBuilder().stored("m_old", 0)
    cut = wait(builder)
    builder.stored("m_new", 1)
    in_retry(builder, "m_never_sent", 0, born_ts=cut + STEP_US)
    in_retry(builder, "m_old", 1, born_ts=STEP_US)
    rows = rotated(builder, cut - LONG_US, "producer")
    expected = {("phantom", None, "m_never_sent"), ("phantom", "before_log", "m_old")}
    findings, result = found(rows, tmp_path, "DELIV-2")
    assert (findings, result.verdict) == (expected, Verdict.VIOLATED)


def test_a_loss_counts_only_after_the_log_of_each_node_has_begun(tmp_path: Path) -> None:
    builder = LogBuilder().stored("m_0", 0).deliver("m_0", 0)
    builder.stored("m_before", 1).stored("m_1", 2).deliver("m_1", 2)
    wait(builder)
    begun = len(builder.rows) * STEP_US
    wait(builder)
    builder.stored("m_lost", 3).stored("m_2", 4).deliver("m_2", 4)
    both = {("lost-write", None, "m_before"), ("lost-write", None, "m_lost")}
    assert found(builder.rows, tmp_path, "DELIV-1")[0] == both
    builder.rows += [
        {"ts": begun, "seq": 7, "node": "member", "kind": "rebalance", "group": "g", "attrs": {}}
    ]
    findings, result = found(builder.rows, tmp_path, "DELIV-1")
    assert findings == {("lost-write", "before_log", "m_before"), ("lost-write", None, "m_lost")}
    assert result.verdict is Verdict.VIOLATED


def test_a_violation_that_no_earlier_row_explains_counts_in_a_log_without_its_beginning(
    tmp_path: Path,
) -> None:
    builder = LogBuilder().stored("m", 0).deliver("m", 0).commit(-1).commit(1)
    findings, result = found(rotated(builder, STEP_US + 1, "producer"), tmp_path, "DELIV-5")
    assert (findings, result.verdict) == ({("negative-commit", None, None)}, Verdict.VIOLATED)


def test_a_retry_whose_wait_began_before_the_log_is_not_early(tmp_path: Path) -> None:
    builder = LogBuilder().stored("m", 0)

    def append(topic: str, queue_id: int, offset: int) -> None:
        place = {"topic": topic, "queue_id": queue_id, "queue_offset": offset, "commit_offset": 100 + offset}
        builder.add("append", "broker", msg_id="m", **place)

    append(SCHEDULE_TOPIC, 2, 0)  # 10 s
    cut = wait(builder)
    append(SCHEDULE_TOPIC, 3, 1)  # 30 s, for another group
    append("%RETRY%g", 0, 2)
    wait(builder)
    append("%RETRY%other", 0, 3)
    assert found(builder.rows, tmp_path, "DELIV-8")[0] == set()
    findings, result = found(rotated(builder, cut - LONG_US, "broker", "producer"), tmp_path, "DELIV-8")
    assert findings == {("early", "before_log", "m")}
    assert result.verdict is Verdict.UNKNOWN


def test_copies_of_a_message_that_failed_before_the_log_are_no_duplicates(tmp_path: Path) -> None:
    builder = LogBuilder().stored("m", 0).deliver("m", 0)
    builder.add("consume_fail", "consumer", msg_id="m", topic="t", queue_id=0, queue_offset=0, group="g")
    cut = wait(builder)
    wait(builder)
    in_retry(in_retry(builder, "m", 0), "m", 1)
    assert found(builder.rows, tmp_path, "DELIV-3")[0] == {("duplicate-offset", "redelivery", "m")}
    findings, result = found(rotated(builder, cut - LONG_US, "consumer"), tmp_path, "DELIV-3")
    assert findings == {("duplicate-offset", "before_log", "m")}
    assert result.verdict is Verdict.UNKNOWN


def test_a_verdict_of_held_says_from_when_on_the_log_is_complete(tmp_path: Path) -> None:
    builder = LogBuilder().stored("m_0", 0).deliver("m_0", 0)
    wait(builder)
    builder.stored("m_1", 1).deliver("m_1", 1)
    builder.commit(1).commit(2)
    _, result = found(rotated(builder, 10 * STEP_US, "producer"), tmp_path, "DELIV-5")
    assert result.verdict is Verdict.HELD
    assert result.detail.startswith("the log is complete only from 1970-01-01 00:00:1")


def test_two_owners_of_a_queue_are_one_violation_and_the_rest_is_counted_under_it(tmp_path: Path) -> None:
    builder = LogBuilder().add("rebalance", "one", group="g", topic="t")
    for offset in range(12):
        builder.stored(f"m_{offset}", offset)
        for node in ("one", "two") if offset % 3 == 0 else (("one", "two")[offset % 2],):
            builder.deliver(f"m_{offset}", offset, node=node)
    findings, result = found(builder.rows, tmp_path, "DELIV-6", "DELIV-3", "DELIV-4", rebalance_us=0)
    number = Counter((rule, cause) for rule, cause, _ in findings)
    twice, skips = number["duplicate-delivery", "two_owners"], number["poll-skip", "two_owners"]
    assert number == {
        ("double-owned", None): 1,
        ("duplicate-delivery", "two_owners"): twice,
        ("poll-skip", "two_owners"): skips,
    }
    assert twice > 1 < skips
    assert result.counts["consequences"] == twice + skips
    consequences = f"DELIV-3 duplicate-delivery {twice}, DELIV-4 poll-skip {skips}"
    assert result.detail == f"double-owned 1; consequences: {consequences}"
    findings, result = found(builder.rows, tmp_path / "alone", "DELIV-4", rebalance_us=0)
    assert result.verdict is Verdict.UNKNOWN
    assert result.detail == f"consequences of what DELIV-6 reports: {skips} findings"


def test_members_of_a_group_that_reports_no_rebalance_may_own_a_queue_in_turn(tmp_path: Path) -> None:
    builder = LogBuilder()
    for offset in range(6):
        builder.stored(f"m_{offset}", offset)
        builder.deliver(f"m_{offset}", offset, node="two" if offset in (2, 3) else "one")
    findings, result = found(builder.rows, tmp_path, "DELIV-4", rebalance_us=0)
    assert {(rule, cause) for rule, cause, _ in findings} == {("poll-skip", "rebalance_not_reported")}
    assert result.verdict is Verdict.UNKNOWN


def test_a_group_that_starts_at_the_end_of_a_queue_lost_nothing_though_its_clock_is_behind(
    tmp_path: Path,
) -> None:
    builder = LogBuilder().stored("m_old", 0).stored("m_0", 1)
    builder.deliver("m_0", 1)
    builder.rows[-1]["ts"] -= 4 * STEP_US
    assert found(builder.rows, tmp_path, "DELIV-1", skew_us=5 * STEP_US)[0] == {
        ("lost-write", "unseen", "m_old")
    }


def test_the_log_of_a_name_server_may_begin_late(tmp_path: Path) -> None:
    builder = LogBuilder().stored("m_0", 0).deliver("m_0", 0).stored("m_lost", 1).stored("m_1", 2)
    builder.deliver("m_1", 2)
    about = {"broker": "broker", "address": "b:1"}
    builder.rows.append(
        {"ts": len(builder.rows) * STEP_US, "seq": 9, "node": "ns", "kind": "heartbeat", "attrs": about}
    )
    assert found(builder.rows, tmp_path, "DELIV-1")[0] == {("lost-write", None, "m_lost")}
