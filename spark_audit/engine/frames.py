"""The names of PySpark's table types, for annotations, and the windows of the active engine."""

from functools import reduce
from typing import TYPE_CHECKING, Any

from mqproof.spark_audit.engine import active

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import Column, DataFrame, Row, SparkSession, Window, WindowSpec
else:
    Column = DataFrame = Row = SparkSession = WindowSpec = Any

    class Window:
        """`pyspark.sql.Window` of the active engine."""

        unboundedPreceding = -(1 << 63)  # noqa: N815  # PySpark's names
        unboundedFollowing = (1 << 63) - 1  # noqa: N815
        currentRow = 0  # noqa: N815

        @staticmethod
        def partitionBy(*columns):  # noqa: N802
            return _window().partitionBy(*columns)

        @staticmethod
        def orderBy(*columns):  # noqa: N802
            return _window().orderBy(*columns)


def _window() -> Any:
    if active.is_embedded():
        from mqproof.spark_audit.engine.embedded.columns import EmbeddedWindow

        return EmbeddedWindow()
    from pyspark.sql import Window as SparkWindow

    return SparkWindow


def any_of(conditions: "Iterable[Column]", otherwise: "Column") -> "Column":
    """Return whether any of the conditions is true, or `otherwise`."""
    return reduce(lambda one, other: one | other, conditions, otherwise)


def union_by_name(frames: "Iterable[DataFrame]") -> "DataFrame":
    """Return the rows of all tables, which have the same columns."""
    return reduce(lambda one, other: one.unionByName(other), frames)


__all__ = [
    "Column",
    "DataFrame",
    "Row",
    "SparkSession",
    "Window",
    "WindowSpec",
    "any_of",
    "union_by_name",
]
