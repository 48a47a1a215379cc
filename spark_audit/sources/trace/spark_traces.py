"""Reads message traces on Spark."""

from collections.abc import Sequence
from functools import reduce
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import StringType

from mqproof.spark_audit.sources.inputs import literal
from mqproof.spark_audit.sources.stores import register
from mqproof.spark_audit.sources.trace import bodies
from mqproof.spark_audit.sources.trace.traces import CLOUD_TOPIC_PREFIX, RECORD, TRACE_TOPIC, Traces, parsed

_text: Final = f.udf(bodies.text_of, StringType(), useArrow=False)


def read_traces(spark: SparkSession, stores: Sequence[Path], texts: Sequence[Path]) -> Traces:
    """Read all traces. A text file has one message per line, or consecutive records."""
    register(spark)
    parts = []
    for store in stores:
        records = spark.read.format("rocketmq-commitlog").option("body", "true").load(str(store))
        is_trace = (f.col("topic") == TRACE_TOPIC) | f.col("topic").startswith(CLOUD_TOPIC_PREFIX)
        messages = records.where((f.col("kind") == "record") & is_trace)
        line = f.explode_outer(f.split(_text("body", "sys_flag"), RECORD)).alias("line")
        parts.append(messages.select(f.lit(str(store)).alias("file"), line))
    if texts:
        read = spark.read.text([literal(path.absolute()) for path in texts], lineSep=RECORD)
        parts.append(read.select(f.input_file_name().alias("file"), f.col("value").alias("line")))
    return parsed(reduce(DataFrame.unionByName, parts))
