"""Writing leaves the old or the new file, never a partial one, and no temporary file."""

import os
from pathlib import Path

import pytest

from mqproof.report import json_file, write
from tests.report.examples import REPORT


@pytest.mark.parametrize("suffix", sorted(write.RENDERERS))
def test_the_suffix_selects_the_format(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / "new" / f"report{suffix}"
    write.write_report(REPORT, path)
    assert path.read_text(encoding="utf-8") == write.RENDERERS[suffix](REPORT)


def test_an_unknown_suffix_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"report\.pdf: no report format '\.pdf', expected one of \.html"):
        write.write_report(REPORT, tmp_path / "report.pdf")
    assert list(tmp_path.iterdir()) == []


def test_a_failed_write_keeps_the_old_file_and_leaves_no_temporary_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "report.json"
    path.write_text("old")

    def full_disk(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(OSError, match="No space left"):
        write.write_text(path, "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_writing_to_a_symbolic_link_changes_its_target_and_keeps_the_link(tmp_path: Path) -> None:
    target, link = tmp_path / "real.json", tmp_path / "link.json"
    link.symlink_to(target)
    write.write_report(REPORT, link)
    assert link.is_symlink()
    assert json_file.from_json(target.read_text()) == REPORT


def test_a_device_is_not_replaced_by_a_file() -> None:
    write.write_text(Path("/dev/null"), "text")
    assert not Path("/dev/null").is_file()


def test_text_with_a_lone_surrogate_can_be_written(tmp_path: Path) -> None:
    write.write_text(tmp_path / "odd.txt", "消息 \udc80")
    assert (tmp_path / "odd.txt").read_text(encoding="utf-8") == "消息 \\udc80"
