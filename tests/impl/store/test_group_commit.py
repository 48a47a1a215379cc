"""Tests that puts of one turn of the event loop share one write, and get the same answers as single puts."""

import asyncio
import errno
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from mqproof.impl.runtime.simulated_disk import Step
from mqproof.impl.runtime.simulated_loop import run_simulated
from mqproof.impl.store.config import FlushMode
from mqproof.impl.store.dispatch import run_of
from mqproof.impl.store.group_commit import Put
from mqproof.impl.store.message_store import MessageStore
from mqproof.impl.store.results import PutResult, PutStatus
from mqproof.spec.events import Kind
from tests.impl.store.site import SMALL, Site, bodies, message

LARGE = replace(SMALL, commit_log_segment_bytes=4096, consume_queue_segment_bytes=2000, index_entries=100)


class Turn:
    """A store on a simulated loop, and its answers by the name of each message."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.answers: dict[str, PutResult] = {}

    @property
    def store(self) -> MessageStore:
        return self.site.store

    def put(self, *names: str, queue_id: int = 0, wait: bool = True) -> None:
        for name in names:
            self.store.put_soon([message(name, queue_id)], self._noted(name), wait=wait)

    def statuses(self) -> dict[str, PutStatus]:
        return {name: result.status for name, result in self.answers.items()}

    def _noted(self, name: str) -> Callable[[list[PutResult]], None]:
        def done(results: list[PutResult]) -> None:
            assert name not in self.answers, "answered once"
            (self.answers[name],) = results

        return done


def play(scenario: Callable[[Turn], Awaitable[None]], site: Site) -> Turn:
    site.open()
    turn = Turn(site)

    async def main() -> None:
        await scenario(turn)

    run_simulated(main())
    return turn


async def ended() -> None:
    """Run the turn of the loop, including callbacks started at its end."""
    for _ in range(5):
        await asyncio.sleep(0)


def test_puts_of_one_turn_are_one_write_to_the_log_and_one_to_each_queue() -> None:
    site = Site(LARGE)
    written: list[str] = []

    def note(step: Step) -> None:
        if step.kind == "write":
            written.append(step.path.split("/")[1])

    async def scenario(turn: Turn) -> None:
        site.simulated_disk.on_step = note
        turn.put("a", "b")
        turn.put("c", queue_id=1)
        turn.put("d")
        assert (written, turn.answers, turn.store.log_end) == ([], {}, 0), "nothing is answered yet"
        await ended()

    turn = play(scenario, site)
    assert written.count("commitlog") == 1
    assert written.count("consumequeue") == 2
    assert set(turn.statuses().values()) == {PutStatus.PUT_OK}
    assert [turn.answers[name].queue_offset for name in "abcd"] == [0, 1, 0, 2]
    assert (bodies(turn.store), bodies(turn.store, 1)) == (["a", "b", "d"], ["c"])
    ends = [turn.answers[name].commit_offset for name in "abcd"]
    assert ends == sorted(ends)


@pytest.mark.parametrize("fails", ["commitlog", "consumequeue"])
def test_no_put_is_answered_with_success_when_the_write_fails(fails: str) -> None:
    site = Site(LARGE)

    def full(step: Step) -> None:
        if step.kind in ("write", "create") and fails in step.path:
            raise OSError(errno.ENOSPC, "No space left on device", step.path)

    async def scenario(turn: Turn) -> None:
        site.simulated_disk.on_step = full
        turn.put("a", "b")
        await ended()
        turn.put("late")

    turn = play(scenario, site)
    stored = [name for name, status in turn.statuses().items() if status is PutStatus.PUT_OK]
    assert set(turn.answers) == {"a", "b", "late"}
    assert turn.answers["late"].status is PutStatus.SERVICE_NOT_AVAILABLE
    assert "No space left" in turn.store.failure
    assert bodies(turn.store) == []
    site.simulated_disk.on_step = None
    reopened = bodies(site.reopen_after_process_crash())
    assert set(stored) <= set(reopened)
    assert stored == ([] if fails == "commitlog" else reopened)


def test_puts_of_one_turn_are_stored_in_the_order_of_arrival() -> None:
    async def scenario(turn: Turn) -> None:
        turn.put("a")
        result = await turn.store.put(message("b"))
        assert result.queue_offset == 1
        turn.put("c")
        await ended()

    turn = play(scenario, Site(LARGE))
    assert bodies(turn.store) == ["a", "b", "c"]
    assert len(turn.answers) == 2


@pytest.mark.parametrize("mode", list(FlushMode))
def test_a_turn_that_fills_segments_logs_each_append_before_its_dispatch(mode: FlushMode) -> None:
    names = [f"m{number:02d}" for number in range(20)]

    async def scenario(turn: Turn) -> None:
        turn.put(*names)
        await turn.store.flush_log()  # positions in the log by now
        await ended()
        await turn.store.flush_log()

    turn = play(scenario, Site(replace(SMALL, flush_mode=mode)))
    assert bodies(turn.store) == names
    reported = [(event.kind, event.msg_id) for event in turn.site.events]
    places = {each: number for number, each in enumerate(reported)}
    assert all(places[Kind.APPEND, name] < places[Kind.DISPATCH, name] for name in names)
    flushed = [event.commit_offset or 0 for event in turn.site.events if event.kind is Kind.FLUSH]
    ends = [event.commit_offset or 0 for event in turn.site.events if event.kind is Kind.APPEND]
    assert max(ends) < max(flushed) == turn.store.log_end


def test_with_sync_flush_puts_that_do_not_wait_are_answered_before_the_flush_and_others_after() -> None:
    async def scenario(turn: Turn) -> None:
        turn.put("a", "b")
        turn.put("c", wait=False)
        await ended()
        assert turn.statuses() == {"c": PutStatus.PUT_OK}
        assert bodies(turn.store) == []
        await turn.store.flush_log()
        await ended()

    turn = play(scenario, Site(replace(LARGE, flush_mode=FlushMode.SYNC_FLUSH)))
    assert list(turn.statuses()) == ["c", "a", "b"]
    assert bodies(turn.store) == ["a", "b", "c"]


def test_a_failed_or_late_flush_is_reported_to_each_put_of_the_turn() -> None:
    def broken(step: Step) -> None:
        if step.kind == "sync":
            raise OSError(errno.EIO, "Input/output error", step.path)

    async def scenario(turn: Turn) -> None:
        turn.put("a", "b")
        await asyncio.sleep(10)  # of the simulated clock, in which no flush happens
        assert set(turn.statuses().values()) == {PutStatus.FLUSH_DISK_TIMEOUT}
        turn.put("c", "d")
        await ended()
        turn.site.simulated_disk.on_step = broken
        await turn.store.flush_log()
        await ended()

    turn = play(scenario, Site(replace(LARGE, flush_mode=FlushMode.SYNC_FLUSH)))
    assert [turn.answers[name].status for name in "abcd"] == [PutStatus.FLUSH_DISK_TIMEOUT] * 4
    assert "Input/output error" in turn.answers["c"].reason


def test_a_store_that_stops_in_that_turn_answers_all_puts_and_a_killed_one_none() -> None:
    async def stops(turn: Turn) -> None:
        turn.put("a")
        await turn.store.stop()
        assert turn.statuses() == {"a": PutStatus.PUT_OK}
        turn.put("late")
        assert turn.statuses()["late"] is PutStatus.SERVICE_NOT_AVAILABLE

    async def is_killed(turn: Turn) -> None:
        turn.put("a")
        turn.store.kill()
        await ended()
        assert (turn.answers, turn.store.log_end) == ({}, 0)

    site = Site(LARGE)
    play(stops, site)
    assert bodies(site.open()) == ["a"]
    play(is_killed, Site(LARGE))


def test_a_put_and_its_result_cannot_be_changed() -> None:
    """The messages of a put share one result, and dispatch reads later what was appended."""
    site = Site(LARGE)
    site.open()
    (appended,) = site.append("a")
    put = Put(run_of(appended), ("127.0.0.1", 1), True, lambda _: None)
    for one in (appended, put, put.run, PutResult(PutStatus.PUT_OK)):
        with pytest.raises(AttributeError, match="immutable"):
            setattr(one, type(one).__struct_fields__[0], None)
