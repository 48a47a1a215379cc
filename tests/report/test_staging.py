"""The files of a killed process are reused; the files of a running process are not touched."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from mqproof.report.staging import file_beside, folder_beside, try_place

_UNFINISHED_FOLDER_SCRIPT = """
import sys, time
from pathlib import Path
from mqproof.report.staging import folder_beside
with folder_beside(Path(sys.argv[1])) as made:
    (made / "half").touch()
    print(made, flush=True)
    time.sleep(60)
"""


def test_the_temporary_folder_of_a_process_is_reused_only_after_the_process_was_killed(
    tmp_path: Path,
) -> None:
    place = tmp_path / "out"
    with subprocess.Popen(
        [sys.executable, "-c", _UNFINISHED_FOLDER_SCRIPT, str(place)], stdout=subprocess.PIPE, text=True
    ) as other:
        try:
            assert other.stdout is not None
            first = Path(other.stdout.readline().strip())
            with folder_beside(place) as made:
                assert made != first
                assert list(made.iterdir()) == []
            assert (first / "half").exists()
        finally:
            os.kill(other.pid, signal.SIGKILL)
    assert list(tmp_path.iterdir()) == [first]
    with folder_beside(place) as made:
        assert (made, list(made.iterdir())) == (first, [])
        (made / "whole").touch()
        made.rename(place)
    assert [path.name for path in tmp_path.rglob("*")] == ["out", "whole"]


def test_an_unfinished_file_or_folder_is_removed(tmp_path: Path) -> None:
    with file_beside(tmp_path / "a") as made:
        made.write_text("half")
    with folder_beside(tmp_path / "a") as made:
        (made / "half").mkdir()
    assert list(tmp_path.iterdir()) == []


def test_trying_a_writable_path_leaves_no_files(tmp_path: Path) -> None:
    try_place(tmp_path / "missing" / "out")
    assert list(tmp_path.iterdir()) == []


def test_the_error_for_an_unwritable_path_names_the_path(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for place in (tmp_path / "file" / "out", Path("/proc/out")):
        with pytest.raises(OSError, match=": ") as tried:
            try_place(place)
        with pytest.raises(OSError, match=": ") as raised, folder_beside(place):
            pass
        assert (tried.value.filename, raised.value.filename) == (str(place), str(place))
