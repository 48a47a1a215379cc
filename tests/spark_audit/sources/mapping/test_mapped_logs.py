"""Tables of another form become event logs; expressions that do not fit are named at once."""

import json
from pathlib import Path
from typing import Any

import duckdb
import pytest

from mqproof.spark_audit.sources.inputs import InputError
from mqproof.spark_audit.sources.mapping.mapped_logs import Converted, convert
from mqproof.spark_audit.sources.mapping.mapping_file import MappingError, read_mapping

ROWS = [
    {"at": 3_000, "what": "ack", "client": "a", "key": "k1", "part": 0, "off": 7, "user": None},
    {"at": 1_000, "what": "send", "client": "a", "key": "k1", "part": None, "off": None, "user": "x"},
    {"at": 2_000, "what": "send", "client": "b", "key": "k2", "part": None, "off": None, "user": None},
    {"at": 4_000, "what": "idle", "client": "b", "key": None, "part": None, "off": None, "user": None},
]
MAPPING = """
[[source]]
path = "PATH"
format = "FORMAT"
[source.columns]
ts = '"at"'
node = "'p-' || client"
msg_id = '"key"'
topic = "'t'"
attrs.account = '"user"'
[[source.event]]
kind = "send"
where = "what = 'send'"
[[source.event]]
kind = "send_ack"
where = "what = 'ack'"
columns = { queue_id = '"part"', queue_offset = '"off"', status = "'SEND_OK'" }
"""


def _table(folder: Path, form: str, rows: list[dict[str, Any]] = ROWS) -> None:
    lines = folder / "rows.json"
    lines.write_text("".join(json.dumps(row) + "\n" for row in rows))
    if form != "json":
        with duckdb.connect() as database:
            database.execute(f"COPY (SELECT * FROM '{lines}') TO '{folder}/rows.{form}'")


def _convert(folder: Path, text: str) -> Converted:
    (folder / "m.toml").write_text(text)
    return convert(read_mapping(folder / "m.toml"), folder / "out.parquet", lambda _: None)


def _errors(folder: Path, text: str) -> list[str]:
    with pytest.raises(MappingError) as raised:
        _convert(folder, text)
    return [line.removeprefix(f"{folder}/m.toml: ") for line in raised.value.lines]


def _rows(file: Path) -> list[tuple[Any, ...]]:
    query = f"SELECT node, seq, ts, kind, msg_id, queue_offset, attrs FROM '{file}' ORDER BY node, seq"
    with duckdb.connect() as database:
        return database.execute(query).fetchall()


@pytest.mark.parametrize("form", ["json", "csv", "parquet"])
def test_the_rows_of_a_table_become_events_in_order_of_time(tmp_path: Path, form: str) -> None:
    _table(tmp_path, form)
    text = MAPPING.replace("PATH", f"rows.{form}").replace("FORMAT", form)
    done = _convert(tmp_path, text)
    assert done.line() == f"{tmp_path}/m.toml: 4 rows, 3 events, 1 rows give no event"
    assert _rows(done.file) == [
        ("p-a", 1, 1000, "send", "k1", None, {"account": "x"}),
        ("p-a", 2, 3000, "send_ack", "k1", 7, {}),
        ("p-b", 1, 2000, "send", "k2", None, {}),
    ]
    complete = _convert(tmp_path, f"complete = true\n{text}")
    assert [row[1] for row in _rows(complete.file)] == [0, 1, 0]  # else they begin late


def test_given_numbers_and_timestamps_are_used(tmp_path: Path) -> None:
    rows = [{**row, "at": f"2026-11-26 00:00:0{n}.5", "n": 40 + n} for n, row in enumerate(ROWS)]
    _table(tmp_path, "parquet", rows)
    text = MAPPING.replace("PATH", "rows.parquet").replace("FORMAT", "parquet")
    done = _convert(tmp_path, text.replace('topic = "', 'seq = "n"\ntopic = "'))
    assert [row[1:3] for row in _rows(done.file)] == [
        (40, 1_795_651_200_500_000), (41, 1_795_651_201_500_000), (42, 1_795_651_202_500_000)
    ]  # fmt: skip


def test_each_wrong_column_is_one_error(tmp_path: Path) -> None:
    _table(tmp_path, "json")
    text = MAPPING.replace("PATH", "rows.json").replace("FORMAT", "json")
    text = (
        text.replace("'\"key\"'", "'\"kez\"'").replace("'\"part\"'", "'client'").replace("what = 'ack'", "(")
    )
    found = _errors(tmp_path, text)
    assert len(found) == 3, found
    assert found[0].startswith('source 1, column msg_id: Binder Error: Referenced column "kez" not found')
    assert found[1].startswith("source 1, event 2 (send_ack): where: Parser Error: ")
    assert found[2] == "source 1, column queue_id: 'client' is VARCHAR, expected a whole number"


def test_a_time_of_another_type_and_an_absent_node_are_errors(tmp_path: Path) -> None:
    _table(tmp_path, "json")
    text = MAPPING.replace("PATH", "rows.json").replace("FORMAT", "json")
    assert _errors(tmp_path, text.replace("ts = '\"at\"'", "ts = 'client'")) == [
        "source 1, column ts: 'client' is VARCHAR, expected a whole number of microseconds, or a timestamp"
    ]
    assert _errors(tmp_path, text.replace("\"'p-' || client\"", "'\"user\"'")) == [
        "source 1, event 1 (send): node is NULL in 1 of the first 1000 rows",
        "source 1, event 2 (send_ack): node is NULL in 1 of the first 1000 rows",
    ]


def test_a_value_that_does_not_fit_behind_the_sample_is_an_error_too(tmp_path: Path) -> None:
    _table(tmp_path, "json", [*ROWS * 300, {**ROWS[0], "off": 2**62}])
    text = MAPPING.replace("PATH", "rows.json").replace("FORMAT", "json")
    with pytest.raises(InputError, match=r"m\.toml: .* Error: .*out of range"):
        _convert(tmp_path, text.replace("queue_id = '\"part\"'", "queue_id = '\"off\"'"))


def test_a_table_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    text = MAPPING.replace("PATH", "absent.json").replace("FORMAT", "json")
    with pytest.raises(InputError, match=r"m\.toml: source 1: .*absent\.json: IO Error: No files found"):
        _convert(tmp_path, text)


def test_a_comment_in_an_expression_does_not_hide_the_rest(tmp_path: Path) -> None:
    _table(tmp_path, "json")
    text = MAPPING.replace("PATH", "rows.json").replace("FORMAT", "json")
    assert _convert(tmp_path, text.replace("'t'", "'t' -- all")).events == 3
