"""The overview of a log from its profile."""

from pyspark.sql import SparkSession

from mqproof.spark_audit.passes.profile import overview
from mqproof.spark_audit.passes.profile_partition import profile
from mqproof.spark_audit.sources.event_log import EventLog
from tests.spark_audit.conftest import LogBuilder, frame


def test_holes_in_the_sequence_numbers_are_missing_rows(spark: SparkSession) -> None:
    builder = LogBuilder(subscribed=()).stored("m_0", 0).stored("m_1", 1)
    del builder.rows[4]
    seen = overview(profile(EventLog.of(frame(spark, builder.rows))))
    assert (seen.missing_rows, seen.holed_nodes) == (1, ("producer",))
    assert (seen.repeated_rows, seen.brokers) == (0, ("broker",))


def test_a_name_server_that_reports_its_start_is_not_a_broker(spark: SparkSession) -> None:
    builder = (
        LogBuilder(subscribed=())
        .add("recover", "names")
        .add("route", "names", topic="t")
        .add("recover", "idle")
    )
    assert overview(profile(EventLog.of(frame(spark, builder.rows)))).brokers == ("broker", "idle")
