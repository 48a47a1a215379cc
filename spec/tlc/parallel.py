"""Runs several TLC jobs in parallel, as many as there are cores for their workers."""

import os
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Final

from mqproof.spec.tlc.errors import Reason, TlcError
from mqproof.spec.tlc.run import Job, Outcome, run
from mqproof.spec.tlc.shared_java import JavaEndedError, SharedJava, can_share, is_shareable
from mqproof.spec.tlc.toolbox import Toolbox, find_toolbox

_SHARED_MIN: Final = 4
"""The number of jobs from which a Java that runs them one after another takes less time than one for each."""


def run_each(
    jobs: Sequence[Job],
    toolbox: Toolbox | None = None,
    *,
    cores: int | None = None,
    on_start: Callable[[int], None] = lambda _: None,
    on_states: Callable[[int, int], None] = lambda _place, _states: None,
) -> Generator[Outcome | TlcError, None, None]:
    """Yield the outcome of each job, or the error that prevented one, in the order of the jobs.

    Long jobs begin first, and many jobs share a Java. A job takes as many cores as it has workers. When its
    run begins, `on_start` receives the job's place in the order. While it runs, `on_states` receives the
    place and the distinct states so far. Both are called from other threads. When the caller is interrupted
    or closes the generator, every run is killed.

    Raises:
        TlcError: there is no Java or no TLC.
    """
    tools = toolbox or find_toolbox()
    seats = _Seats(cores or os.cpu_count() or 1)
    abandoned = threading.Event()
    javas = _Javas(tools)
    sharing = sum(map(is_shareable, jobs)) >= _SHARED_MIN and can_share(tools)

    def one(place: int, job: Job) -> Outcome | TlcError:
        with seats.taken(job.workers):
            on_start(place)

            def report(states: int) -> None:
                on_states(place, states)

            try:
                if sharing and is_shareable(job) and (found := javas.run(job, abandoned, report)) is not None:
                    return found
                return run(job, tools, abandoned, report)
            except TlcError as error:
                return error

    longest_first = sorted(enumerate(jobs), key=lambda numbered: numbered[1].brief)
    with ThreadPoolExecutor(max_workers=seats.number) as pool:
        futures = {place: pool.submit(one, place, job) for place, job in longest_first}
        try:
            for place in range(len(jobs)):
                yield futures[place].result()
        finally:
            abandoned.set()
            pool.shutdown(wait=True, cancel_futures=True)
            javas.close()


class _Javas:
    """The shared Javas that run no job now. There are never more than jobs that run at the same time."""

    def __init__(self, tools: Toolbox) -> None:
        self._tools = tools
        self._idle: list[SharedJava] = []  # list's methods are atomic

    def run(self, job: Job, abandoned: threading.Event, on_states: Callable[[int], None]) -> Outcome | None:
        """Return the outcome in a shared Java. None if it gave no verdict: the job needs a Java of its own.

        Raises:
            TlcError: the time is over.
        """
        try:
            java = self._idle_or_new(job.brief)
        except JavaEndedError:
            return None
        try:
            outcome = java.run(job, abandoned, on_states)
        except BaseException as error:
            java.close()
            timed_out = isinstance(error, TlcError) and error.reason is Reason.TIMEOUT
            if timed_out or not isinstance(error, (TlcError, JavaEndedError)):
                raise
            return None
        self._idle.append(java)
        return outcome

    def _idle_or_new(self, brief: bool) -> SharedJava:
        """Return a Java for brief jobs, or for long ones. The long ones come first, and end their Java."""
        with suppress(IndexError):
            java = self._idle.pop()
            if java.brief == brief:
                return java
            java.close()
        return SharedJava(self._tools, brief=brief)

    def close(self) -> None:
        while self._idle:
            self._idle.pop().close()


class _Seats:
    """Counts free cores. A job that needs several waits for them; jobs keep their order."""

    def __init__(self, number: int) -> None:
        self.number = number
        self._free = number
        self._changed = threading.Condition()
        self._waiting: list[object] = []

    @contextmanager
    def taken(self, wanted: int) -> Iterator[None]:
        seats = min(wanted, self.number)
        turn = object()
        with self._changed:
            self._waiting.append(turn)
            self._changed.wait_for(lambda: self._waiting[0] is turn and self._free >= seats)
            self._waiting.pop(0)
            self._free -= seats
            self._changed.notify_all()
        try:
            yield
        finally:
            with self._changed:
                self._free += seats
                self._changed.notify_all()
