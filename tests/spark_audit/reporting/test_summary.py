"""The report counts losses by the producer's answer, and missing rows by node."""

from collections import Counter
from pathlib import Path

from mqproof.spark_audit.audit import audit
from mqproof.spark_audit.checks import EVENT_CHECKS
from mqproof.spark_audit.reporting.summary import summarise
from tests.spark_audit.conftest import LogBuilder, embedded_log


def test_losses_are_counted_by_producer_answer_and_missing_rows_by_node(tmp_path: Path) -> None:
    builder = LogBuilder().stored("m_0", 0).stored("m_lost", 1)
    builder.send("m_soft").append("m_soft", 2).ack("m_soft", 2, "FLUSH_SLAVE_TIMEOUT")
    builder.send("m_unknown").add("send_fail", "producer", msg_id="m_unknown", topic="t", status="unknown")
    builder.deliver("m_0", 0).stored("m_3", 3).deliver("m_3", 3).stored("m_in_flight", 4)
    for node in [f"c{number}" for number in range(5) for _ in range(3)]:
        builder.add("consume_ok", node, msg_id="m_0", topic="t", queue_id=0, queue_offset=0, group="g")
    builder.rows = [row for row in builder.rows if row["kind"] != "consume_ok" or row["seq"] != 1]
    with embedded_log(builder.rows) as log:
        done = audit(log, tmp_path, checks={"DELIV-1": EVENT_CHECKS["DELIV-1"]}, pictures=False)
        report = summarise(done, log, {}, 1.0, [], 0)
    assert report.facts["missing rows"].startswith(
        "5 (holes in the nodes' sequence numbers of c0, c1, c2 and 2"
    )
    (table,) = (table for table in report.tables if table.title.startswith("Losses"))
    assert Counter(table.rows) == Counter(
        [
            ("SEND_OK", "4", "1", "0", "1"),
            ("FLUSH_DISK_TIMEOUT or FLUSH_SLAVE_TIMEOUT or SLAVE_NOT_AVAILABLE", "1", "0", "1", "0"),
            ("none: the outcome is unknown", "1", "0", "0", "0"),
        ]
    )
