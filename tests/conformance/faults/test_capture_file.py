"""The file of a capture is private, replaces an older one, and is read as it was written."""

from pathlib import Path

from mqproof.conformance.faults.capture_file import entries_of, new_capture
from mqproof.impl.chaos.capture import Recorded


def test_only_the_owner_can_read_a_capture(tmp_path: Path) -> None:
    new_capture(tmp_path / "c").close()
    assert (tmp_path / "c").stat().st_mode & 0o777 == 0o600


def test_a_new_capture_replaces_the_old_one_and_its_times_do_not_go_back(tmp_path: Path) -> None:
    for payload in (b"first", b"second"):
        capture = new_capture(tmp_path / "c")
        for _ in range(3):
            capture.write(Recorded.TO_SERVER, 1, payload)
        capture.close()
    found = list(entries_of(tmp_path / "c"))
    assert [entry.payload for entry in found] == [b"second"] * 3 + [b""]
    assert [entry.time_ns for entry in found] == sorted(entry.time_ns for entry in found)
