"""A capture is read as it was written; an incomplete one has no END record."""

from pathlib import Path

import pytest

from mqproof.impl.chaos.capture import CaptureError, CaptureWriter, Entry, Recorded, read_capture


def writer(path: Path, bytes_max: int = 1 << 20) -> CaptureWriter:
    times = iter(range(100))
    return CaptureWriter(path, lambda: next(times), bytes_max)


def test_records_are_read_in_order(tmp_path: Path) -> None:
    capture = writer(tmp_path / "c")
    capture.write(Recorded.TO_SERVER, 3, b"abc")
    capture.write(Recorded.CLOSED, 3, b"")
    capture.close()
    assert list(read_capture(tmp_path / "c")) == [
        Entry(Recorded.TO_SERVER, 3, 0, b"abc"),
        Entry(Recorded.CLOSED, 3, 1, b""),
        Entry(Recorded.END, 0, 2, b""),
    ]
    capture.write(Recorded.CLOSED, 4, b"")  # a late timer of a proxy that has stopped


def test_only_the_owner_can_read_a_capture(tmp_path: Path) -> None:
    writer(tmp_path / "c").close()
    assert (tmp_path / "c").stat().st_mode & 0o777 == 0o600


def test_above_the_limit_nothing_more_is_recorded(tmp_path: Path) -> None:
    capture = writer(tmp_path / "c", bytes_max=60)
    for _ in range(5):
        capture.write(Recorded.TO_SERVER, 3, b"x" * 20)
    assert not capture.is_complete
    capture.close()
    assert [entry.kind for entry in read_capture(tmp_path / "c")] == [Recorded.TO_SERVER]


def test_a_torn_record_at_the_end_is_left_out(tmp_path: Path) -> None:
    capture = writer(tmp_path / "c")
    capture.write(Recorded.TO_SERVER, 3, b"abc")
    capture.close()
    data = (tmp_path / "c").read_bytes()
    (tmp_path / "c").write_bytes(data[:-20])
    assert [entry.kind for entry in read_capture(tmp_path / "c")] == []
    (tmp_path / "c").write_bytes(data[:-3])
    assert [entry.kind for entry in read_capture(tmp_path / "c")] == [Recorded.TO_SERVER]


@pytest.mark.parametrize("data", [b"", b"something else", b"MQCHAOS1" + b"\xff" * 40])
def test_another_file_is_an_error_that_names_it(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "c").write_bytes(data)
    with pytest.raises(CaptureError, match=f"{tmp_path / 'c'}: n"):
        list(read_capture(tmp_path / "c"))
