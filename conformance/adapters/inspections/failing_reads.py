"""A disk that fails to read for a while: what waits is tried again after a pause, and delivered once.

See docs/reference/protocol/timers.md, transactions.md and retries-and-delays.md.
"""

import asyncio
import errno
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from mqproof.conformance.adapters.inspections.disk_log import queue_of
from mqproof.conformance.adapters.inspections.site import Inspection, Site
from mqproof.conformance.adapters.inspections.traffic import make_topic, send
from mqproof.conformance.hosts.simulated import MASTER
from mqproof.conformance.wire import chapters

_TOPIC: Final = "t"
_HALF: Final = "RMQ_SYS_TRANS_HALF_TOPIC"
_FAILURES: Final = 6
_READERS: Final = 2
"""How many tasks read at once."""
_SOURCES: Final = {
    "timer": {"TIMER_DELAY_SEC": "12", "UNIQ_KEY": "timer"},
    "delay": {"DELAY": "3"},
    "half": {"TRAN_MSG": "true", "PGROUP": "p", "UNIQ_KEY": "half"},
}
"""The properties of a message that waits, by its body."""


@dataclass(slots=True)
class _Failures:
    """The next reads of the log that fail, and when they failed."""

    site: Site
    left: int = _FAILURES
    at_s: list[float] = field(default_factory=list)

    def on_read(self, path: str) -> None:
        if self.left and "/commitlog/" in path:
            self.left -= 1
            self.at_s.append(self.site.cluster.now_s)
            raise OSError(errno.EIO, "the disk failed")


@contextmanager
def _failing(site: Site) -> Iterator[_Failures]:
    """Let the next reads of the log fail."""
    disk, failures = site.cluster.machines[MASTER].disk, _Failures(site)
    disk.on_read = failures.on_read
    try:
        yield failures
    finally:
        disk.on_read = None


async def failing_reads(site: Site) -> None:
    """Let reads fail at the start, and when a message is due, for each kind of message that waits."""
    site.rule = chapters.TIMERS
    await make_topic(site, _TOPIC)
    sent: list[bytes] = []
    for body, of in _SOURCES.items():
        for is_at_start in (True, False):
            await send(site, _TOPIC, body, f=4 if body == "half" else 0, of=of)
            sent += [body.encode()] if body != "half" else []
            await site.cluster.stop(MASTER)
            if is_at_start:
                failures = await _failures_at_start(site)
            else:
                await site.cluster.start(MASTER)
                await asyncio.sleep(5)
                with _failing(site) as failures:
                    await asyncio.sleep(25)
            _compare(site, f"{body}, at the start: {is_at_start}", failures)
            await asyncio.sleep(20)
            found = [each.body for each in queue_of(site, _TOPIC)]
            site.compare(f"the messages after failures for {body}", sent, found)
    copies = [each for each in queue_of(site, _HALF) if "TRAN_PREPARED_QUEUE_OFFSET" in each.properties]
    site.compare("the checks", 6, len(copies))


async def _failures_at_start(site: Site) -> _Failures:
    disk, failures = site.cluster.machines[MASTER].disk, _Failures(site)

    def fail(_: str) -> None:
        disk.on_read = failures.on_read

    site.cluster.on_recovered = fail
    await site.cluster.start(MASTER)
    await asyncio.sleep(_FAILURES + 1)
    disk.on_read = None
    site.cluster.on_recovered = lambda _: None
    return failures


def _compare(site: Site, what: str, failures: _Failures) -> None:
    """Each attempt that failed is followed by a pause of at least a second."""
    times = sorted(set(failures.at_s))
    pauses = [round(later - earlier, 1) for earlier, later in pairwise(times)]
    site.compare(f"whether each failure is followed by a pause: {what}, {pauses}", True,
                 len(pauses) > 0 and all(pause >= 1 for pause in pauses))  # fmt: skip
    most = max(map(failures.at_s.count, times), default=0)
    site.compare(f"whether few reads fail at once: {what}, {most}", True, most <= _READERS)


FAILING_READS: Final = Inspection(
    "failing reads", failing_reads, {"transaction_check_interval_ms": 10_000, "transaction_timeout_ms": 1000}
)
