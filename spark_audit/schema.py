"""The table schemas of the audit: events as input, findings as output; and a check for missing columns."""

from collections.abc import Iterable
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import types as t

from mqproof.spec.events import COLUMNS

_SPARK_TYPES: Final[dict[str, t.DataType]] = {
    "int64": t.LongType(),
    "int32": t.IntegerType(),
    "string": t.StringType(),
    "map<string,string>": t.MapType(t.StringType(), t.StringType()),
}

EVENTS: Final = t.StructType([t.StructField(name, _SPARK_TYPES[kind]) for name, kind in COLUMNS.items()])
"""An event log in Spark: exactly the columns of spec.events, in that order."""

FINDINGS: Final = t.StructType(
    [
        t.StructField("invariant", t.StringType()),  # catalogue id
        t.StructField("rule", t.StringType()),  # the kind of violation, e.g. lost-write
        t.StructField("severity", t.StringType()),  # critical (data lost or invented) | error
        t.StructField("cause", t.StringType()),  # null: a violation; else why it is legal
        t.StructField("broker", t.StringType()),
        t.StructField("topic", t.StringType()),
        t.StructField("queue_id", t.IntegerType()),
        t.StructField("queue_offset", t.LongType()),
        t.StructField("commit_offset", t.LongType()),
        t.StructField("msg_id", t.StringType()),
        t.StructField("group", t.StringType()),
        t.StructField("client", t.StringType()),
        t.StructField("first_ts", t.LongType()),
        t.StructField("last_ts", t.LongType()),
        t.StructField("evidence", t.StringType()),
    ]
)
"""The result of every check. A finding without a cause is a violation."""

PASS: Final = t.StructType(
    [
        t.StructField(name, kind)
        for kind, names in (
            (t.StringType(), "part kind node stated group topic rare file"),
            (t.IntegerType(), "queue_id buckets_part"),
            (t.BooleanType(), "placed"),
            (t.BinaryType(), "aggregate"),
            (t.LongType(), "row_group rows seq_min seq_max first_ts last_ts offset_min offset_max"),
        )
        for name in names.split()
    ]
)
"""The results of the pass over a log: for each partition, the rows of profile.py, sequences.py and
bucket_sums.py. The column `part` distinguishes them."""

KEY: Final = ("invariant", "rule", "broker", "topic", "queue_id", "queue_offset", "msg_id", "group")
"""The columns that distinguish two findings, and by which the ground truth is compared."""


class SchemaError(ValueError):
    """A table lacks a required column. The message names the missing and the existing columns."""


def require(frame: DataFrame, columns: Iterable[str], caller: str) -> None:
    """Raise an error if the table lacks a column that `caller` reads.

    Raises:
        SchemaError: a column is missing.
    """
    if missing := [name for name in columns if name not in frame.columns]:
        raise SchemaError(
            f"{caller} needs column {', '.join(missing)}; the table has {', '.join(sorted(frame.columns))}"
        )
