"""Compares the findings of the checks with the injected anomalies: none missed, none invented."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from mqproof.spark_audit.generator.generate import TRUTH_FILE
from mqproof.spark_audit.schema import KEY

Key = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    expected: int
    missed: tuple[Key, ...]
    false_alarms: tuple[Key, ...]

    @property
    def exact(self) -> bool:
        return not (self.missed or self.false_alarms)


def read_truth(folder: Path) -> list[dict[str, Any]]:
    """Read the ground truth beside a generated log."""
    rows: list[dict[str, Any]] = pq.read_table(folder / TRUTH_FILE).to_pylist()
    return rows


def compare(found: Iterable[Mapping[str, Any]], truth: Iterable[Mapping[str, Any]]) -> Comparison:
    """Compare as multisets of schema.KEY: a violation reported twice is a false alarm."""
    seen = Counter(tuple(row[name] for name in KEY) for row in found)
    injected = Counter(tuple(row[name] for name in KEY) for row in truth)
    return Comparison(
        injected.total(),
        tuple(sorted((injected - seen).elements(), key=str)),
        tuple(sorted((seen - injected).elements(), key=str)),
    )
