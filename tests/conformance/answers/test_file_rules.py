"""Tests the rules for files: those of a clean exit hold, and changed bytes are reported."""

from collections.abc import Callable

import pytest

from mqproof.conformance.answers import file_rules
from tests.conformance.answers.stopped_store import SHAPE, stopped_store


def test_files_of_a_clean_exit_follow_from_the_log() -> None:
    files, _ = stopped_store()

    assert not list(file_rules.wrong_in_files(files, SHAPE))
    assert not list(file_rules.wrong_tables(files))


def _changed(path: str, at: int) -> Callable[[dict[str, bytes]], None]:
    def change(files: dict[str, bytes]) -> None:
        name = next(name for name in sorted(files) if name.startswith(path))
        data = bytearray(files[name].ljust(at + 1, b"\0"))
        data[at] ^= 1
        files[name] = bytes(data)

    return change


@pytest.mark.parametrize(
    "change",
    [
        _changed("consumequeue/T/0/", 7),
        _changed("consumequeue/T/1/", 19),
        _changed("index/", 0),
        _changed("index/", 40),
        _changed("index/", 40 + 16 + 20),
        _changed("checkpoint", 5),
        _changed("commitlog/", 3),
        lambda files: files.update(abort=b""),
        lambda files: files.pop("checkpoint"),
    ],
)
def test_a_changed_file_is_reported(change: Callable[[dict[str, bytes]], None]) -> None:
    files, _ = stopped_store()
    change(files)

    assert list(file_rules.wrong_in_files(files, SHAPE))


@pytest.mark.parametrize("path", ["config/table.json", "config/table.json.bak"])
def test_a_changed_table_is_reported(path: str) -> None:
    files, _ = stopped_store()
    _changed(path, 3)(files)

    assert list(file_rules.wrong_tables(files))
