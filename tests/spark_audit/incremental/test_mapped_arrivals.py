"""Tables that arrive while a watch runs: each becomes an event log once."""

import json
from pathlib import Path
from typing import Final

import duckdb
import pytest

from mqproof.spark_audit.command.watch_command import with_mappings
from mqproof.spark_audit.incremental.mapped_arrivals import MappedArrivals
from mqproof.spark_audit.incremental.watch import Source, Watch
from mqproof.spark_audit.sources.inputs import InputError
from mqproof.spark_audit.sources.mapping.mapping_file import MappingError, read_mapping

MAPPING: Final = """
[[source]]
path = "in/*.jsonl"
format = "json"

[source.columns]
ts = "t * 1000000"
node = "'p'"
seq = "n"
msg_id = "id"
topic = "'T'"

[[source.event]]
kind = "send"
"""


def arrivals(folder: Path, text: str = MAPPING) -> MappedArrivals:
    (folder / "in").mkdir(exist_ok=True)
    (folder / "map.toml").write_text(text, encoding="utf-8")
    return MappedArrivals([read_mapping(folder / "map.toml")], folder / "state")


def write(folder: Path, name: str, *numbers: int, key: str = "n") -> None:
    rows = [{"t": 1_795_574_419 + number, key: number, "id": f"m{number}"} for number in numbers]
    (folder / "in" / name).write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def ids(made: MappedArrivals) -> list[str]:
    logs = [str(log) for log in made.folder.glob("*.parquet")]
    with duckdb.connect() as database:
        rows = database.execute(f"SELECT msg_id FROM read_parquet({logs}) ORDER BY seq").fetchall()
    return [row[0] for row in rows]


def test_each_file_becomes_a_log_once(tmp_path: Path) -> None:
    made = arrivals(tmp_path)
    said: list[str] = []
    write(tmp_path, "a.jsonl", 0, 1)
    assert made.take(said.append) == 1
    write(tmp_path, "b[1].jsonl", 2)
    assert made.take(said.append) == 1
    assert made.take(said.append) == 0
    assert ids(made) == ["m0", "m1", "m2"]
    assert arrivals(tmp_path).take(said.append) == 0  # the next start of the watch
    assert [line.rpartition(": ")[2] for line in said] == ["2 events", "1 event"]
    assert not list(made.folder.glob(".*"))


def test_a_file_that_does_not_fit_is_an_error_and_leaves_no_log(tmp_path: Path) -> None:
    made = arrivals(tmp_path)
    write(tmp_path, "a.jsonl", 0, key="number")
    with pytest.raises(MappingError):
        made.take(lambda _: None)
    assert not list(made.folder.glob("*.parquet"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (MAPPING.replace('seq = "n"\n', ""), "it maps no column seq"),
        (MAPPING.replace('format = "json"', 'format = "orc"'), "json, csv and parquet only"),
    ],
)
def test_a_mapping_that_a_watch_cannot_read_is_refused(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        arrivals(tmp_path, text)


def test_a_watch_reads_the_folder_of_the_converted_logs(tmp_path: Path) -> None:
    arrivals(tmp_path)
    write(tmp_path, "a.jsonl", 0)
    request = with_mappings(Watch(Source(), tmp_path / "state", 0), [str(tmp_path / "map.toml")])
    (folder,) = request.source.folders
    assert len(list(folder.glob("*.parquet"))) == 1
    write(tmp_path, "b.jsonl", 1)
    assert request.poll is not None
    request.poll()
    assert len(list(folder.glob("*.parquet"))) == 2
