"""Goal: an unwritable output file is reported before the work starts, with its option and the reason."""

from pathlib import Path

import pytest

from mqproof.report.files import expect_writable, folder_not_writable, not_writable


def test_files_and_folders_that_can_be_created_are_writable(tmp_path: Path) -> None:
    assert not_writable(tmp_path / "new" / "report.json") == ""
    assert folder_not_writable(tmp_path / "a" / "b") == ""
    expect_writable(json=tmp_path / "x", draw=None)


def test_the_reason_names_the_path_that_is_not_writable(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert not_writable(tmp_path) == "Is a directory"
    assert not_writable(tmp_path / "file" / "x.json") == f"Not a directory: {tmp_path / 'file'}"
    assert folder_not_writable(tmp_path / "file") == f"Not a directory: {tmp_path / 'file'}"


def test_a_command_with_an_unwritable_output_exits_2_with_a_one_line_message(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        expect_writable(json=tmp_path)
    assert ended.value.code == 2
    assert capsys.readouterr().err == f"mqproof: --json {tmp_path}: Is a directory\n"
