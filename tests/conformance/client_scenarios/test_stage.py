"""Tests the names of one run of a scenario."""

from contextlib import ExitStack
from pathlib import Path
from typing import Any, cast

from mqproof.conformance.client_scenarios.stage import Stage
from mqproof.impl.remoting.topic_names import name_problem


def test_a_run_on_a_store_of_an_earlier_run_does_not_see_its_messages() -> None:
    nothing = cast("Any", None)
    runs = [Stage(nothing, nothing, "sql-java-5_5_0", Path(), ExitStack()) for _ in range(2)]
    assert runs[0].topic != runs[1].topic
    assert runs[0].group != runs[1].group
    assert [name_problem(name) for run in runs for name in (run.topic, run.group)] == [None] * 4
