"""Goal: the guards that prevent an unexplained event are found. TLC runs twice, for few states."""

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
def obstacles() -> tuple[tuple[Obstacles, ...], ...]:
    answer: Event = {"event": "answer", "message": "m1", "status": "SEND_OK"}
    twice: tuple[Event, ...] = ({"event": "flush", "length": 1}, answer, answer)
    elsewhere = (*_SYNC, {"event": "append", "message": "m2", "queue": "q0", "offset": 5})
    recovery = (*_SYNC, {"event": "recover", "length": 7})
    shutdown: tuple[Event, ...] = (
        {"event": "open", "mode": "ASYNC_FLUSH"},
        _SYNC[1],
        {"event": "dispatch", "position": 1, "queue": "q0", "offset": 0},
        {"event": "append", "message": "m2", "queue": "q0", "offset": 1},
        {"event": "shutdown", "length": 2},
    )
    unknown_status = (*_SYNC, {"event": "answer", "message": "m1", "status": "PERHAPS"})
    unexplained = [(*_SYNC, answer), (*_SYNC, *twice), elsewhere, recovery, shutdown, unknown_status]
    return nearest("TraceFlush", CONFIG, unexplained, (TLA,))


def test_a_response_before_the_fsync_of_a_synchronous_flush_is_prevented_by_may_answer(
    obstacles: tuple[tuple[Obstacles, ...], ...],
) -> None:
    assert (Guard("AnswerOk", "MayAnswer(m)"),) in obstacles[0]


def test_a_second_response_is_prevented_because_no_producer_waits(
    obstacles: tuple[tuple[Obstacles, ...], ...],
) -> None:
    assert obstacles[1] == ((Guard("AnswerOk", 'answer[m] = "waiting"'),),)


def test_a_value_that_differs_between_trace_and_model_is_named(
    obstacles: tuple[tuple[Obstacles, ...], ...],
) -> None:
    assert obstacles[2] == ((Guard("Appended", "nextOffset[Event.queue] = Event.offset"),),)


def test_if_one_guard_is_not_enough_all_preventing_guards_are_named(
    obstacles: tuple[tuple[Obstacles, ...], ...],
) -> None:
    down = Guard("RecoverLog", 'phase = "down"')
    assert (Guard("Recovered", "Event.length = Len(log)"), down) in obstacles[3]


def test_up_to_three_preventing_guards_are_named(obstacles: tuple[tuple[Obstacles, ...], ...]) -> None:
    (smallest,) = obstacles[4]
    assert [guard.action for guard in smallest] == ["Shutdown"] * 3


def test_if_dropping_guards_does_not_help_the_action_of_the_event_is_named(
    obstacles: tuple[tuple[Obstacles, ...], ...],
) -> None:
    assert obstacles[5] == ((Guard("Replied", SEVERAL),),)
