"""Temporary files are removed at the end of their run; those of a killed run, by the next run."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from mqproof.spark_audit.runtime.scratch import scratch
from mqproof.spark_audit.runtime.session import SessionOptions

_RUNS = """
import sys, time
from pathlib import Path
from mqproof.spark_audit.runtime.scratch import scratch
with scratch(Path(sys.argv[1])) as folder:
    (folder / "spilled").mkdir()
    print(folder, flush=True)
    time.sleep(60)
"""


def test_the_next_run_removes_files_of_a_killed_run_but_not_of_a_running_one(tmp_path: Path) -> None:
    (tmp_path / "mqproof-audit-file").touch()
    (tmp_path / "mine").mkdir()
    with subprocess.Popen([sys.executable, "-c", _RUNS, str(tmp_path)], stdout=subprocess.PIPE) as other:
        try:
            assert other.stdout is not None
            left = Path(other.stdout.readline().decode().strip())
            with scratch(tmp_path) as folder:
                assert folder != left
            assert (left / "spilled").exists()
        finally:
            os.kill(other.pid, signal.SIGKILL)
    assert left.exists()
    with scratch(tmp_path) as folder:
        assert not left.exists()
        (folder / "spilled").touch()
    assert {path.name for path in tmp_path.iterdir()} == {"mqproof-audit-file", "mine"}


def test_a_folder_that_is_removed_before_it_is_locked_is_recreated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened, taken = os.open, list[Path]()

    def swept(path: Path, flags: int, **others: int) -> int:
        if not taken:
            taken.append(path)
            path.rmdir()
        return opened(path, flags, **others)

    monkeypatch.setattr(os, "open", swept)
    with scratch(tmp_path) as folder:
        assert folder.exists()
        assert folder not in taken


def test_spark_spills_into_the_temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPARK_LOCAL_DIRS", raising=False)
    given = {"spark.local.dir": str(tmp_path)}
    local, cluster = SessionOptions(conf=given), SessionOptions(master="yarn", conf=given)
    several = SessionOptions(conf={"spark.local.dir": f"{tmp_path},/other"})
    assert local.temporary == several.temporary == tmp_path
    assert cluster.temporary == SessionOptions().temporary != tmp_path
    assert local.spilling_in(tmp_path / "own").conf == {"spark.local.dir": str(tmp_path / "own")}
    assert (cluster.spilling_in(tmp_path / "own"), several.spilling_in(tmp_path)) == (cluster, several)
