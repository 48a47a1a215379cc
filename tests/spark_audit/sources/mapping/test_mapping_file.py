"""Mapping files: a mistake is one line that names the place and what is expected."""

from pathlib import Path

import pytest

from mqproof.spark_audit.sources.mapping.mapping_file import MappingError, read_mapping
from mqproof.spec.events import Kind

GOOD = """
complete = true
[[source]]
path = "p.jsonl"
format = "json"
options = { maximum_depth = 3 }
[source.columns]
ts = "at_us"
node = "'p'"
topic = "topic"
attrs.broker = "'kafka'"
[[source.event]]
kind = "send"
where = "event = 'send'"
columns = { msg_id = "key", "attrs.account" = "user" }
"""


def _read(tmp_path: Path, text: str) -> list[str]:
    file = tmp_path / "m.toml"
    file.write_text(text)
    with pytest.raises(MappingError) as raised:
        read_mapping(file)
    return [line.removeprefix(f"{file}: ") for line in raised.value.lines]


def test_a_mapping_has_sources_events_columns_and_attributes(tmp_path: Path) -> None:
    file = tmp_path / "m.toml"
    file.write_text(GOOD)
    mapping = read_mapping(file)
    (source,) = mapping.sources
    (event,) = source.events
    assert (mapping.complete, mapping.is_numbered, mapping.needs_spark) == (True, False, False)
    assert (source.path, source.format) == (str(tmp_path / "p.jsonl"), "json")
    assert source.options == {"maximum_depth": 3}
    assert (event.kind, event.where) == (Kind.SEND, "event = 'send'")
    assert event.columns == {"ts": "at_us", "node": "'p'", "topic": "topic", "msg_id": "key"}
    assert event.attrs == {"broker": "'kafka'", "account": "user"}


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("complete = true", "complete = 1", "complete 1, expected true or false"),
        ("complete = true", "incomplete = true", "unknown key 'incomplete'"),
        ('format = "json"', 'format = "xml"', "source 1: format 'xml', expected one of json, csv, parquet, "),
        ('path = "p.jsonl"', "path = 7", "source 1: path 7, expected a text"),
        ('kind = "send"', 'kind = "sent"', "source 1, event 1: kind 'sent', expected one of the kinds"),
        ('ts = "at_us"', "ts = 7", "source 1, columns: ts = 7, expected an expression in SQL, as a text"),
        ('ts = "at_us"', "", "source 1, event 1: a send needs the column ts"),
        ('msg_id = "key", ', "", "source 1, event 1: a send needs the column msg_id"),
        ('topic = "topic"', 'topik = "topic"', "source 1, columns: topik is no column of the event log"),
        ("maximum_depth = 3", '"a b" = 3', "source 1: options: expected names and plain values"),
        ('where = "event', 'wher = "event', "source 1, event 1: unknown key 'wher'"),
        ("[[source.event]]", "[[source.events]]", "source 1: unknown key 'events'"),
    ],
)
def test_a_mistake_is_named(tmp_path: Path, old: str, new: str, expected: str) -> None:
    assert old in GOOD
    assert _read(tmp_path, GOOD.replace(old, new))[0].startswith(expected)


def test_all_mistakes_are_named_at_once(tmp_path: Path) -> None:
    text = GOOD.replace('kind = "send"', 'kind = "sent"').replace("complete = true", "complete = 1")
    assert len(_read(tmp_path, text)) == 2


def test_a_file_that_is_no_mapping_is_one_error(tmp_path: Path) -> None:
    assert _read(tmp_path, "complete = true") == ["expected 1 to 64 tables [[source]]"]
    assert _read(tmp_path, "not toml")[0].startswith("not TOML: ")
    assert _read(tmp_path, "#" * (1 << 20) + "\n") == ["more than 1048576 bytes, a mapping file expected"]
    with pytest.raises(MappingError, match=r"absent\.toml: No such file"):
        read_mapping(tmp_path / "absent.toml")


def test_numbers_are_given_for_all_events_or_for_none(tmp_path: Path) -> None:
    second = GOOD.partition("[[source]]")[2].replace('ts = "at_us"', 'ts = "at_us"\nseq = "n"')
    assert _read(tmp_path, f"{GOOD}\n[[source]]{second}") == [
        "some events have the column seq, expected all or none"
    ]


def test_a_uri_is_a_path_for_spark_alone(tmp_path: Path) -> None:
    remote = GOOD.replace('path = "p.jsonl"', 'path = "s3a://logs/day"')
    assert remote != GOOD
    (line,) = _read(tmp_path, remote)
    assert "json is read from local files" in line
    (tmp_path / "good.toml").write_text(remote.replace('"json"', '"orc"').replace("maximum_depth", "merge"))
    assert read_mapping(tmp_path / "good.toml").sources[0].path == "s3a://logs/day"


def test_one_file_is_read_by_one_engine(tmp_path: Path) -> None:
    second = GOOD.partition("[[source]]")[2].replace('"json"', '"orc"')
    assert _read(tmp_path, f"{GOOD}\n[[source]]{second}") == [
        "orc, delta, iceberg, jdbc are read by Spark: use a mapping file of their own"
    ]
