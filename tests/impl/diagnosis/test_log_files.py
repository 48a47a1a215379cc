"""Event logs are read in one pass; a log that cannot be read is one clear error."""

import gzip
from pathlib import Path

import pytest

from mqproof.impl.diagnosis.log_files import LogError, find_logs, ids_with_key, read_histories
from mqproof.spec.events import COLUMNS, Event, Kind, as_row, encode

EVENTS = [
    Event(1, 0, "p", Kind.SEND, msg_id="other", topic="T", keys="a b", attrs={"schema": "2"}),
    Event(2, 1, "p", Kind.SEND, msg_id="m", topic="T", keys="b"),
    Event(3, 0, "c", Kind.DELIVER, msg_id="other", topic="T", queue_id=0, queue_offset=4, group="g"),
    Event(4, 1, "c", Kind.OFFSET_COMMIT, topic="T", queue_id=0, queue_offset=5, group="g"),
    Event(5, 3, "b", Kind.ADMIN, topic="T", attrs={"action": "delete_topic_in_broker", "address": "a"}),
]


def _lines(*events: Event) -> bytes:
    return b"".join(map(encode, events))


@pytest.fixture(params=["ndjson", "ndjson.gz", "ndjson.zst", "parquet"])
def log(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / f"log.{request.param}"
    if request.param == "parquet":
        import duckdb

        (tmp_path / "lines.json").write_bytes(_lines(*EVENTS))
        types = {"int64": "BIGINT", "int32": "INTEGER", "string": "VARCHAR"}
        named = ", ".join(
            f"\"{name}\": '{types.get(kind, 'MAP(VARCHAR, VARCHAR)')}'" for name, kind in COLUMNS.items()
        )
        source = f"read_json('{tmp_path}/lines.json', columns = {{{named}}})"
        with duckdb.connect() as own:
            own.execute(f"COPY (SELECT * FROM {source}) TO '{path}' (FORMAT parquet)")
    elif request.param == "ndjson.gz":
        path.write_bytes(gzip.compress(_lines(*EVENTS)))
    elif request.param == "ndjson.zst":
        zstd = pytest.importorskip("backports.zstd")
        path.write_bytes(zstd.compress(_lines(*EVENTS)))
    else:
        path.write_bytes(_lines(*EVENTS))
    return path


def test_the_events_of_a_message_and_those_that_explain_others_are_kept(log: Path) -> None:
    history = read_histories([log], ["m"])["m"]
    assert [(event.kind, event.ts) for event in history.own] == [(Kind.SEND, 2)]
    assert [event.kind for event in history.other] == [Kind.ADMIN]
    assert history.committed == {("g", "T", "c", 0): 5}
    assert history.received == {("g", "T", "c", 0): (4, 4)}
    assert history.whole == {"p", "c"}  # the log of b begins at 3
    assert as_row(history.own[0])["keys"] == "b"


def test_messages_are_found_by_a_key_newest_first(log: Path) -> None:
    assert ids_with_key([log], "b", "T") == ["m", "other"]
    assert ids_with_key([log], "b", "Other") == []


def test_folders_are_searched_and_each_file_is_read_once(tmp_path: Path) -> None:
    inside = tmp_path / "a" / "x.ndjson"
    inside.parent.mkdir()
    inside.write_bytes(_lines(*EVENTS))
    (tmp_path / "a" / ".hidden.ndjson").write_bytes(b"no event\n")
    assert find_logs([tmp_path, inside]) == [inside]
    with pytest.raises(LogError, match="no such file or folder"):
        find_logs([tmp_path / "absent"])
    (tmp_path / "empty").mkdir()
    with pytest.raises(LogError, match="no event log in this folder"):
        find_logs([tmp_path / "empty"])


def test_an_incomplete_last_line_is_left_out_and_another_bad_line_is_named(tmp_path: Path) -> None:
    path = tmp_path / "x.ndjson"
    path.write_bytes(_lines(*EVENTS) + b'{"ts":9,"msg_id":"m"')
    assert len(read_histories([path], ["m"])["m"].own) == 1
    path.write_bytes(b'{"ts":9,"msg_id":"m"\n' + _lines(*EVENTS))
    with pytest.raises(LogError, match=r"x\.ndjson:1: not an event"):
        read_histories([path], ["m"])
    path.write_bytes(b"x" * (1 << 20) + b"yy\n")
    with pytest.raises(LogError, match=r"x\.ndjson:1: a line of more than 1048576 bytes"):
        read_histories([path], ["m"])


def test_damaged_files_are_one_error(tmp_path: Path) -> None:
    for name in ("x.ndjson.gz", "x.ndjson.zst", "x.parquet"):
        path = tmp_path / name
        path.write_bytes(b"not compressed" * 9)
        with pytest.raises(LogError, match=name):
            read_histories([path], ["m"])
