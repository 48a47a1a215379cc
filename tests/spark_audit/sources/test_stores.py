"""Reads the store directories of Apache's brokers and of our broker with the data sources in Spark."""

from collections import Counter
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from mqproof.impl.runtime.disk import RealDisk
from mqproof.spark_audit.sources.stores import register
from tests.impl.store.site import Site
from tests.impl.store.test_golden import CONFIG
from tests.spark_audit.sources.logs import golden, write_member


def counted(spark: SparkSession, source: str, store: Path) -> Counter[str]:
    frame = spark.read.format(source).option("slots", CONFIG.index_slots).option("splitBytes", 3000)
    return Counter(row.kind for row in frame.load(str(store)).select("kind").collect())


def test_the_store_of_a_released_broker_is_read_completely(spark: SparkSession, tmp_path: Path) -> None:
    register(spark)
    store = golden("apache-5.5.0-killed", tmp_path)
    assert counted(spark, "rocketmq-commitlog", store) == {"record": 155, "filler": 2, "zeros": 2}
    assert counted(spark, "rocketmq-consumequeue", store)["entry"] == 155
    assert counted(spark, "rocketmq-index", store) == {"entry": 465}
    hello = spark.read.format("rocketmq-commitlog").option("body", "true").load(str(store))
    assert hello.where("topic = 'T' AND tags = 'TagA'").first().body == b"hello"  # type: ignore[union-attr]


def test_the_store_of_our_broker_is_read_completely(spark: SparkSession, tmp_path: Path) -> None:
    register(spark)
    site = Site(CONFIG, RealDisk(), str(tmp_path))
    site.open()
    site.append(*(f"m_{number}" for number in range(30)))
    site.close()
    assert counted(spark, "rocketmq-commitlog", tmp_path)["record"] == 30
    assert counted(spark, "rocketmq-consumequeue", tmp_path)["entry"] == 30


def test_the_store_of_a_group_member_is_read_completely(spark: SparkSession, tmp_path: Path) -> None:
    register(spark)
    write_member(tmp_path, 90)
    log = counted(spark, "rocketmq-commitlog", tmp_path)
    assert log["record"] == 90
    assert log["damage"] == 0
    assert log["filler"] > 0, "the log has several segments"
    assert counted(spark, "rocketmq-commitlog", tmp_path / "dledger-n0" / "data") == log
    assert counted(spark, "rocketmq-consumequeue", tmp_path)["entry"] == 90
    (tmp_path / "dledger-n1" / "data").mkdir(parents=True)
    with pytest.raises(AnalysisException, match="ledgers of 2 members in it, expected that of one"):
        counted(spark, "rocketmq-commitlog", tmp_path)


def test_wrong_paths_and_options_are_reported(spark: SparkSession, tmp_path: Path) -> None:
    register(spark)
    with pytest.raises(AnalysisException, match="no commitlog folder in it, expected a store directory"):
        spark.read.format("rocketmq-commitlog").load(str(tmp_path)).collect()
    with pytest.raises(AnalysisException, match="option splitBytes: 'few', expected a number above 0"):
        spark.read.format("rocketmq-commitlog").option("splitBytes", "few").load(str(tmp_path)).collect()
    with pytest.raises(AnalysisException, match="option body: 'maybe', expected true or false"):
        spark.read.format("rocketmq-commitlog").option("body", "maybe").load(str(tmp_path)).collect()
