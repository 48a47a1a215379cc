"""Analyse a broker's store directory with PySpark, without a running broker.

The commit log is a table: a row is a record, or a range of damaged or unused bytes. The formats
`rocketmq-consumequeue` and `rocketmq-index` are the queues and the key index. Directories of released brokers
are read in the same way. Read the directory of a stopped broker, or a copy.

    pip install 'mqproof[audit]'
    python examples/spark_store.py /tmp/example-store
"""

import sys

from pyspark.sql import SparkSession

from mqproof.spark_audit.sources.stores import register


def main(spark: SparkSession, store: str) -> None:
    register(spark)
    spark.read.format("rocketmq-commitlog").load(store).createOrReplaceTempView("log")
    spark.sql(
        """
        SELECT kind, topic, count(*) AS number, sum(size) AS bytes
        FROM log WHERE kind IN ('record', 'damage') GROUP BY kind, topic ORDER BY kind, topic
        """
    ).show(truncate=False)


if __name__ == "__main__":
    from mqproof.spark_audit.runtime.session import open_session

    with open_session() as session:
        main(session, sys.argv[1])
