"""Analyse a broker's store directory with PySpark, without a running broker.

The commit log, the consume queues and the key index are three tables. Directories of released brokers are
read in the same way. Read the directory of a stopped broker, or a copy.

    pip install 'mqproof[audit]'
    python examples/spark_store.py /tmp/example-store
"""

import sys

from pyspark.sql import SparkSession

from mqproof.spark_audit.sources.stores import register


def main(spark: SparkSession, store: str) -> None:
    register(spark)
    log = spark.read.format("rocketmq-commitlog").load(store)
    records = log.where("kind = 'record'").select(
        "topic", "queue_id", "queue_offset", "commit_offset", "size"
    )
    records.createOrReplaceTempView("records")
    spark.sql(
        "SELECT topic, count(*) AS messages, sum(size) AS bytes FROM records GROUP BY topic ORDER BY topic"
    ).show(truncate=False)

    spark.read.format("rocketmq-consumequeue").load(store).createOrReplaceTempView("entries")
    missing = spark.sql(
        "SELECT * FROM records ANTI JOIN (SELECT * FROM entries WHERE kind = 'entry') "
        "USING (topic, queue_id, queue_offset)"
    )
    damaged = log.where("kind = 'damage'").count()
    print(f"{damaged} damaged ranges in the log")
    print(f"{missing.count()} records without an entry in their queue")


if __name__ == "__main__":
    from mqproof.spark_audit.runtime.session import open_session

    with open_session() as session:
        main(session, sys.argv[1])
