"""Tests the flush of the log alone: when it is wanted, what counts as durable, and which waits it ends.

Source: docs/reference/protocol/storing.md, "Flush".
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from mqproof.impl.remoting.message import Message
from mqproof.impl.runtime.event_log import EventLog
from mqproof.impl.runtime.simulated_disk import SimulatedDisk
from mqproof.impl.runtime.simulated_loop import ManualClock, SimulatedLoop, run_simulated
from mqproof.impl.store.files import record
from mqproof.impl.store.files.commit_log import CommitLog
from mqproof.impl.store.files.segments import SegmentedFile
from mqproof.impl.store.flush import LogFlusher
from mqproof.spec.events import Event, Kind

T = TypeVar("T")
SIZE = len(record.encode(Message("T", b"body")))


class _Site:
    """A log and its flusher, whose syncs take 10 ms or fail."""

    def __init__(self) -> None:
        self.log = CommitLog(SegmentedFile(SimulatedDisk(), "log", 4096))
        self.events: list[Event] = []
        self.calls: list[str] = []
        """The calls of the flusher and the answers, in order."""
        self.fails = False
        self.flusher = LogFlusher(
            self.log,
            self._offload,
            EventLog(self.events.append, "broker", ManualClock()),
            lambda: self.calls.append(f"flushed {self.log.flushed}"),
            lambda error: self.calls.append(f"error {error}"),
        )

    async def _offload(self, function: Callable[[], T]) -> T:
        await asyncio.sleep(0.01)
        if self.fails:
            raise OSError("no sync")
        return function()

    def append(self, now_ms: int = 7) -> int:
        self.log.stage([record.encode(Message("T", b"body"))], 0, now_ms)
        self.log.write_staged()
        return self.log.end

    def wait(self, name: str, end: int, timeout_ms: int = 1000) -> None:
        self.flusher.when_durable(end, timeout_ms, lambda durable: self.calls.append(f"{name} {durable}"))


def _play(scenario: Callable[[_Site], Awaitable[None]]) -> _Site:
    async def main() -> _Site:
        site = _Site()
        await scenario(site)
        return site

    return run_simulated(main(), SimulatedLoop())


def test_a_flush_covers_what_was_in_the_log_when_its_sync_began() -> None:
    async def scenario(site: _Site) -> None:
        site.append(5)
        flush = asyncio.create_task(site.flusher.flush())
        await asyncio.sleep(0.005)
        site.append(6)
        await flush
        assert (site.log.flushed, site.log.flushed_timestamp_ms) == (SIZE, 5)
        assert site.flusher.unflushed_bytes == SIZE
        await site.flusher.flush()
        assert (site.log.flushed, site.log.flushed_timestamp_ms) == (2 * SIZE, 6)

    site = _play(scenario)
    assert site.calls == [f"flushed {SIZE}", f"flushed {2 * SIZE}"]
    assert [(event.kind, event.commit_offset, event.attrs["file"]) for event in site.events] == [
        (Kind.FLUSH, end, "log") for end in (SIZE, 2 * SIZE)
    ]


def test_nothing_is_synced_when_everything_is_durable() -> None:
    async def scenario(site: _Site) -> None:
        site.append()
        await site.flusher.flush()
        site.flusher.want(SIZE)
        await site.flusher.flush()
        assert not site.flusher.wanted.is_set()

    site = _play(scenario)
    assert len(site.calls) == len(site.events) == 1


def test_a_flush_is_wanted_until_the_wanted_end_is_durable() -> None:
    async def scenario(site: _Site) -> None:
        first, second = site.append(), site.append()
        site.flusher.want(second)
        site.flusher.want(first)
        flush = asyncio.create_task(site.flusher.flush())
        await asyncio.sleep(0.005)
        site.flusher.want(site.append())
        await flush
        assert site.flusher.wanted.is_set(), "the third record is not durable"
        await site.flusher.flush()
        assert not site.flusher.wanted.is_set()

    _play(scenario)


def test_waits_end_after_the_flush_that_makes_their_record_durable() -> None:
    async def scenario(site: _Site) -> None:
        site.wait("a", site.append())
        site.wait("b", site.append())
        assert site.flusher.wanted.is_set()
        flush = asyncio.create_task(site.flusher.flush())
        await asyncio.sleep(0.005)
        site.wait("c", site.append())
        await flush
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        site.wait("d", 2 * SIZE)
        site.calls.append("again")
        await site.flusher.flush()
        await asyncio.sleep(2)

    assert _play(scenario).calls == [
        f"flushed {2 * SIZE}",
        "a True",
        "b True",
        "d True",
        "again",
        f"flushed {3 * SIZE}",
        "c True",
    ]


def test_a_wait_ends_at_its_timeout_once() -> None:
    async def scenario(site: _Site) -> None:
        site.wait("a", site.append(), timeout_ms=20)
        await asyncio.sleep(0.019)
        assert site.calls == []
        await asyncio.sleep(0.002)
        assert site.calls == ["a False"]
        await site.flusher.flush()
        await asyncio.sleep(2)

    assert _play(scenario).calls == ["a False", f"flushed {SIZE}"]


def test_after_a_failed_sync_no_record_becomes_durable_and_no_flush_is_wanted() -> None:
    async def scenario(site: _Site) -> None:
        durable = site.append()
        await site.flusher.flush()
        site.fails = True
        site.wait("a", site.append())
        flush = asyncio.create_task(site.flusher.flush())
        await asyncio.sleep(0.005)
        site.wait("b", site.append())
        await flush
        await asyncio.sleep(0)
        assert site.log.flushed == durable
        assert not site.flusher.wanted.is_set()
        site.fails = False
        site.wait("c", site.append())
        site.wait("d", durable)
        await site.flusher.flush()
        await asyncio.sleep(0)
        assert not site.flusher.wanted.is_set()
        assert site.log.flushed == durable

    assert _play(scenario).calls == [
        f"flushed {SIZE}",
        "error no sync",
        "a False",
        "b False",
        "d True",
        "c False",
    ]


def test_a_forgotten_wait_never_ends() -> None:
    async def scenario(site: _Site) -> None:
        site.wait("a", site.append())
        site.flusher.forget_waits()
        await site.flusher.flush()
        await asyncio.sleep(2)

    assert _play(scenario).calls == [f"flushed {SIZE}"]
