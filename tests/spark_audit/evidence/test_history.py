"""A single run has no history: no rows are added or removed, and no state is carried."""

from pathlib import Path
from typing import Any

from mqproof.spark_audit.evidence.history import NO_HISTORY


def test_a_single_run_has_no_history() -> None:
    some: Any = object()
    nowhere = Path("/nowhere")
    assert NO_HISTORY.earlier(some, some, some) is None
    assert NO_HISTORY.amend(evidence=some, rows=some, brokers=("b",)) == some
    assert NO_HISTORY.only_new(found=some, scratch=nowhere, invariant="DELIV-1") == some
    assert NO_HISTORY.close(some, some, ("b",), nowhere, ["DELIV-1"]) == 0
    assert not nowhere.exists()
