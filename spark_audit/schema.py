"""The columns of the findings, and a check for missing columns. spark_schema.py has the tables of Spark."""

from collections.abc import Iterable
from typing import Final

from mqproof.spark_audit.engine.frames import DataFrame
from mqproof.spec.events import COLUMNS

FINDING_COLUMNS: Final = {
    "invariant": "string",  # catalogue id
    "rule": "string",  # the kind of violation, e.g. lost-write
    "severity": "string",  # critical (data lost or invented) | error
    "cause": "string",  # null: a violation; else why it is legal
    "broker": "string",
    "topic": "string",
    "queue_id": "int",
    "queue_offset": "bigint",
    "commit_offset": "bigint",
    "msg_id": "string",
    "group": "string",
    "client": "string",
    "first_ts": "bigint",
    "last_ts": "bigint",
    "evidence": "string",
}
"""The result of every check, with Spark's types. A finding without a cause is a violation."""

_TYPES: Final = {"int64": "bigint", "int32": "int"}

EVENT_COLUMNS: Final = {name: _TYPES.get(kind, kind) for name, kind in COLUMNS.items()}
"""The columns of an event, with Spark's types."""

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
