"""coverage.py records the lines that a suite executes."""

import pytest

from mqproof.conformance.mutation.campaign import modules
from mqproof.conformance.mutation.reach import ReachError, measure

_CHOICE = "mqproof.impl.client.producing.queue_choice"
_SUITE = "producers"


def test_reach_names_executed_lines_only() -> None:
    lines, seconds = measure(_SUITE, 2, 0)
    source = modules(("client",))[_CHOICE].read_text(encoding="utf-8").splitlines()
    returns = {at for at, line in enumerate(source, 1) if line.strip().startswith("return")}
    assert lines[_CHOICE] & returns, "no function of the module ran"
    assert returns - lines[_CHOICE], "two examples cannot reach every line"
    assert seconds > 0


def test_unknown_suite_is_no_reach() -> None:
    with pytest.raises(ReachError, match="suite nothing"):
        measure("nothing", 2, 0)
