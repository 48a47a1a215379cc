"""The findings of a check, as Parquet files: writes them, counts them, and selects witnesses."""

import glob
import shutil
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from mqproof.report.model import Witness
from mqproof.spark_audit.checks import Check
from mqproof.spark_audit.engine import active
from mqproof.spark_audit.engine.frames import DataFrame
from mqproof.spark_audit.engine.sql_text import identifier, quoted
from mqproof.spark_audit.schema import FINDING_COLUMNS
from mqproof.spark_audit.sources.inputs import literal

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

FINDINGS_FOLDER: Final = "findings"
"""Folder below a run's scratch folder with one folder per check, which has all its findings."""

WITNESSES_MAX: Final = 8
"""Maximum number of witnesses per rule in the report; violations.parquet has all violations."""


def written(found: DataFrame, path: Path) -> DataFrame:
    """Compute the findings, write them, and return the written table."""
    if active.is_embedded():
        return _written(found, path)
    from mqproof.spark_audit.spark_schema import FINDINGS

    found.write.mode("overwrite").parquet(str(path))
    return found.sparkSession.read.schema(FINDINGS).parquet(literal(path))


def _written(found: Any, path: Path) -> DataFrame:
    """Write what the embedded engine found; most checks find nothing, and then there is no file."""
    rows: DataFrame = found.persist()
    shutil.rmtree(path, ignore_errors=True)
    if rows.count():
        path.mkdir(parents=True, exist_ok=True)
        found.sparkSession.run(f"COPY ({found.sql()}) TO {quoted(str(path / 'part-0.parquet'))}")
    return rows


def written_by(session: Any, folders: Sequence[Path]) -> DataFrame:
    """Return the findings in these folders, as a table of the session."""
    if active.is_embedded():
        found: DataFrame = session.query(f"SELECT * FROM {all_found(*folders)}").persist()
        return found
    from mqproof.spark_audit.spark_schema import FINDINGS

    if not folders:
        return cast(DataFrame, session.createDataFrame([], FINDINGS))
    return cast(DataFrame, session.read.schema(FINDINGS).parquet(*map(literal, folders)))


def query(text: str) -> list[tuple[Any, ...]]:
    """Run a query on findings: SQL of DuckDB, which reads the files of both engines."""
    return _connection().cursor().execute(text).fetchall()


@cache
def _connection() -> "DuckDBPyConnection":
    import duckdb

    return duckdb.connect()


def all_found(*folders: Path) -> str:
    """Return the table of all findings below the folders, for `query`; it is empty if no check ran."""
    if files := parquet_files(*folders):
        return files
    columns = ", ".join(
        f"NULL::{_TYPES.get(kind, 'VARCHAR')} AS {identifier(name)}" for name, kind in FINDING_COLUMNS.items()
    )
    return f"(SELECT {columns} WHERE false)"


_TYPES: Final = {"int": "INTEGER", "bigint": "BIGINT"}


def parquet_files(*folders: Path) -> str:
    """Return the table, in DuckDB's SQL, of the Parquet files below the folders; empty if there are none."""
    parts = sorted(str(part) for folder in folders for part in folder.rglob("*.parquet"))
    # DuckDB treats brackets and stars as a pattern, which may match another file.
    names = quoted(*map(glob.escape, parts))
    return f"read_parquet([{names}], hive_partitioning = false)" if parts else ""


def counts_by_rule(path: Path) -> dict[tuple[str, str | None], int]:
    """Return the number of findings by (rule, cause)."""
    if not path.exists():
        return {}
    rows = query(f"SELECT rule, cause, count(*) FROM {all_found(path)} GROUP BY ALL")
    return {(rule, cause): count for rule, cause, count in rows}


def found_by_rule(check: Check, counts: Mapping[tuple[str, str | None], int]) -> dict[str, int]:
    """Return violations by rule, including zeros, and explained findings by cause."""
    found = {rule: counts.get((rule, None), 0) for rule in check.rules}
    for (_, cause), n in sorted(counts.items(), key=str):
        if cause is not None:
            found[cause] = found.get(cause, 0) + n
    return found


def witnesses(path: Path, check: Check) -> tuple[Witness, ...]:
    """Return the earliest violations of each rule: later ones are often consequences."""
    if not path.exists():
        return ()
    # The order is that of the rules, then of time; the rest makes it the same on both engines.
    names = ", ".join(map(identifier, _SHOWN))
    by_time = ", ".join(f"{identifier(name)} NULLS LAST" for name in ("first_ts", "msg_id", *_SHOWN))
    rows = query(
        f"SELECT {names} FROM {all_found(path)} WHERE cause IS NULL"
        f" QUALIFY row_number() OVER (PARTITION BY rule ORDER BY {by_time}) <= {WITNESSES_MAX}"
        f" ORDER BY {by_time}"
    )
    found = [dict(zip(_SHOWN, row, strict=True)) for row in rows]
    return tuple(_witness(row) for rule in check.rules for row in found if row["rule"] == rule)


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
