"""Which SQL92 subscriptions select a message, for messages whose properties the log has.

The expressions are few, and so are the different properties of most logs: the driver evaluates each
expression once for each of them.
"""

from typing import Final

from mqproof.spark_audit.engine import functions as f
from mqproof.spark_audit.engine.frames import DataFrame
from mqproof.spark_audit.sources.mapping.sql_expressions import selecting
from mqproof.spec.events import Kind

SQL92: Final = "SQL92"
DIFFERENT_MAX: Final = 1_000_000
"""The most different properties that are evaluated. With more, the selections are unknown."""
SEPARATOR: Final = "\x1f"
_EXPRESSIONS_MAX: Final = 1_000


def sql_selection(rare: DataFrame, log: DataFrame) -> DataFrame | None:
    """Return msg_id and the array `sql_selected` of expressions; None without SQL92 subscriptions.

    Runs a job, and two more if there are such subscriptions.
    """
    attrs = f.col("attrs")
    is_sql = (f.col("kind") == Kind.SUBSCRIBE) & (attrs["type"] == SQL92)
    stated = rare.where(is_sql).select("topic", attrs["expression"].alias("expression")).distinct().collect()
    expressions = sorted({row["expression"] for row in stated if row["expression"]})
    if (
        not expressions
        or len(expressions) > _EXPRESSIONS_MAX
        or any(SEPARATOR in each for each in expressions)
    ):
        return None
    is_origin = f.col("kind").isin(Kind.SEND, Kind.APPEND) & f.col("msg_id").isNotNull()
    is_read = f.col("topic").isin(*sorted({row["topic"] for row in stated}))
    known = log.where(is_origin & is_read & attrs["properties"].isNotNull()).select(
        "msg_id",
        attrs["properties"].alias("properties"),
        f.coalesce("tags", f.lit("")).alias("tags"),
        f.coalesce("keys", f.lit("")).alias("keys"),
    )
    columns = ("properties", "tags", "keys")
    different = known.select(*columns).distinct().limit(DIFFERENT_MAX + 1).collect()
    if len(different) > DIFFERENT_MAX:
        return None
    rows = [
        (*given, SEPARATOR.join(["", *selected]))
        for row in different
        for given in [tuple(row[name] for name in columns)]
        if (selected := selecting(expressions, *given)) is not None
    ]
    evaluated = rare.sparkSession.createDataFrame(
        rows, "properties string, tags string, keys string, selected string"
    )
    of_messages = known.join(f.broadcast(evaluated), list(columns)).groupBy("msg_id")
    return of_messages.agg(f.max("selected").alias("selected")).select(
        "msg_id", f.split("selected", SEPARATOR).alias("sql_selected")
    )
