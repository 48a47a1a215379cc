"""Applies the rules to one history in several processes, which share its memory.

Each process is a fork, so that no history is copied or sent. A process judges all rules of one module,
because these share what they derive from the history, and then those of the next module that is left.
"""

import os
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing.context import ForkContext
from typing import Any, Final

from mqproof.conformance.engine.finding import Finding
from mqproof.conformance.history.record import Record
from mqproof.conformance.history.rules import RULES, Rule

OPERATIONS_MIN: Final = 20_000
"""With fewer operations, the processes take longer to start than they save."""

Timed = dict[str, tuple[Finding, float]]
"""Maps the id of a rule to its finding, and the seconds that it took."""

_history: Record | None = None
"""The history that the forked processes judge."""


class KilledProcessError(Exception):
    """A process that applied rules was killed. The message says what to do."""


def cores() -> int:
    """Return the number of processes that can judge at once on this machine."""
    if sys.platform != "linux":
        return 1
    return len(os.sched_getaffinity(0))


@contextmanager
def forks(number: int) -> Iterator[Executor]:
    """Yield processes that share the memory of this one.

    Raises:
        KilledProcessError: one was killed, as it is if there is no memory left.
    """
    try:
        with ProcessPoolExecutor(number, ForkContext()) as pool:
            yield pool
    except BrokenProcessPool:
        raise KilledProcessError(
            "a process that applied the rules was killed, probably because there was no memory left;"
            " use more --parts or fewer --processes"
        ) from None


@contextmanager
def mapped(processes: int) -> Iterator[Callable[..., Any]]:
    """Yield a `map` whose calls run in so many forks, or in this process if it is the only one."""
    if processes < 2:
        yield map
    else:
        with forks(processes) as pool:
            yield pool.map


def findings(history: Record, processes: int) -> Timed:
    """Return the findings of all rules, judged in this process or in so many others.

    Raises:
        KilledProcessError: one of the others was killed.
    """
    global _history  # a fork inherits it; an argument would be sent
    groups = _by_module()
    if processes < 2 or history.operations < OPERATIONS_MIN:
        return {id_: found for rules in groups for id_, found in _judge(history, rules).items()}
    _prepare(history)
    _history = history
    try:
        with forks(min(processes, len(groups))) as pool:
            parts = list(pool.map(_judge_group, range(len(groups))))
    finally:
        _history = None
    return {id_: found for part in parts for id_, found in part.items()}


def _by_module() -> list[list[Rule]]:
    """Return the rules of each module, those of the largest modules first."""
    groups: dict[str, list[Rule]] = {}
    for rule in RULES:
        groups.setdefault(rule.check.__module__, []).append(rule)
    return sorted(groups.values(), key=len, reverse=True)


def _prepare(history: Record) -> None:
    """Derive what the rules of several modules need, once instead of in each process."""
    for name in ("by_id", "acked", "seen", "known", "crashes", "ends"):
        getattr(history, name)


def _judge_group(number: int) -> Timed:
    assert _history is not None, "the process was not forked by `findings`"
    return _judge(_history, _by_module()[number])


def _judge(history: Record, rules: list[Rule]) -> Timed:
    found: Timed = {}
    for rule in rules:
        began = time.perf_counter()
        found[rule.id] = rule.check(history), time.perf_counter() - began
    return found
