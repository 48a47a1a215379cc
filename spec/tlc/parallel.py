"""Runs several TLC jobs in parallel, as many as there are cores for their workers."""

import os
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from mqproof.spec.tlc.errors import TlcError
from mqproof.spec.tlc.run import Job, Outcome, run
from mqproof.spec.tlc.toolbox import Toolbox, find_toolbox


def run_each(
    jobs: Sequence[Job],
    toolbox: Toolbox | None = None,
    *,
    cores: int | None = None,
    on_start: Callable[[int], None] = lambda _: None,
    on_states: Callable[[int, int], None] = lambda _place, _states: None,
) -> Generator[Outcome | TlcError, None, None]:
    """Yield the outcome of each job, or the error that prevented one, in the order of the jobs.

    A job takes as many cores as it has workers. When its run begins, `on_start` receives the job's place in
    the order. While it runs, `on_states` receives the place and the distinct states so far. Both are called
    from other threads. When the caller is interrupted or closes the generator, every run is killed.

    Raises:
        TlcError: there is no Java or no TLC.
    """
    tools = toolbox or find_toolbox()
    seats = _Seats(cores or os.cpu_count() or 1)
    abandoned = threading.Event()

    def one(place: int, job: Job) -> Outcome | TlcError:
        with seats.taken(job.workers):
            on_start(place)
            try:
                return run(job, tools, abandoned, lambda states: on_states(place, states))
            except TlcError as error:
                return error

    with ThreadPoolExecutor(max_workers=seats.number) as pool:
        futures = [pool.submit(one, place, job) for place, job in enumerate(jobs)]
        try:
            for future in futures:
                yield future.result()
        finally:
            abandoned.set()
            pool.shutdown(wait=True, cancel_futures=True)


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
