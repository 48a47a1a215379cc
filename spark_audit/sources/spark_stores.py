"""Reads store directories on Spark, by the data sources of stores.py."""

from collections.abc import Mapping
from functools import reduce
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from mqproof.spark_audit.sources.inputs import literal
from mqproof.spark_audit.sources.store.index import SLOTS
from mqproof.spark_audit.sources.store.store_tables import log_columns, tables_of
from mqproof.spark_audit.sources.store.stored import Stored
from mqproof.spark_audit.sources.stores import register


def read_stores(spark: SparkSession, stores: Mapping[str, Path], scratch: Path, slots: int = SLOTS) -> Stored:
    """Return the tables. The commit logs are decoded once, into Parquet below `scratch`.

    The scratch folder must exist as long as the tables.

    Raises:
        InputError: a consumerOffset.json or topics.json is invalid.
    """
    register(spark)
    log = _kept(
        spark, log_columns(_union(spark, stores, "rocketmq-commitlog", "", slots)), scratch / "commitlog"
    )
    queues = _union(spark, stores, "rocketmq-consumequeue", "consumequeue", slots)
    queues = _kept(spark, queues.drop("file", "tags_code"), scratch / "consumequeue")
    return tables_of(spark, stores, log, queues, _union(spark, stores, "rocketmq-index", "index", slots))


def _kept(spark: SparkSession, rows: DataFrame, path: Path) -> DataFrame:
    """Write the rows to files, and return them as read from there.

    Many passes use them, and they are decoded only once.
    """
    rows.write.mode("overwrite").parquet(str(path))
    return spark.read.schema(rows.schema).parquet(literal(path))


def _union(
    spark: SparkSession, stores: Mapping[str, Path], source: str, folder: str, slots: int
) -> DataFrame:
    """Return the rows of all stores that have the folder; a broker without queues or index has no rows."""
    tables = [
        spark.read.format(source)
        .option("slots", slots)
        .load(str(directory))
        .withColumn("broker", f.lit(name))
        for name, directory in stores.items()
        if (directory / folder).is_dir()
    ]
    if not tables:
        first = next(iter(stores.values()))
        schema = spark.read.format(source).load(str(first)).schema.add("broker", "string")
        return spark.createDataFrame([], schema)
    return reduce(DataFrame.unionByName, tables)
