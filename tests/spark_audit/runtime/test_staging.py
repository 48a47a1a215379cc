"""A staged folder appears completely or not at all."""

import errno
from pathlib import Path

import pytest

from mqproof.spark_audit.runtime.staging import staged


def test_staged_files_move_into_the_folder_and_other_files_stay(tmp_path: Path) -> None:
    out = tmp_path / "deep" / "out"
    with staged(out) as folder:
        (folder / "report.html").write_text("one")
        (folder / "unreadable").mkdir()
        (folder / "unreadable" / "a").touch()
        assert not out.exists()
    (out / "mine.txt").touch()
    with staged(out) as folder:
        (folder / "report.html").write_text("two")
        (folder / "unreadable").mkdir()
        (folder / "unreadable" / "b").touch()
    assert (out / "report.html").read_text() == "two"
    assert [path.name for path in (out / "unreadable").iterdir()] == ["b"]
    assert sorted(path.name for path in out.iterdir()) == ["mine.txt", "report.html", "unreadable"]
    assert [path.name for path in out.parent.iterdir()] == ["out"]


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()])
def test_an_exception_leaves_no_files(tmp_path: Path, error: BaseException) -> None:
    out = tmp_path / "out"
    with pytest.raises(type(error)), staged(out) as folder:  # noqa: PT012  # the block is what is tested
        (folder / "half").touch()
        raise error
    assert list(tmp_path.iterdir()) == []


def test_replaced_names_that_are_not_staged_again_are_removed(tmp_path: Path) -> None:
    for name in ("unreadable", "report.html"):
        with staged(tmp_path / "out", replaces=("unreadable",)) as folder:
            (folder / name).mkdir()
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["report.html"]


@pytest.mark.parametrize("is_moved", [False, True])
def test_the_next_call_repairs_a_move_that_was_killed(tmp_path: Path, is_moved: bool) -> None:
    out, replaced = tmp_path / "out", tmp_path / ".out.replaced"
    replaced.mkdir()
    (replaced / "report.html").write_text("old")
    (replaced / "mine.txt").touch()
    (replaced / "unreadable").mkdir()
    if is_moved:
        out.mkdir()
        (out / "report.html").write_text("new")
    with pytest.raises(KeyboardInterrupt), staged(out, replaces=("unreadable",)):
        raise KeyboardInterrupt
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    of_old = [] if is_moved else ["unreadable"]
    assert sorted(path.name for path in out.iterdir()) == ["mine.txt", "report.html", *of_old]
    assert (out / "report.html").read_text() == ("new" if is_moved else "old")


def test_an_empty_folder_is_filled(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    with staged(out) as folder:
        (folder / "log").touch()
    assert [path.name for path in out.iterdir()] == ["log"]


def test_an_error_names_the_requested_folder(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as raised, staged(tmp_path / "out") as folder:
        (folder / "missing" / "file").touch()
    assert raised.value.filename == str(tmp_path / "out")
