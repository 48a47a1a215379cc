"""Read a topic of a running cluster as a PySpark table, and as a stream.

Each task reads a part of one queue. The position of the stream is in Spark's checkpoint, so no consumer group
moves. The docstring of mqproof.spark_audit.sources.topics lists all options.

    pip install 'mqproof[audit]'
    mqproof serve --store /tmp/example-store &
    export NAMESRV_ADDR=127.0.0.1:9876
    mqproof send --topic example_events --body hello --tags web --count 9
    python examples/spark_topic.py
"""

import os
import tempfile

from pyspark.sql import SparkSession

from mqproof.spark_audit.sources.topics import register

TOPIC = "example_events"


def main(spark: SparkSession, namesrv: str) -> None:
    register(spark)
    table = spark.read.format("rocketmq").options(namesrv=namesrv, topics=TOPIC).load()
    table.groupBy("tags").count().orderBy("tags").show()

    stream = spark.readStream.format("rocketmq").options(namesrv=namesrv, topics=TOPIC).load()
    with tempfile.TemporaryDirectory() as folder:
        query = (
            stream.select("queue_id", "queue_offset", "body")
            .writeStream.trigger(availableNow=True)
            .option("checkpointLocation", f"{folder}/checkpoint")
            .start(f"{folder}/rows", format="parquet")
        )
        query.awaitTermination(120)
        print(f"the stream wrote {spark.read.parquet(f'{folder}/rows').count()} rows")


if __name__ == "__main__":
    from mqproof.spark_audit.runtime.session import open_session

    with open_session() as session:
        main(session, os.environ.get("NAMESRV_ADDR", "127.0.0.1:9876"))
