"""Code without an end is interrupted by its processor time or its real time, also inside an event loop."""

import asyncio
import signal
import time

import pytest

from mqproof.conformance.engine.targets import EndlessError
from mqproof.conformance.engine.time_bounds import (
    BudgetInterrupt,
    bounded,
    budget,
    check,
    do_not_interrupt,
    is_used_up,
)


def _spin() -> None:
    until = time.process_time() + 20
    while time.process_time() < until:
        pass


def test_code_without_an_end_is_ended() -> None:
    began = time.process_time()
    with pytest.raises(EndlessError, match="used up its processor time"), bounded(0.1):
        _spin()
    assert time.process_time() - began < 10


def test_callback_of_an_event_loop_is_ended() -> None:
    async def main() -> None:
        asyncio.get_running_loop().call_soon(_spin)
        await asyncio.sleep(60)

    with pytest.raises(EndlessError), bounded(0.1):
        asyncio.run(main())


def test_waiting_costs_no_processor_time() -> None:
    with bounded(0.1):
        time.sleep(0.3)


def test_call_that_does_not_return_is_ended() -> None:
    with pytest.raises(EndlessError, match="did not return"), bounded(10, real_seconds=0.1):
        time.sleep(600)


def test_bound_ends_with_its_block() -> None:
    with bounded(0.1):
        pass
    until = time.process_time() + 0.3
    while time.process_time() < until:
        pass


def test_the_handlers_of_before_are_put_back() -> None:
    before = signal.getsignal(signal.SIGVTALRM), signal.getsignal(signal.SIGALRM)
    with bounded(10):
        assert signal.getsignal(signal.SIGVTALRM) != before[0]
    assert (signal.getsignal(signal.SIGVTALRM), signal.getsignal(signal.SIGALRM)) == before


def test_the_budget_of_a_suite_ends_a_call_that_does_not_return() -> None:
    with pytest.raises(BudgetInterrupt), budget(0.1), bounded(100, 100):
        time.sleep(600)


def test_the_budget_goes_on_after_an_example() -> None:
    with budget(0.2) as suite:
        with bounded(100, 100):
            assert not suite.is_used
        with pytest.raises(BudgetInterrupt):
            time.sleep(600)
        assert suite.is_used


def test_a_budget_ends_with_its_block() -> None:
    before = signal.getsignal(signal.SIGALRM)
    with budget(0.1):
        pass
    time.sleep(0.2)
    check()
    assert signal.getsignal(signal.SIGALRM) == before


def test_a_suite_may_ask_for_the_end_of_its_budget_instead() -> None:
    with budget(0.05):
        do_not_interrupt()
        with bounded(100, 100):
            time.sleep(0.1)
        assert is_used_up()
    assert not is_used_up()


def test_another_thread_finds_the_end_of_the_budget_when_it_checks() -> None:
    with budget(1000) as suite:
        suite.ends_at = 0
        with pytest.raises(BudgetInterrupt):
            check()
