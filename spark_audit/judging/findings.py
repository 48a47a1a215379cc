"""The findings of a check, as Parquet files: writes them, counts them, and selects witnesses."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema

from mqproof.report.model import Witness
from mqproof.spark_audit.checks import Check
from mqproof.spark_audit.schema import FINDINGS
from mqproof.spark_audit.sources.inputs import literal

FINDINGS_FOLDER: Final = "findings"
"""Folder below a run's scratch folder with one folder per check, which has all its findings."""

WITNESSES_MAX: Final = 8
"""Maximum number of witnesses per rule in the report; violations.parquet has all violations."""


def written(found: DataFrame, path: Path) -> DataFrame:
    """Compute the findings, write them, and return the written table."""
    found.write.mode("overwrite").parquet(str(path))
    return found.sparkSession.read.schema(FINDINGS).parquet(literal(path))


def dataset(folder: Path) -> ds.Dataset:
    """Return all findings below the folder; an empty dataset if no check ran."""
    if parts := _parts(folder):
        return ds.dataset(parts, format="parquet")
    return ds.dataset(pa.Table.from_batches([], to_arrow_schema(FINDINGS)))


def _parts(folder: Path) -> list[str]:
    return sorted(str(part) for part in folder.rglob("*.parquet"))


def counted(path: Path) -> dict[tuple[str, str | None], int]:
    """Return the number of findings by (rule, cause)."""
    parts = _parts(path)
    if not parts:
        return {}
    table = ds.dataset(parts, format="parquet").to_table(columns=["rule", "cause"])
    rows = table.group_by(["rule", "cause"]).aggregate([([], "count_all")]).to_pylist()
    return {(row["rule"], row["cause"]): row["count_all"] for row in rows}


def found_by_rule(check: Check, counted: Mapping[tuple[str, str | None], int]) -> dict[str, int]:
    """Return violations by rule, including zeros, and explained findings by cause."""
    found = {rule: counted.get((rule, None), 0) for rule in check.rules}
    for (_, cause), n in sorted(counted.items(), key=str):
        if cause is not None:
            found[cause] = found.get(cause, 0) + n
    return found


def witnesses(path: Path, check: Check) -> tuple[Witness, ...]:
    """Return the earliest violations of each rule: later ones are often consequences."""
    parts = _parts(path)
    if not parts:
        return ()
    found = ds.dataset(parts, format="parquet")
    shown: list[Witness] = []
    for rule in check.rules:
        violation = pc.field("cause").is_null() & (pc.field("rule") == rule)
        rows = found.to_table(filter=violation, columns=list(_SHOWN))
        earliest = rows.sort_by([("first_ts", "ascending"), ("msg_id", "ascending")]).slice(0, WITNESSES_MAX)
        shown += map(_witness, earliest.to_pylist())
    return tuple(shown)


_PLACE: Final = ("broker", "topic", "queue_id", "queue_offset")

_SHOWN: Final = ("rule", "msg_id", "group", "client", *_PLACE, "first_ts", "last_ts", "evidence")


def _witness(row: Mapping[str, Any]) -> Witness:
    values = {name: str(row[name]) for name in _SHOWN if row[name] is not None and name != "evidence"}
    subjects = [
        f"{label} {row[name]}" for label, name in (("message", "msg_id"), ("group", "group")) if row[name]
    ]
    where = "/".join(str(row[name]) for name in _PLACE if row[name] is not None)
    what = " ".join([*subjects, *([f"at {where}"] if where else [])])
    return Witness(f"{row['rule']}: {what}: {row['evidence']}", values)
