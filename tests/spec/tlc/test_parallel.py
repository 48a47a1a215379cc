"""Parallel runs of TLC: the order of the answers, the cores they use, and their end."""

import threading
import time

from mqproof.spec.tlc.errors import Reason, TlcError
from mqproof.spec.tlc.parallel import _Seats, run_each
from mqproof.spec.tlc.run import Job, Outcome
from tests.spec.tlc.counter import CONFIG, DISTINCT, LIBRARIES

COUNTER = Job("Counter", CONFIG, LIBRARIES)
LOST = Job("Lost", CONFIG, LIBRARIES)


def test_answers_come_in_the_order_of_the_jobs_and_an_error_is_the_answer_of_its_job_alone() -> None:
    first, second, third = run_each([COUNTER, LOST, COUNTER], cores=2)
    assert isinstance(second, TlcError)
    assert second.reason is Reason.PARSE
    assert isinstance(first, Outcome)
    assert isinstance(third, Outcome)
    assert first.distinct == third.distinct == DISTINCT


def test_a_caller_that_stops_leaves_no_run_behind() -> None:
    started = threading.Semaphore(0)
    answers = run_each([LOST, *[COUNTER] * 50], cores=2, on_start=lambda _: started.release())
    next(answers)
    answers.close()
    begun = 0
    while started.acquire(blocking=False):
        begun += 1
    assert begun < 51


def test_no_run_overtakes_one_that_waits_for_both_cores() -> None:
    seats = _Seats(2)
    order: list[str] = []
    first = seats.taken(1)
    first.__enter__()

    def sit(name: str, wanted: int) -> threading.Thread:
        def body() -> None:
            with seats.taken(wanted):
                order.append(name)

        thread = threading.Thread(target=body)
        thread.start()
        until = time.monotonic() + 60
        while thread.is_alive() and len(seats._waiting) <= len(threads) and time.monotonic() < until:
            time.sleep(0.01)
        return thread

    threads: list[threading.Thread] = []
    threads.append(sit("both", 2))
    threads.append(sit("one", 1))
    assert order == []
    first.__exit__(None, None, None)
    for thread in threads:
        thread.join(10)
    assert order == ["both", "one"]
