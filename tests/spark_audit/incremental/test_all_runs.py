"""The totals of all runs so far, from a state."""

from pathlib import Path

import msgspec

from mqproof.spark_audit.incremental.all_runs import rows_missing
from mqproof.spark_audit.incremental.carried_state import Manifest
from mqproof.spark_audit.incremental.state_folder import SCHEMA_VERSION


def test_unreadable_rows_are_counted_by_a_run_with_a_state(tmp_path: Path) -> None:
    kept = tmp_path / "unreadable" / "batch-000001"
    kept.mkdir(parents=True)
    (kept / "part-0.json").write_text('{"line":"a"}\n{"line":"b"}\n')
    state = tmp_path / "night-000001"
    state.mkdir()
    for holes, missing in ((0, 2), (7, 7)):
        manifest = Manifest(SCHEMA_VERSION, 1, 0, holes)
        (state / "manifest.json").write_bytes(msgspec.json.encode(manifest))
        assert rows_missing(state) == missing
