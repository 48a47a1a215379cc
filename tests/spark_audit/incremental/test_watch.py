"""Tests the report of a batch: once, by every version's record of it."""

from pathlib import Path
from typing import Any

import pytest

from mqproof.spark_audit.incremental.watch import announce


@pytest.mark.parametrize("name", ["reported", "told"])
def test_a_state_with_the_file_of_any_version_that_records_the_report_is_not_reported_again(
    tmp_path: Path, name: str
) -> None:
    (tmp_path / name).touch()
    reported: list[Any] = []
    assert (announce(tmp_path, reported.append), reported) == (0, [])
    assert list(tmp_path.iterdir()) == [tmp_path / name]
