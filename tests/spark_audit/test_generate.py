"""The generator: same seed, same log; events that are events; and only wishes that fit."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from spark_audit.generate import MANIFEST_FILE, TRUTH_FILE, Wish, generate
from spark_audit.scenario import ANOMALIES, ScenarioError
from spec.events import COLUMNS, decode

ALL = dict.fromkeys(ANOMALIES, 2)


def test_the_same_seed_gives_the_same_log(tmp_path: Path) -> None:
    first = generate(Wish(12_000, ALL, seed=5), tmp_path / "first")
    generate(Wish(12_000, ALL, seed=5), tmp_path / "again")
    generate(Wish(12_000, ALL, seed=6), tmp_path / "other")
    for name in ("events-00000.parquet", TRUTH_FILE):
        assert pq.read_table(tmp_path / "first" / name) == pq.read_table(tmp_path / "again" / name)
        assert pq.read_table(tmp_path / "first" / name) != pq.read_table(tmp_path / "other" / name)
    assert abs(first.events - 12_000) < 500
    assert json.loads((tmp_path / "first" / MANIFEST_FILE).read_text())["events"] == first.events


def test_every_generated_line_is_an_event_and_every_node_counts_densely(tmp_path: Path) -> None:
    generate(Wish(3_000, seed=5, file_format="ndjson"), tmp_path / "log")
    seqs: dict[str, list[tuple[int, int]]] = {}
    for number, line in enumerate((tmp_path / "log" / "events-00000.ndjson").read_bytes().splitlines()):
        event = decode(line, f"line {number}")
        seqs.setdefault(event.node, []).append((event.seq, event.ts))
    for node, rows in seqs.items():
        assert [seq for seq, _ in sorted(rows)] == list(range(len(rows))), node
        assert [ts for _, ts in sorted(rows)] == sorted(ts for _, ts in rows), node


def test_a_log_of_several_chunks_goes_on_where_the_last_one_ended(tmp_path: Path) -> None:
    made = generate(Wish(130_000, seed=5), tmp_path / "log")
    assert len(made.files) == 2
    tables = [pq.read_table(file) for file in made.files]
    assert all(table.column_names == list(COLUMNS) for table in tables)
    last = {row["node"]: row["seq"] for row in tables[0].select(["node", "seq"]).to_pylist()}
    first: dict[str, int] = {}
    for row in tables[1].select(["node", "seq"]).to_pylist():
        first.setdefault(row["node"], row["seq"])
    assert {node: seq - 1 for node, seq in first.items()} == last


@pytest.mark.parametrize(
    ("wish", "message"),
    [
        (Wish(12_000, {"lots": 1}), "anomaly 'lots': expected one of lost, duplicate"),
        (Wish(12_000, {"lost": -1}), "anomaly lost: count -1"),
        (Wish(12_000, {"lost": 10_000}), "10000 anomalies wished, a log of this size has room for"),
        (Wish(12_000, {"flush_lost": 10_000}), "anomaly flush_lost: 10000 wished"),
        (Wish(100), "the timetable needs 360 or more"),
    ],
)
def test_a_wish_that_does_not_fit_is_refused(wish: Wish, message: str, tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=message):
        generate(wish, tmp_path / "log")


def test_a_folder_with_something_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("keep")
    with pytest.raises(FileExistsError, match="not empty"):
        generate(Wish(12_000), tmp_path)
    assert (tmp_path / "precious").read_text() == "keep"
