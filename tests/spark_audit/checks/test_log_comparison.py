"""Compares two ledgers up to the last entry that both have with the same term.

Method: generate many small random ledgers of members with a common beginning and different tails; in some of
them, a record is changed or missing. Compare all their pairs at once, in buckets of two entries. The result
must equal that of a comparison entry by entry.
"""

from contextlib import closing
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from random import Random
from typing import Any, cast

import pytest

from mqproof.spark_audit.checks import log_comparison
from mqproof.spark_audit.checks.log_matching import _stored
from mqproof.spark_audit.engine import active
from mqproof.spark_audit.engine.embedded.database import Database
from mqproof.spark_audit.sources.store.stored import Stored

ENTRY_BYTES = 4
GROUPS = 60
RECORDS = (
    "broker string, commit_offset bigint, size bigint, hashed bigint, topic string, queue_id int,"
    " queue_offset bigint, msg_id string, term bigint, entry_index bigint"
)


@dataclass(frozen=True)
class Ledger:
    begin: int
    """Index of the first remaining entry."""
    entries: dict[int, tuple[int, int]]
    """Maps an index to its term and content; no-ops are left out."""

    @property
    def end(self) -> int:
        return max(self.entries, default=self.begin - 1) + 1


def random_group(random: Random) -> dict[str, Ledger]:
    common = [(1 + index // 7, random.getrandbits(40)) for index in range(random.randint(1, 30))]
    ledgers = {}
    for number in range(3):
        shared = random.randint(0, len(common))
        # A separate tail has a separate term.
        tail = [(10 + number, random.getrandbits(40)) for _ in range(random.randint(0, 5))]
        entries = dict(enumerate([*common[:shared], *tail]))
        begin = random.choice([0, 0, random.randint(0, len(entries))])
        kept = {index: entry for index, entry in entries.items() if index >= begin}
        if kept and random.random() < 0.3:
            at = random.choice(list(kept))
            if random.random() < 0.5:
                del kept[at]
            else:
                kept[at] = (kept[at][0], kept[at][1] + 1)
        ledgers[f"{number}"] = Ledger(begin, kept)
    return ledgers


def differences(one: Ledger, other: Ledger) -> set[int]:
    common_range = range(max(one.begin, other.begin), min(one.end, other.end))
    both = [index for index in common_range if index in one.entries and index in other.entries]
    agreed = max((index for index in both if one.entries[index][0] == other.entries[index][0]), default=-1)
    return {
        index
        for index in common_range
        if index <= agreed and one.entries.get(index) != other.entries.get(index)
    }


def test_differences_before_the_last_common_entry_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_comparison, "_BUCKET_BITS", 3)
    groups = [random_group(Random(seed)) for seed in range(GROUPS)]
    records: list[tuple[Any, ...]] = []
    bounds, pairs, expected = [], [], set()
    for seed, ledgers in enumerate(groups):
        for name, ledger in ledgers.items():
            broker = f"{seed}-{name}"
            bounds.append((broker, ledger.begin * ENTRY_BYTES, ledger.end * ENTRY_BYTES, False))
            for index, (term, content) in ledger.entries.items():
                place = (broker, index * ENTRY_BYTES, ENTRY_BYTES, content, "t", 0, index, f"m_{index}")
                records.append((*place, term, index))
        for one, other in combinations(ledgers, 2):
            pairs.append((f"{seed}-{one}", f"{seed}-{other}"))
            expected |= {(f"{seed}-{other}", index) for index in differences(ledgers[one], ledgers[other])}
    with active.embedded(), closing(Database(tmp_path)) as database:
        given = {
            "records": database.createDataFrame(records, RECORDS),
            "gaps": database.createDataFrame(
                [], "broker string, kind string, commit_offset bigint, size bigint"
            ),
            "bounds": database.createDataFrame(
                bounds, "broker string, log_begin bigint, whole_end bigint, is_clean boolean"
            ),
            "members": database.createDataFrame(pairs, "master string, slave string"),
        }
        others = dict.fromkeys(Stored.__dataclass_fields__.keys() - given.keys())
        found = _stored(Stored(**cast(Any, given | others))).collect()
    assert {(row.broker, row.queue_offset) for row in found if row.cause is None} == expected
    assert len(expected) > 20
    assert any(not differences(*each) for ledgers in groups for each in combinations(ledgers.values(), 2))
