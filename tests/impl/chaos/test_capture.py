"""A capture is read as it was written; an incomplete one has no END record."""

from io import BytesIO

import pytest

from mqproof.impl.chaos.capture import CaptureError, CaptureWriter, Entry, Recorded, read_capture


class File(BytesIO):
    """A file that can be read after it was closed."""

    def close(self) -> None:
        self.data = self.getvalue()
        super().close()


def writer(file: File, bytes_max: int = 1 << 20) -> CaptureWriter:
    times = iter(range(100))
    return CaptureWriter(file, lambda: next(times), bytes_max)


def entries(data: bytes) -> list[Entry]:
    return list(read_capture(BytesIO(data), "c"))


def test_records_are_read_in_order() -> None:
    file = File()
    capture = writer(file)
    capture.write(Recorded.TO_SERVER, 3, b"abc")
    capture.write(Recorded.CLOSED, 3, b"")
    capture.close()
    assert entries(file.data) == [
        Entry(Recorded.TO_SERVER, 3, 0, b"abc"),
        Entry(Recorded.CLOSED, 3, 1, b""),
        Entry(Recorded.END, 0, 2, b""),
    ]
    capture.write(Recorded.CLOSED, 4, b"")  # a late timer of a proxy that has stopped


def test_above_the_limit_nothing_more_is_recorded() -> None:
    file = File()
    capture = writer(file, bytes_max=60)
    for _ in range(5):
        capture.write(Recorded.TO_SERVER, 3, b"x" * 20)
    assert not capture.is_complete
    capture.close()
    assert [entry.kind for entry in entries(file.data)] == [Recorded.TO_SERVER]


def test_a_full_disk_ends_the_record() -> None:
    class Full(File):
        def write(self, _: object, /) -> int:
            raise OSError("no space left")

    capture = writer(File())
    capture._file = Full()
    capture.write(Recorded.TO_SERVER, 3, b"abc")
    assert not capture.is_complete


def test_a_torn_record_at_the_end_is_left_out() -> None:
    file = File()
    capture = writer(file)
    capture.write(Recorded.TO_SERVER, 3, b"abc")
    capture.close()
    assert entries(file.data[:-20]) == []
    assert [entry.kind for entry in entries(file.data[:-3])] == [Recorded.TO_SERVER]


@pytest.mark.parametrize("data", [b"", b"something else", b"MQCHAOS1" + b"\xff" * 40])
def test_another_file_is_an_error_that_names_it(data: bytes) -> None:
    with pytest.raises(CaptureError, match=r"^c: n"):
        entries(data)
