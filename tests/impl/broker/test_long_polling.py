"""Tests long polls: the events that wake a held pull, and its timeout."""

import asyncio
import weakref
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from mqproof.impl.broker import long_polling
from mqproof.impl.broker.long_polling import PullHolds, _one_by_one
from mqproof.impl.remoting.budget import Percentages
from mqproof.impl.runtime.simulated_loop import run_simulated


async def waited_s(
    holds: PullHolds, offset: int, tags: frozenset[int] = frozenset(), owner: "Peer | None" = None
) -> float:
    loop = asyncio.get_running_loop()
    began = loop.time()
    await holds.hold("T", 0, offset, tags, 15.0, owner)
    return loop.time() - began


def test_only_a_message_of_the_queue_at_the_offset_or_later_wakes_a_hold() -> None:
    async def main() -> float:
        holds = PullHolds()
        waiting = asyncio.create_task(waited_s(holds, 5))
        await asyncio.sleep(1)
        holds.arrived("T", 0, 5, 0)  # the message at 4
        holds.arrived("T", 1, 9, 0)
        holds.arrived("U", 0, 9, 0)
        await asyncio.sleep(1)
        holds.arrived("T", 0, 6, 0)  # the message at 5
        return await waiting

    assert run_simulated(main()) == 2


def test_only_a_wanted_tag_wakes_a_hold() -> None:
    async def main() -> float:
        holds = PullHolds()
        waiting = asyncio.create_task(waited_s(holds, 0, frozenset({7})))
        await asyncio.sleep(1)
        holds.arrived("T", 0, 1, 8)
        await asyncio.sleep(1)
        holds.arrived("T", 0, 2, 7)
        return await waiting

    assert run_simulated(main()) == 2


def test_a_message_in_the_same_turn_of_the_loop_is_not_missed() -> None:
    async def main() -> float:
        holds = PullHolds()
        began = asyncio.get_running_loop().time()
        woken = holds.hold("T", 0, 0, (), 15.0)
        holds.arrived("T", 0, 1, 0)
        await woken
        return asyncio.get_running_loop().time() - began

    assert run_simulated(main()) == 0


def test_a_check_wakes_holds_with_a_message_at_their_offset_whatever_its_tag() -> None:
    async def main() -> list[float]:
        holds = PullHolds()
        waiting = [asyncio.create_task(waited_s(holds, offset, frozenset({7}))) for offset in (4, 5)]
        await asyncio.sleep(1)
        holds.check(lambda topic, queue_id: 5 if (topic, queue_id) == ("T", 0) else 0)
        return await asyncio.gather(*waiting)

    assert run_simulated(main()) == [1, 15]


def test_a_disconnected_client_is_no_longer_held() -> None:
    async def main() -> tuple[list[float], int]:
        holds, one, other = PullHolds(), Peer(), Peer()
        waiting = [asyncio.create_task(waited_s(holds, 0, owner=owner)) for owner in (one, one, other)]
        await asyncio.sleep(1)
        holds.drop(one)
        holds.drop(Peer())
        left = len(holds)
        return await asyncio.gather(*waiting), left

    assert run_simulated(main()) == ([1, 1, 15], 1)


def test_a_cancelled_wait_is_released_after_its_time() -> None:
    async def main() -> int:
        holds = PullHolds()
        waiting = asyncio.create_task(waited_s(holds, 0))
        await asyncio.sleep(1)
        waiting.cancel()
        await asyncio.sleep(15)
        return len(holds)

    assert run_simulated(main()) == 0


def test_a_hold_ends_after_its_time() -> None:
    assert run_simulated(waited_s(PullHolds(), 0)) == 15


def test_closing_wakes_all_holds_and_accepts_no_more() -> None:
    async def main() -> tuple[float, float]:
        holds = PullHolds()
        waiting = asyncio.create_task(waited_s(holds, 0))
        await asyncio.sleep(1)
        holds.close()
        return await waiting, await waited_s(holds, 0)

    assert run_simulated(main()) == (1, 0)


class Peer:
    """The owner of held pulls."""

    remote = ("10.0.0.1", 1)


