"""Goal: a file that cannot be written is refused before the work, with its option and the reason."""

from pathlib import Path

import pytest

from mqproof.report.files import expect_writable, folder_not_writable, not_writable


def test_files_and_folders_that_can_be_made_are_writable(tmp_path: Path) -> None:
    assert not_writable(tmp_path / "new" / "report.json") == ""
    assert folder_not_writable(tmp_path / "a" / "b") == ""
    expect_writable(json=tmp_path / "x", draw=None)


def test_the_reason_names_the_obstacle(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert not_writable(tmp_path) == "Is a directory"
    assert not_writable(tmp_path / "file" / "x.json") == f"Not a directory: {tmp_path / 'file'}"
    assert folder_not_writable(tmp_path / "file") == f"Not a directory: {tmp_path / 'file'}"


def test_the_command_ends_with_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        expect_writable(json=tmp_path)
    assert ended.value.code == 2
    assert capsys.readouterr().err == f"mqproof: --json {tmp_path}: Is a directory\n"
