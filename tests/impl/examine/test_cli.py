"""Tests `mqproof store inspect` and `verify` on real directories."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from mqproof.impl.examine.cli import app
from mqproof.impl.runtime.disk import ReadOnlyDisk, RealDisk
from tests.impl.store.site import Site


def mqproof(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["store", *map(str, arguments)])


def written(directory: Path) -> Site:
    site = Site(disk=RealDisk(), directory=str(directory))
    site.open()
    site.append("a", "b", "c", "d", "e", "f")
    site.append("g", queue_id=1)
    return site


@pytest.fixture
def store(tmp_path: Path) -> Path:
    written(tmp_path / "store").close()
    return tmp_path / "store"


def test_an_undamaged_store_is_reported_as_whole(store: Path) -> None:
    result = mqproof("verify", store, "--index-slots", 3)
    assert (result.exit_code, result.output) == (0, "whole: 7 records, 7 queue entries, 7 keys\n")


def test_damage_is_reported_in_lines_and_by_the_exit_code(store: Path) -> None:
    path = store / "consumequeue/T/0/00000000000000000000"
    data = path.read_bytes()
    path.write_bytes(data[:19] + b"\x07" + data[20:])
    result = mqproof("verify", store, "--index-slots", 3)
    assert result.exit_code == 1
    assert result.output.splitlines() == [
        "consumequeue/T/0: entry 0 with another tag code than its record",
        "1 damages; 7 records, 6 queue entries, 7 keys",
    ]


def test_the_contents_are_shown_as_tables_and_as_json(store: Path) -> None:
    result = mqproof("inspect", store, "--index-slots", 3)
    assert result.exit_code == 0
    for text in ("the last exit was clean", "00000000000000000512", "consume queues", "checkpoint"):
        assert text in result.output
    found = json.loads(mqproof("inspect", store, "--index-slots", 3, "--json", "-").output)
    assert [(each["topic"], each["queue_id"], each["max_offset"]) for each in found["queues"]] == [
        ("T", 0, 6),
        ("T", 1, 1),
    ]


def test_a_result_goes_to_a_file(store: Path, tmp_path: Path) -> None:
    mqproof("verify", store, "--index-slots", 3, "--json", tmp_path / "verdict.json")
    assert json.loads((tmp_path / "verdict.json").read_text())["damages"] == []


def test_a_read_only_store_can_be_read(store: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in store.rglob("*")}
    for path in store.rglob("*"):
        path.chmod(0o500 if path.is_dir() else 0o400)
    assert mqproof("verify", store, "--index-slots", 3).exit_code == 0
    assert mqproof("inspect", store, "--index-slots", 3).exit_code == 0
    assert {path: path.stat().st_mtime_ns for path in store.rglob("*")} == before
    for path in store.rglob("*"):
        path.chmod(0o700)


def test_a_store_in_use_can_be_examined_with_a_note(tmp_path: Path) -> None:
    hold = (
        "import sys; from mqproof.impl.runtime.disk import RealDisk; lock = RealDisk().lock(sys.argv[1]);"
        "print('held', flush=True); sys.stdin.read()"
    )
    written(tmp_path / "store").close()
    command = [sys.executable, "-c", hold, str(tmp_path / "store/lock")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        result = mqproof("verify", tmp_path / "store", "--index-slots", 3)
        assert result.output.startswith("note: a broker is using this store")
        assert result.exit_code == 0
        assert "a broker is using it" in mqproof("inspect", tmp_path / "store", "--index-slots", 3).output
        holder.communicate("", timeout=60)
    assert "note" not in mqproof("verify", tmp_path / "store", "--index-slots", 3).output


@pytest.mark.parametrize("command", ["inspect", "verify"])
def test_a_directory_that_is_not_a_store_is_one_line_and_exit_code_2(command: str, tmp_path: Path) -> None:
    result = mqproof(command, tmp_path)
    assert result.exit_code == 2
    assert result.output.splitlines() == [
        f"mqproof store {command}: {tmp_path}: not a store,"
        " a directory with commitlog/ or dledger-ID/ expected"
    ]


def test_a_disk_opened_for_reading_is_not_changed(tmp_path: Path) -> None:
    disk = ReadOnlyDisk()
    (tmp_path / "f").write_text("x")
    path = str(tmp_path / "f")
    for change in (
        lambda: disk.create(path, 1),
        lambda: disk.remove(path),
        lambda: disk.replace(path, path),
        lambda: disk.lock(path),
        lambda: disk.open(path).write(0, b"y"),
    ):
        with pytest.raises(OSError, match=r"Read-only|Bad file"):
            change()
    assert (tmp_path / "f").read_text() == "x"
    assert not disk.is_locked(str(tmp_path / "none"))