def test_the_number_of_holds_is_limited_and_ended_holds_do_not_count() -> None:
    async def main() -> list[str | None]:
        holds, owner = PullHolds(holds_max=2), Peer()
        waiting = [asyncio.create_task(waited_s(holds, 0, owner=owner)) for _ in range(2)]
        await asyncio.sleep(1)
        full = [holds.budget.refusal(owner)]
        holds.arrived("T", 0, 1, 0)
        await asyncio.gather(*waiting)
        return [*full, holds.budget.refusal(owner)]

    assert run_simulated(main()) == ["2 held pulls of this connection, at most 2 allowed", None]


def time_ends(holds: PullHolds, owner: Peer) -> None:
    (end,) = holds._by_end
    holds._end(end)


def arrive(holds: PullHolds, owner: Peer) -> None:
    holds.arrived("T", 0, 1, 7)


def check(holds: PullHolds, owner: Peer) -> None:
    holds.check(lambda *_: 1)


def disconnect(holds: PullHolds, owner: Peer) -> None:
    holds.drop(owner)


@pytest.mark.parametrize("start", [arrive, check, disconnect, time_ends])
@pytest.mark.parametrize("tags", [frozenset(), frozenset({7, 8})], ids=["all", "tags"])
def test_many_pulls_are_woken_over_several_turns_of_the_loop(
    start: Callable[[PullHolds, Peer], None], tags: frozenset[int]
) -> None:
    async def main() -> list[int]:
        holds, owner = PullHolds(), Peer()
        held = [holds.hold("T", 0, 0, tags, 15.0, owner) for _ in range(300)]
        start(holds, owner)
        counts = [0]
        while counts[-1] < 300 and len(counts) < 100:
            counts.append(sum(one.done() for one in held))
            await asyncio.sleep(0)
        return counts

    counts = run_simulated(main())
    assert counts[-1] == 300
    assert max(later - before for before, later in pairwise(counts)) <= 16


def test_a_pull_may_end_at_the_time_of_many_that_are_being_woken() -> None:
    async def main() -> int:
        holds, owner = PullHolds(), Peer()
        held = [holds.hold("T", 0, 0, (), 15.0, owner) for _ in range(40)]
        await held[0]  # the others are woken in later turns
        held.append(holds.hold("T", 0, 0, (), 0.0, owner))
        await asyncio.gather(*held)
        return len(holds)

    assert run_simulated(main()) == 0


def test_an_error_in_a_check_does_not_end_long_polling() -> None:
    def broken(topic: str, queue_id: int) -> int:
        raise OSError(f"no queue {queue_id} of {topic}")

    async def main() -> float:
        holds = PullHolds()
        waiting = asyncio.create_task(waited_s(holds, 0))
        await asyncio.sleep(1)
        with pytest.raises(OSError, match="no queue 0 of T"):
            holds.check(broken)
        await asyncio.sleep(1)
        holds.arrived("T", 0, 1, 0)
        return await waiting

    assert run_simulated(main()) == 2


def test_pulls_that_do_not_match_are_looked_at_over_several_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_polling, "_SEEN_PER_TURN", 10)

    async def main() -> dict[str, int]:
        holds = PullHolds()
        for _ in range(35):
            holds.hold("T", 0, 0, frozenset({8}), 15.0)
        last = holds.hold("T", 0, 0, frozenset({7}), 15.0)
        other = holds.hold("U", 0, 0, (), 15.0)
        holds.arrived("T", 0, 1, 7)
        holds.arrived("U", 0, 1, 0)  # it does not wait for the pulls of the other queue
        turns: dict[str, int] = {}
        for turn in range(10):
            turns |= {
                name: turn for name, one in (("T", last), ("U", other)) if one.done() and name not in turns
            }
            await asyncio.sleep(0)
        assert len(holds) == 35
        return turns

    turns = run_simulated(main())
    assert turns["U"] < turns["T"]
    assert turns["T"] >= 3


