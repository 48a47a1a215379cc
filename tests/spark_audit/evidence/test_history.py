"""A run on its own has no history: nothing is added to it, nothing is taken away, nothing is carried on."""

from pathlib import Path
from typing import Any

from mqproof.spark_audit.evidence.history import ALONE


def test_a_run_on_its_own_is_judged_by_its_own_log_alone() -> None:
    some: Any = object()
    nowhere = Path("/nowhere")
    assert ALONE.earlier(some, some, some) is None
    assert ALONE.amend(evidence=some, rows=some, brokers=("b",)) == some
    assert ALONE.only_new(found=some, scratch=nowhere, invariant="DELIV-1") == some
    assert ALONE.close(some, some, ("b",), nowhere, ["DELIV-1"]) == 0
    assert not nowhere.exists()
