"""Tests that a file has only whole lines, whatever a killed writer left."""

from pathlib import Path

import pytest

from mqproof.impl.runtime.append_file import AppendFile


def test_lines_are_on_disk_as_soon_as_they_are_appended(tmp_path: Path) -> None:
    path = tmp_path / "log"
    file = AppendFile(str(path))
    file.append(b"one\n")
    file.append(b"two\n")
    assert path.read_bytes() == b"one\ntwo\n"
    assert list(file.lines_backwards()) == [b"two\n", b"one\n"]
    file.close()


@pytest.mark.parametrize("torn", [b"t", b"torn", b"x" * 70_000, b"x" * 200_000])
@pytest.mark.parametrize("whole", [b"", b"one\n", b"one\n" * 40_000])
def test_a_torn_last_line_is_cut(tmp_path: Path, whole: bytes, torn: bytes) -> None:
    path = tmp_path / "log"
    path.write_bytes(whole + torn)
    file = AppendFile(str(path))
    assert path.read_bytes() == whole
    file.append(b"next\n")
    assert next(file.lines_backwards()) == b"next\n"
    file.close()


def test_lines_are_read_backwards_across_chunks(tmp_path: Path) -> None:
    path = tmp_path / "log"
    lines = [f"{number}:{'x' * (number % 700)}\n".encode() for number in range(1000)]
    path.write_bytes(b"".join(lines))
    file = AppendFile(str(path))
    assert list(file.lines_backwards()) == lines[::-1]
    file.close()