def test_messages_that_arrive_during_a_pass_are_compared_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_polling, "_SEEN_PER_TURN", 2)
    monkeypatch.setattr(long_polling, "_CODES_MAX", 3)

    async def main() -> tuple[list[bool], bool]:
        holds = PullHolds()
        early = [holds.hold("T", 0, 0, frozenset({tag}), 15.0) for tag in range(1, 5)]
        for number in range(1, 4):
            holds.arrived("T", 0, number, number)
        late = holds.hold("T", 0, 3, frozenset({2}), 15.0)  # its tag arrived before its offset
        for _ in range(10):
            await asyncio.sleep(0)
        return [one.done() for one in early], late.done()

    assert run_simulated(main()) == ([True, True, True, False], False)


def test_the_pulls_of_a_pass_are_freed_one_by_one() -> None:
    class Thing:
        pass

    holds: Any = {Thing(): None for _ in range(3)}
    alive = [weakref.ref(thing) for thing in holds]
    left = _one_by_one(holds)
    holds.clear()
    for gone in range(4):
        assert [thing() is None for thing in alive].count(True) == gone
        next(left, None)


def test_a_thousand_tag_codes_are_remembered_during_a_pass_and_with_more_all_pulls_are_woken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(long_polling, "_SEEN_PER_TURN", 2)

    async def main(codes: int) -> bool:
        holds = PullHolds()
        held = [holds.hold("T", 0, 0, frozenset({-1}), 15.0) for _ in range(5)]
        for code in range(codes + 1):  # the first one begins the pass
            holds.arrived("T", 0, 1, code)
        for _ in range(20):
            await asyncio.sleep(0)
        assert len({one.done() for one in held}) == 1
        return held[0].done()

    assert [run_simulated(main(codes)) for codes in (1000, 1001)] == [False, True]


def test_a_hold_that_has_ended_leaves_nothing_behind() -> None:
    async def main() -> None:
        holds, owner = PullHolds(), Peer()
        loop = asyncio.get_running_loop()
        for _ in range(2):
            holds.hold("T", 0, 0, (), 15.0, owner)
        holds.hold("T", 0, 0, (), 30.0, owner)
        holds.arrived("T", 0, 1, 0)
        await asyncio.sleep(0)
        tables = (holds._by_queue, holds._by_owner, holds._by_end, holds._arrivals, holds._work)
        assert [len(each) for each in tables] == [0] * 5
        assert (len(holds), holds.budget.used) == (0, 0)
        assert all(timer.cancelled() for timer in loop._scheduled)  # type: ignore[attr-defined]

    run_simulated(main())


