"""Packs the splits of files into tasks."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqproof.spark_audit.sources import splits
from mqproof.spark_audit.sources.splits import LogFile, Split, by_task


@given(st.lists(st.integers(1, 9)), st.integers(1, 4))
def test_splits_are_packed_into_tasks_in_order(sizes: list[int], cores: int) -> None:
    cut = [Split(LogFile(Path("a")), range(at, at + 1), at, at + 1, size) for at, size in enumerate(sizes)]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(splits, "_SPLIT_BYTES", 10)
        tasks = by_task(cut, cores)
    assert [each for task in tasks for each in task] == cut
    own = [sum(each.bytes for each in task) for task in tasks]
    assert all(size <= max(10, *sizes) for size in own)
    # Two neighbours that fit into one task share it.
    most = min(10, -(-sum(sizes) // cores))
    assert all(one + task[0].bytes > most for one, task in zip(own, tasks[1:], strict=False))
