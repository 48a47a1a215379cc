"""Tests that the usage of the process has plausible values."""

from pathlib import Path

import pytest

from mqproof.impl.runtime import process_usage as module
from mqproof.impl.runtime.process_usage import process_usage


def test_a_process_uses_time_memory_and_files() -> None:
    usage = process_usage()
    assert usage.cpu_s > 0
    assert usage.memory_bytes is not None
    assert usage.memory_bytes > 1 << 20
    assert usage.files is not None
    assert 0 < usage.files <= usage.files_max


def test_a_system_without_proc_has_no_memory_and_files(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(module, "_PROC", tmp_path)
    assert (process_usage().memory_bytes, process_usage().files) == (None, None)
