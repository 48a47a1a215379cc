"""The table schemas of the audit on Spark: events as input, findings as output, results of the pass."""

from typing import Final

from pyspark.sql import types as t

from mqproof.spark_audit.schema import FINDING_COLUMNS
from mqproof.spec.events import COLUMNS

_SPARK_TYPES: Final[dict[str, t.DataType]] = {
    "int64": t.LongType(),
    "int32": t.IntegerType(),
    "string": t.StringType(),
    "map<string,string>": t.MapType(t.StringType(), t.StringType()),
}

EVENTS: Final = t.StructType([t.StructField(name, _SPARK_TYPES[kind]) for name, kind in COLUMNS.items()])
"""An event log in Spark: exactly the columns of spec.events, in that order."""

_FINDING_TYPES: Final[dict[str, t.DataType]] = {
    "string": t.StringType(), "int": t.IntegerType(), "bigint": t.LongType()
}  # fmt: skip

FINDINGS: Final = t.StructType(
    [t.StructField(name, _FINDING_TYPES[kind]) for name, kind in FINDING_COLUMNS.items()]
)
"""The result of every check."""

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

OVER_TIME: Final = t.StructType(
    [
        t.StructField("bucket", t.LongType()),
        t.StructField("kind", t.StringType()),
        t.StructField("rows", t.LongType()),
    ]
)
"""The number of events by kind and interval, for the plots."""
