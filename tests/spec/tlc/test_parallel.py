"""Parallel runs of TLC: the order of their results, the cores they use, and how they are stopped."""

import threading
import time
from dataclasses import replace
from typing import Any

import pytest

from mqproof.spec.tlc import parallel
from mqproof.spec.tlc.errors import Reason, TlcError
from mqproof.spec.tlc.parallel import _Seats, run_each
from mqproof.spec.tlc.run import Job, Outcome, run
from mqproof.spec.tlc.shared_java import SharedJava
from mqproof.spec.tlc.toolbox import Toolbox
from tests.spec.tlc.counter import CONFIG, DISTINCT, LIBRARIES

COUNTER = Job("Counter", CONFIG, LIBRARIES, brief=True)
LOST = Job("Lost", CONFIG, LIBRARIES, brief=True)


def test_results_have_the_order_of_the_jobs_and_a_failed_job_does_not_affect_others() -> None:
    first, second, third = run_each([COUNTER, LOST, COUNTER], cores=2)
    assert isinstance(second, TlcError)
    assert second.reason is Reason.PARSE
    assert isinstance(first, Outcome)
    assert isinstance(third, Outcome)
    assert first.distinct == third.distinct == DISTINCT


def test_many_jobs_share_a_java_and_one_without_a_verdict_runs_again_on_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started: list[SharedJava] = []
    alone: list[str] = []

    def start(tools: Toolbox, *, brief: bool) -> SharedJava:
        started.append(SharedJava(tools, brief=brief))
        return started[-1]

    def run_alone(job: Job, *arguments: Any) -> Outcome:
        alone.append(job.module)
        return run(job, *arguments)

    monkeypatch.setattr(parallel, "SharedJava", start)
    monkeypatch.setattr(parallel, "run", run_alone)
    *others, lost = run_each([*[COUNTER] * 3, LOST], cores=1)
    assert [outcome.distinct for outcome in others if isinstance(outcome, Outcome)] == [DISTINCT] * 3
    assert isinstance(lost, TlcError)
    assert len(started) == 1
    assert alone == ["Lost"]
    assert started[0]._process.returncode is not None


def test_long_jobs_run_first_in_a_java_that_ends_before_the_brief_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    events: list[str] = []

    class Recorded:
        def __init__(self, _: Toolbox, *, brief: bool) -> None:
            self.brief = brief

        def run(self, job: Job, *_: Any) -> str:
            events.append(f"brief {job.brief} in {self.brief}")
            return "outcome"

        def close(self) -> None:
            events.append(f"close {self.brief}")

    monkeypatch.setattr(parallel, "SharedJava", Recorded)
    outcomes: list[Any] = list(run_each([COUNTER, replace(COUNTER, brief=False)] * 4, cores=1))
    assert outcomes == ["outcome"] * 8
    long, brief = ["brief False in False"] * 4, ["brief True in True"] * 4
    assert events == [*long, "close False", *brief, "close True"]


def test_closing_the_results_early_starts_no_more_runs() -> None:
    started = threading.Semaphore(0)
    answers = run_each([LOST, *[COUNTER] * 9], cores=2, on_start=lambda _: started.release())
    next(answers)
    answers.close()
    count = 0
    while started.acquire(blocking=False):
        count += 1
    assert count < 10


def test_a_run_that_waits_for_both_cores_is_not_overtaken() -> None:
    seats = _Seats(2)
    order: list[str] = []
    first = seats.taken(1)
    first.__enter__()

    def start(name: str, wanted: int) -> threading.Thread:
        def body() -> None:
            with seats.taken(wanted):
                order.append(name)

        thread = threading.Thread(target=body)
        thread.start()
        deadline = time.monotonic() + 60
        while thread.is_alive() and len(seats._waiting) <= len(threads) and time.monotonic() < deadline:
            time.sleep(0.01)
        return thread

    threads: list[threading.Thread] = []
    threads.append(start("both", 2))
    threads.append(start("one", 1))
    assert order == []
    first.__exit__(None, None, None)
    for thread in threads:
        thread.join(10)
    assert order == ["both", "one"]