@pytest.mark.parametrize(("count", "is_passed"), [(16, False), (17, True)])
def test_a_check_compares_at_most_sixteen_pulls_of_a_queue_at_once(
    count: int, is_passed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With more, a pass over several turns compares them."""
    passes: list[object] = []
    monkeypatch.setattr(PullHolds, "_arrive", lambda _, queue, *__: passes.append(queue))

    async def main() -> None:
        holds = PullHolds()
        for _ in range(count):
            holds.hold("T", 0, 7, (), 15.0)
        holds.check(lambda *_: 7)

    run_simulated(main())
    assert passes == [("T", 0)] * is_passed


def test_sixteen_pulls_are_woken_in_each_turn() -> None:
    async def main() -> list[int]:
        holds = PullHolds()
        held = [holds.hold("T", 0, 0, (), 15.0) for _ in range(40)]
        holds.arrived("T", 0, 1, 0)
        counts = []
        for _ in range(4):
            counts.append(sum(one.done() for one in held))
            await asyncio.sleep(0)
        return counts

    assert run_simulated(main()) == [16, 32, 40, 40]


@pytest.mark.parametrize(("others", "turns"), [(1999, 0), (2000, 1)])
def test_two_thousand_pulls_are_looked_at_in_each_turn(others: int, turns: int) -> None:
    async def main() -> int:
        holds = PullHolds()
        for _ in range(others):
            holds.hold("T", 0, 0, frozenset({8}), 15.0)
        last = holds.hold("T", 0, 0, frozenset({7}), 15.0)
        holds.arrived("T", 0, 1, 7)
        waited = 0
        while not last.done() and waited < 9:
            waited += 1
            await asyncio.sleep(0)
        return waited

    assert run_simulated(main()) == turns


def test_a_turn_that_ends_the_work_for_one_queue_goes_on_with_the_next() -> None:
    async def main() -> tuple[int, bool]:
        holds = PullHolds()
        many = [holds.hold("T", 0, 0, (), 15.0) for _ in range(17)]
        other = holds.hold("U", 0, 0, (), 15.0)
        holds.arrived("T", 0, 1, 0)
        holds.arrived("U", 0, 1, 0)
        await asyncio.sleep(0)
        return sum(one.done() for one in many), other.done()

    assert run_simulated(main()) == (17, True)


def test_after_closing_no_more_queues_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_polling, "_SEEN_PER_TURN", 1)
    asked: list[int] = []

    def offset_next(_: str, queue_id: int) -> int:
        asked.append(queue_id)
        return 0

    async def main() -> None:
        holds = PullHolds()
        for queue_id in range(4):
            holds.hold("T", queue_id, 0, (), 15.0)
        holds.check(offset_next)
        await asyncio.sleep(0)
        assert asked == [0, 1]
        holds.close()
        for _ in range(4):
            await asyncio.sleep(0)

    run_simulated(main())
    assert asked == [0, 1]


@pytest.mark.parametrize(
    ("timeout_s", "ends_s"),
    [(15.0, 15.0), (15.000004, 15.0), (15.00004, 15.01), (15.001, 15.01), (15.01, 15.01), (15.011, 15.02)],
)
def test_a_hold_ends_at_the_next_hundredth_of_a_second(timeout_s: float, ends_s: float) -> None:
    """It is not early, except by an error of floating-point numbers."""

    async def main() -> float:
        await PullHolds().hold("T", 0, 0, (), timeout_s)
        return asyncio.get_running_loop().time()

    assert run_simulated(main()) == pytest.approx(ends_s, abs=1e-6)


def test_the_holds_of_one_connection_and_of_one_address_are_a_share_of_all() -> None:
    limits = PullHolds(1_000_000, Percentages(address=10, connection=1)).budget.limits
    assert (limits.total, limits.address, limits.connection) == (1_000_000, 100_000, 10_000)


def test_a_second_check_during_a_pass_over_an_empty_queue_wakes_no_pull(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(long_polling, "_SEEN_PER_TURN", 2)

    async def main() -> int:
        holds = PullHolds()
        for _ in range(17):
            holds.hold("T", 0, 0, (), 15.0)
        for _ in range(2):
            holds.check(lambda *_: 0)
        for _ in range(40):
            await asyncio.sleep(0)
        return len(holds)

    assert run_simulated(main()) == 17


def test_a_pull_that_is_woken_for_two_reasons_ends_once() -> None:
    async def main() -> tuple[int, int]:
        holds, owner = PullHolds(), Peer()
        held = [holds.hold("T", 0, 0, (), 15.0, owner) for _ in range(40)]
        holds.arrived("T", 0, 1, 0)
        holds.drop(owner)
        await asyncio.gather(*held)
        await asyncio.sleep(1)
        return len(holds), holds.budget.used

    assert run_simulated(main()) == (0, 0)


@pytest.mark.parametrize(("offset", "is_woken"), [(1, True), (2, False)])
def test_a_wanted_tag_wakes_only_with_a_message_at_the_offset_or_later(
    offset: int, is_woken: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(long_polling, "_SEEN_PER_TURN", 1)

    async def main() -> bool:
        holds = PullHolds()
        for _ in range(3):
            holds.hold("T", 0, 0, frozenset({9}), 15.0)
        late = holds.hold("T", 0, offset, frozenset({2}), 15.0)
        for number in (1, 2, 3):  # the first one begins a pass; the message at 1 has the wanted tag
            holds.arrived("T", 0, number, number)
        for _ in range(20):
            await asyncio.sleep(0)
        return late.done()

    assert run_simulated(main()) is is_woken
