"""The fingerprint lets only those messages pass that no check has anything to say about."""

from pyspark.sql import SparkSession

from spark_audit.evidence import gather
from tests.spark_audit.conftest import Story, frame


def doubted(spark: SparkSession, story: Story) -> set[str]:
    return {row.msg_id for row in gather(frame(spark, story.rows), ("broker",)).messages.collect()}


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
