"""What happens to the files of a log before the audit reads them.

Their beginnings are rotated away, their ends are not yet written, rows are out of order, and files are given
twice.
"""

import json
from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from tests.spark_audit.independent.simulation import BEGIN

Row = tuple[int, str, dict[str, Any]]
"""True time, node, and the event without its number."""


@dataclass(frozen=True)
class Damage:
    """What is wrong with the files of a log."""

    rotated_until: int = 0
    """The beginning of the log of each node is missing, at most to this time."""
    ends_at: int | None = None
    """The files are read at this time, while nodes write their last rows."""
    is_shuffled: bool = False
    is_given_twice: bool = False


def numbered(rows: Sequence[Row]) -> list[Row]:
    """Number the rows of each node, in the order of true time."""
    next_number: dict[str, int] = defaultdict(int)
    done = []
    for time, node, row in sorted(rows, key=lambda each: each[0]):
        number = next_number[node]
        next_number[node] += 1
        attrs = row["attrs"] | ({"schema": "2"} if number == 0 else {})
        done.append((time, node, row | {"seq": number, "attrs": attrs}))
    return done


def collect(
    rows: Sequence[Row], how: Damage, random: Random, folder: Path, keep_whole: Collection[str] = ()
) -> None:
    """Write the rows into files of the folder. Nodes of `keep_whole` have all their rows."""
    begins: dict[str, int] = {}
    kept = []
    for time, node, row in numbered(rows):
        if node not in begins:
            is_cut = how.rotated_until and node not in keep_whole
            begins[node] = random.randint(BEGIN, how.rotated_until) if is_cut else 0
        if begins[node] <= time <= (how.ends_at or time):
            kept.append((node, row))
    by_file: dict[str, list[str]] = defaultdict(list)
    for node, row in kept:
        # Some nodes share a file, and some have two.
        name = f"{sum(node.encode()) % 5}-{random.randrange(2)}"
        by_file[name].append(json.dumps(row))
    for name, lines in by_file.items():
        if how.is_shuffled:
            random.shuffle(lines)
        torn = lines[-1][: len(lines[-1]) // 2] if how.ends_at else ""
        (folder / f"{name}.ndjson").write_text("\n".join(lines) + "\n" + torn)
    if how.is_given_twice:
        name = random.choice(sorted(by_file))
        again = by_file[name] + random.sample(by_file[name], len(by_file[name]) // 2)
        (folder / f"copy-of-{name}.ndjson").write_text("\n".join(again) + "\n")
