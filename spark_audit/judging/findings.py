"""The findings of a check, as Parquet files: written, counted, and the first of them as witnesses."""

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
"""Below a run's scratch folder: one folder a check, with all that it found."""

WITNESSES_MAX: Final = 8
"""So many a rule go into the report; all of them into violations.parquet."""


def written(found: DataFrame, path: Path) -> DataFrame:
    """The findings, computed."""
    found.write.mode("overwrite").parquet(str(path))
    return found.sparkSession.read.schema(FINDINGS).parquet(literal(path))


def dataset(folder: Path) -> ds.Dataset:
    """All findings below the folder; none where no check was run."""
    if parts := _parts(folder):
        return ds.dataset(parts, format="parquet")
    return ds.dataset(pa.Table.from_batches([], to_arrow_schema(FINDINGS)))


def _parts(folder: Path) -> list[str]:
    return sorted(str(part) for part in folder.rglob("*.parquet"))


def counted(path: Path) -> dict[tuple[str, str | None], int]:
    """(rule, cause) to the number of findings."""
    parts = _parts(path)
    if not parts:
        return {}
    table = ds.dataset(parts, format="parquet").to_table(columns=["rule", "cause"])
    rows = table.group_by(["rule", "cause"]).aggregate([([], "count_all")]).to_pylist()
    return {(row["rule"], row["cause"]): row["count_all"] for row in rows}


def found_by_rule(check: Check, counted: Mapping[tuple[str, str | None], int]) -> dict[str, int]:
    """Violations by rule, with their zeros, and what was explained."""
    found = {rule: counted.get((rule, None), 0) for rule in check.rules}
    for (_, cause), n in sorted(counted.items(), key=str):
        if cause is not None:
            found[cause] = found.get(cause, 0) + n
    return found


def witnesses(path: Path, check: Check) -> tuple[Witness, ...]:
    """The earliest of each rule: later ones are often its consequences."""
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
    who = [f"{label} {row[name]}" for label, name in (("message", "msg_id"), ("group", "group")) if row[name]]
    where = "/".join(str(row[name]) for name in _PLACE if row[name] is not None)
    what = " ".join([*who, *([f"at {where}"] if where else [])])
    return Witness(f"{row['rule']}: {what}: {row['evidence']}", values)
