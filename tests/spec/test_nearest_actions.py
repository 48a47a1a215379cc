"""Finds the guards that prevent an event that no action explains. TLC runs twice, for few states."""

from pathlib import Path

import pytest

from mqproof.spec.nearest_actions import SEVERAL, Guard, Obstacles, nearest
from mqproof.spec.tlc.trace_check import Event

TLA = Path(__file__).parents[2] / "spec" / "tla"
CONFIG = """CONSTANTS
  Messages = {"m1", "m2"}
  Queues = {"q0"}
  FlushModes = {"SYNC_FLUSH", "ASYNC_FLUSH"}
"""
_SYNC: tuple[Event, ...] = (
    {"event": "open", "mode": "SYNC_FLUSH"},
    {"event": "append", "message": "m1", "queue": "q0", "offset": 0},
)


@pytest.fixture(scope="module")
def found() -> tuple[tuple[Obstacles, ...], ...]:
    answer: Event = {"event": "answer", "message": "m1", "status": "SEND_OK"}
    twice: tuple[Event, ...] = ({"event": "flush", "length": 1}, answer, answer)
    elsewhere = (*_SYNC, {"event": "append", "message": "m2", "queue": "q0", "offset": 5})
    never_down = (*_SYNC, {"event": "recover", "length": 7})
    unready: tuple[Event, ...] = (
        {"event": "open", "mode": "ASYNC_FLUSH"},
        _SYNC[1],
        {"event": "dispatch", "position": 1, "queue": "q0", "offset": 0},
        {"event": "append", "message": "m2", "queue": "q0", "offset": 1},
        {"event": "shutdown", "length": 2},
    )
    nonsense = (*_SYNC, {"event": "answer", "message": "m1", "status": "PERHAPS"})
    refused = [(*_SYNC, answer), (*_SYNC, *twice), elsewhere, never_down, unready, nonsense]
    return nearest("TraceFlush", CONFIG, refused, (TLA,))


def test_an_answer_before_the_fsync_misses_the_rule_of_synchronous_flushes(
    found: tuple[tuple[Obstacles, ...], ...],
) -> None:
    assert (Guard("AnswerOk", "MayAnswer(m)"),) in found[0]


def test_a_second_answer_lacks_a_waiting_producer(found: tuple[tuple[Obstacles, ...], ...]) -> None:
    assert found[1] == ((Guard("AnswerOk", 'answer[m] = "waiting"'),),)


def test_a_difference_between_trace_and_model_is_named(
    found: tuple[tuple[Obstacles, ...], ...],
) -> None:
    assert found[2] == ((Guard("Appended", "nextOffset[Event.queue] = Event.offset"),),)


def test_where_one_guard_less_does_not_do_all_that_stand_in_the_way_are_named(
    found: tuple[tuple[Obstacles, ...], ...],
) -> None:
    down = Guard("RecoverLog", 'phase = "down"')
    assert (Guard("Recovered", "Event.length = Len(log)"), down) in found[3]


def test_up_to_three_are_named(found: tuple[tuple[Obstacles, ...], ...]) -> None:
    (obstacles,) = found[4]
    assert [guard.action for guard in obstacles] == ["Shutdown"] * 3


def test_where_no_conditions_less_help_the_actions_of_such_events_are_named(
    found: tuple[tuple[Obstacles, ...], ...],
) -> None:
    assert found[5] == ((Guard("Replied", SEVERAL),),)
