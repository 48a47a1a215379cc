"""A line of NDJSON is an event, or is none, or only Spark decides."""

import gzip
from io import BytesIO
from pathlib import Path

import pytest

from mqproof.spark_audit.sources import log_lines
from mqproof.spark_audit.sources.inputs import InputError
from mqproof.spark_audit.sources.log_lines import (
    TAIL_BYTES_MAX,
    UnusualLineError,
    check_columns,
    chunks,
    examined,
    is_empty,
    object_in,
    opened,
    torn_tail,
)

GOOD = b'{"ts":1,"seq":2,"node":"n","kind":"send"}\n'


def _examined(text: bytes) -> list[tuple[bytes, int]]:
    return list(examined(iter([text])))


def test_whole_chunks_of_events_are_accepted_at_once() -> None:
    assert _examined(GOOD * 3) == [(GOOD * 3, 3)]
    assert _examined(GOOD + GOOD.rstrip()) == [(GOOD + GOOD.rstrip(), 2)]
    readable = GOOD.replace(b"}", b',"attrs":{"schema":"1","x":null}}')
    assert _examined(readable) == [(readable, 1)]


@pytest.mark.parametrize(
    "line",
    [
        b"{this is no event}",
        b"{",
        b"17",
        b'{"ts":1,"seq":2.0,"node":"n","kind":"send"}',
        b'{"ts":"1","seq":2,"node":"n","kind":"send"}',
        b'{"ts":1,"seq":2,"node":"n","kind":"sent"}',
        b'{"ts":1,"seq":2,"node":null,"kind":"send"}',
        b'{"ts":4611686018427387904,"seq":2,"node":"n","kind":"send"}',
        b'{"ts":1,"seq":2,"node":"n","kind":"send","queue_id":2147483648}',
        b'{"ts":1,"seq":2,"node":"n","kind":"send","attrs":{"schema":"3"}}',
        b'{"ts":1,"seq":2,"node":"n","kind":"send","attrs":{"schema":"one"}}',
        b'{"ts":1,"seq":2,"node":"n","kind":"send","attrs":"x"}',
        GOOD.strip() + b" " + GOOD.strip(),
        GOOD.strip() + b",",
    ],
)
def test_a_line_that_is_no_event_comes_alone(line: bytes) -> None:
    assert _examined(GOOD + line + b"\n \n" + GOOD) == [(GOOD, 1), (line + b"\n", 0), (GOOD, 1)]


def test_as_many_objects_as_lines_need_not_be_one_in_each() -> None:
    twice = GOOD.strip() + GOOD
    assert _examined(b"\n" + twice) == [(twice, 0)]
    first, second = GOOD[:10] + b"\n", GOOD[10:]
    assert _examined(first + second + twice) == [(first, 0), (second, 0), (twice, 0)]
    indented = b" \t" + GOOD
    assert _examined(GOOD + indented) == [(GOOD, 1), (indented, 1)]


@pytest.mark.parametrize(
    "line",
    [b"[1]", b'{"node":7}', b'{"attrs":{"x":1}}', b'{"node":"\xff"}', b'{"node":"\\ud800"}'],
)
def test_a_line_that_spark_may_accept_is_unusual(line: bytes) -> None:
    with pytest.raises(UnusualLineError):
        _examined(line)
    assert list(examined(iter([line]), as_spark=False)) == [(line, 0)]


def test_a_log_is_read_in_chunks_of_whole_lines(tmp_path: Path) -> None:
    text = GOOD * 150_000 + GOOD.rstrip()
    for name, data in (("a.ndjson", text), ("b.ndjson.gz", gzip.compress(text, 1))):
        (tmp_path / name).write_bytes(data)
        with opened(tmp_path / name) as log:
            parts = list(chunks(log))
        assert len(parts) > 1
        assert b"".join(parts) == text
        assert all(part.endswith(b"\n") for part in parts[:-1])


def test_a_line_that_never_ends_is_not_held_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_lines, "_CHUNK_BYTES", 16)
    monkeypatch.setattr(log_lines, "LINE_BYTES_MAX", 64)
    assert b"".join(chunks(BytesIO(GOOD * 3 + b"x" * 64))) == GOOD * 3 + b"x" * 64
    with pytest.raises(UnusualLineError, match="longer than 64 bytes: xxx"):
        list(chunks(BytesIO(GOOD + b"x" * 1000)))


def test_only_a_partial_last_line_is_torn(tmp_path: Path) -> None:
    file = tmp_path / "log.ndjson"
    for tail, torn in (
        (b"", b""),
        (b'{"ts":1', b'{"ts":1'),
        (GOOD.rstrip(), b""),
        (b"x" * (TAIL_BYTES_MAX + 1), b""),
    ):
        file.write_bytes(GOOD + tail)
        assert torn_tail(file) == torn
    (tmp_path / "log.ndjson.gz").write_bytes(gzip.compress(GOOD + b"{"))
    assert torn_tail(tmp_path / "log.ndjson.gz") == b"{"


def test_an_empty_file_is_a_log_only_without_compression(tmp_path: Path) -> None:
    (tmp_path / "a.ndjson").touch()
    (tmp_path / "b.parquet").touch()
    assert is_empty(tmp_path / "a.ndjson")
    with pytest.raises(InputError, match=r"expected a complete \.parquet file"):
        is_empty(tmp_path / "b.parquet")


def test_a_required_column_may_come_from_a_folder(tmp_path: Path) -> None:
    check_columns("x", tmp_path / "node=a" / "log.ndjson", ["ts", "seq", "kind"])
    with pytest.raises(InputError, match="x: missing column node"):
        check_columns("x", tmp_path / "log.ndjson", ["ts", "seq", "kind"])
    assert object_in(b'{"a":1}') == {"a": 1}
    assert object_in(b"[") is None
