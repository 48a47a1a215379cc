"""Finds the input files, each of them once, for any form of the arguments."""

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from mqproof.spark_audit.sources.inputs import InputError, find_files


def test_nothing_to_read_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no event log in this folder"):
        find_files([str(tmp_path)])
    with pytest.raises(InputError, match="no such file or folder"):
        find_files([str(tmp_path / "nowhere")])
    with pytest.raises(InputError, match="no such file or folder"):
        find_files([str(tmp_path / "*.ndjson")])
    (tmp_path / "log.csv").write_text("ts")
    with pytest.raises(InputError, match="not an event log by its name"):
        find_files([str(tmp_path / "log.csv")])


def test_a_file_that_matches_several_patterns_is_found_once(tmp_path: Path) -> None:
    for name in ("a.ndjson", "b.ndjson"):
        (tmp_path / name).write_bytes(name.encode())
    assert find_files([str(tmp_path / "*.ndjson"), str(tmp_path)]).files == (
        tmp_path / "a.ndjson",
        tmp_path / "b.ndjson",
    )


def test_a_file_under_two_names_is_reported_and_read_once(tmp_path: Path) -> None:
    original = tmp_path / "a.ndjson"
    original.write_bytes(b"1" * 200_000)
    (tmp_path / "link.ndjson").symlink_to(original)
    (tmp_path / "copy.ndjson").write_bytes(original.read_bytes())
    other = bytearray(original.read_bytes())
    other[100_000:100_001] = b"2"
    (tmp_path / "of_equal_size_and_ends.ndjson").write_bytes(other)
    for name in ("empty.ndjson", "empty_too.ndjson"):
        (tmp_path / name).touch()
    found = find_files([str(original), str(tmp_path)])
    names = ["a.ndjson", "empty.ndjson", "empty_too.ndjson", "of_equal_size_and_ends.ndjson"]
    assert [file.name for file in found.files] == names
    assert found.repeats == (
        (original, original),
        (tmp_path / "copy.ndjson", original),
        (tmp_path / "link.ndjson", original),
    )
    assert list(found.repeat_messages())[:2] == [
        f"{original} is given again: counted once",
        f"{tmp_path / 'copy.ndjson'} is {original} again: counted once",
    ]


def test_equal_files_in_folders_with_different_column_values_are_different_rows(tmp_path: Path) -> None:
    for node in ("a", "b"):
        (tmp_path / f"node={node}").mkdir()
        (tmp_path / f"node={node}" / "log.ndjson").write_bytes(b"{}")
    found = find_files([str(tmp_path)])
    assert (len(found.files), found.repeats) == (2, ())


def test_a_pattern_matches_hidden_names_only_if_they_are_given(tmp_path: Path) -> None:
    for name in ("a.parquet", "_truth.parquet"):
        (tmp_path / name).write_bytes(name.encode())
    assert find_files([str(tmp_path / "*.parquet")]).files == (tmp_path / "a.parquet",)
    assert find_files([str(tmp_path / "_truth.parquet")]).files == (tmp_path / "_truth.parquet",)


def test_links_are_followed_once_and_a_broken_link_is_reported(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "a.ndjson").write_text("{}\n")
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "linked").symlink_to(tmp_path / "elsewhere")
    (logs / "linked" / "again").symlink_to(logs)
    assert find_files([str(logs)]).files == (logs / "linked" / "a.ndjson",)
    (logs / "gone.ndjson").symlink_to(tmp_path / "nowhere")
    with pytest.raises(InputError, match=r"gone\.ndjson: No such file"):
        find_files([str(logs)])


def test_an_unreadable_folder_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    closed = tmp_path / "closed"
    closed.mkdir()
    (tmp_path / "a.ndjson").write_bytes(b"{}")
    scandir = os.scandir

    def refuse(folder: str) -> "Iterator[os.DirEntry[str]]":
        if Path(folder) == closed:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), folder)
        return scandir(folder)

    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(InputError, match="closed: Permission denied"):
        find_files([str(tmp_path)])


def test_a_file_name_that_is_not_utf_8_is_refused(tmp_path: Path) -> None:
    Path(os.fsdecode(bytes(tmp_path) + b"/caf\xe9.ndjson")).touch()
    with pytest.raises(InputError, match=r"caf\\udce9\.ndjson': its name is not UTF-8"):
        find_files([str(tmp_path)])
