"""Consume what a group has not read yet, and analyse it with PySpark.

The client polls and commits, so the next run continues after these messages. For large topics and for streams
use the PySpark source `rocketmq` instead, which reads the queues in parallel tasks: see the docstring of
mqproof.spark_audit.sources.topics.

    pip install 'mqproof[audit]'
    mqproof serve --store /tmp/example-store &
    export NAMESRV_ADDR=127.0.0.1:9876
    mqproof send --topic example_clicks --body '{"page": "/home", "ms": 120}' --count 9
    python examples/spark_topic.py
"""

import os

from pyspark.sql import SparkSession

from mqproof import BlockingClient
from mqproof.client import ConsumeFrom, LitePullConfig

TOPIC, GROUP = "example_clicks", "example_clicks_reports"


def unread(client: BlockingClient) -> dict[str, str]:
    """Return the text of each message by its id, so that a repeated delivery counts once."""
    queues = client.queues(TOPIC)
    wanted = sum(client.max_offset(q) - (client.committed(q) or client.min_offset(q)) for q in queues)
    texts: dict[str, str] = {}
    config = LitePullConfig(consume_from=ConsumeFrom.FIRST_OFFSET)
    with client.polling(GROUP, {TOPIC: "*"}, config) as poller:
        while len(texts) < wanted:
            texts |= {message.message_id: message.body.decode() for message in poller.poll(max_count=100)}
    return texts


def main(spark: SparkSession, namesrv: str) -> None:
    with BlockingClient(namesrv, consumer_group=GROUP) as client:
        texts = unread(client)
    clicks = spark.createDataFrame(list(texts.items()), "msg_id string, body string")
    clicks = clicks.selectExpr("from_json(body, 'page string, ms int') AS click")
    clicks.groupBy("click.page").agg({"click.ms": "avg", "*": "count"}).orderBy("page").show()


if __name__ == "__main__":
    from mqproof.spark_audit.runtime.session import open_session

    with open_session() as session:  # a session of your own does it too
        main(session, os.environ.get("NAMESRV_ADDR", "127.0.0.1:9876"))
