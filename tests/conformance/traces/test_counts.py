"""Counts the logs that TLC refuses in each run of `make test`.

The test of each corrupted log is in the same folder and fails if TLC accepts it. These tests count the logs,
so that none is forgotten or left to the deep profile. Accepted logs are counted in test_runs.py and
test_group_runs.py.
"""

from collections.abc import Callable, Collection
from typing import Any

from tests.conformance.traces import test_group, test_leadership, test_name_server, test_pair, test_store

CORRUPTED_MIN = 30
BY_MODEL: dict[str, tuple[Callable[..., None], Collection[Any]]] = {
    "Flush": (
        test_store.test_a_log_that_the_model_does_not_explain_is_refused_with_the_event,
        test_store.BAD,
    ),
    "Replication": (test_pair.test_a_corrupted_log_is_refused, test_pair.CORRUPTIONS),
    "Routing": (test_name_server.test_a_corrupted_log_is_refused, test_name_server.CORRUPTIONS),
    "Election": (test_group.test_a_corrupted_log_is_refused, test_group.CORRUPTIONS),
    "Replication of leader terms": (
        test_leadership.test_a_corrupted_log_is_refused_and_the_event_is_named,
        test_leadership.CORRUPTIONS,
    ),
}


def test_more_than_thirty_corrupted_logs_are_refused() -> None:
    assert sum(len(corrupted) for _, corrupted in BY_MODEL.values()) >= CORRUPTED_MIN


def test_every_corrupted_log_is_judged_in_every_run() -> None:
    for model, (judged, corrupted) in BY_MODEL.items():
        marks = {mark.name: mark for mark in getattr(judged, "pytestmark", ())}
        assert set(marks) == {"parametrize"}, f"{model}: judged under conditions"
        assert set(marks["parametrize"].args[1]) == set(corrupted), model
