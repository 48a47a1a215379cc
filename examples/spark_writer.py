"""PySpark writes a table to a topic: the format `rocketmq`, for `df.write` and for `df.writeStream`.

Delivery is at least once: Spark repeats what failed, so a message may arrive twice. Its key is the number of
its order here, by which a consumer recognises the second one.

    pip install 'mqproof[audit]'
    mqproof serve --store /tmp/example-store &
    python examples/spark_writer.py
"""

import os

from pyspark.sql import SparkSession

from mqproof.integrations import register_spark

NAMESRV = os.environ.get("NAMESRV_ADDR", "127.0.0.1:9876")
TOPIC = "example_totals"


def main(spark: SparkSession, namesrv: str) -> None:
    register_spark(spark)
    orders = spark.createDataFrame(
        [(7, "tea", 2), (7, "coffee", 3), (8, "tea", 2)], "number int, item string, price int"
    )
    totals = orders.groupBy("number").sum("price").toDF("number", "total")
    messages = totals.selectExpr("to_json(struct(*)) AS body", "cast(number AS string) AS keys")
    messages.write.format("rocketmq").mode("append").options(namesrv=namesrv, topic=TOPIC).save()

    stored = spark.read.format("rocketmq").options(namesrv=namesrv, topics=TOPIC).load()
    stored.selectExpr("keys", "cast(body AS string) AS body").distinct().orderBy("keys").show(truncate=False)


if __name__ == "__main__":
    with SparkSession.builder.master("local[2]").getOrCreate() as session:
        main(session, NAMESRV)
