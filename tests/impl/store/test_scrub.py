"""Tests the scrub: it finds the damage of records that no client reads, within a bound on its speed.

Source: docs/reference/protocol/storing.md, "Damaged files".
"""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, TypeVar

import pytest

from mqproof.conformance.hosts.simulated import SLAVE
from mqproof.conformance.subjects.pair import TOPIC, Pair, play
from mqproof.impl.replication.record_repair import INTERVAL_S
from mqproof.impl.runtime.immediate import result_of
from mqproof.impl.runtime.runtime import inline
from mqproof.impl.runtime.simulated_loop import SimulatedLoop, run_simulated
from mqproof.impl.store.damage import DamageKind, DamageReport, Outcome
from mqproof.impl.store.files.consume_queue import Unit
from mqproof.impl.store.message_store import MessageStore
from mqproof.impl.store.scrub import FIRST_PASS_MS, STEP_MS, Scrub
from tests.impl.replication.site import CONFIG, filled, message
from tests.impl.replication.site import store as made

T = TypeVar("T")

LOG = "/store/commitlog/00000000000000000000"
SKIPPED = DamageKind.RECORD, Outcome.SKIPPED
REPAIRED = DamageKind.RECORD, Outcome.REPAIRED


def _scrub(store: MessageStore, bytes_per_s: int) -> Scrub:
    config = replace(store.config, scrub_bytes_per_s=bytes_per_s)
    return Scrub(config, store._queues, store._log, store._repair, store.damage, inline)


def _passes(scrub: Scrub, count: int = 1) -> int:
    """Run whole passes; return the number of steps."""
    steps = 0
    while scrub.passes < count:
        result_of(scrub.step())
        steps += 1
        assert steps < 10_000, "the pass does not end"
    return steps


def test_a_pass_compares_every_record_once_100_at_a_time(caplog: pytest.LogCaptureFixture) -> None:
    store = filled(250)
    scrub = _scrub(store, 1 << 30)
    seen = []
    with caplog.at_level("INFO"):
        for _ in range(5):
            pause_ms = result_of(scrub.step())
            seen.append((pause_ms, scrub.records, scrub.passes))
    day_ms = 24 * 3_600_000
    assert seen == [(50, 100, 0), (50, 200, 0), (50, 250, 0), (day_ms, 250, 1), (50, 350, 1)]
    assert len(store.damage) == 0
    _passes(scrub, 2)
    assert scrub.records == 500
    assert caplog.messages == ["scrub: pass 1 is complete, 250 records since the start"]


def test_records_are_read_in_another_thread_before_they_are_compared() -> None:
    """The event loop would wait for the disk."""
    store = filled(3)
    offloaded: list[str] = []

    async def offload(function: Callable[[], T]) -> T:
        reads: list[str] = []
        store._runtime.disk.on_read = reads.append  # type: ignore[attr-defined]
        result = function()
        store._runtime.disk.on_read = None  # type: ignore[attr-defined]
        offloaded.extend(reads)
        return result

    scrub = Scrub(store.config, store._queues, store._log, store._repair, store.damage, offload)
    result_of(scrub.step())
    assert (scrub.records, offloaded) == (3, [LOG] * 3)


@pytest.mark.parametrize("body_bytes", [21, 22])
def test_a_step_reads_its_share_of_the_bytes_and_the_next_ones_pay_for_more(body_bytes: int) -> None:
    """At 40 bytes a second, a step may read 2. It reads a whole record, and then none for a while."""
    store = filled(2, size=body_bytes)
    size = store.log_end // 2
    scrub = _scrub(store, 40)
    steps = 0
    while scrub.records < 2:
        result_of(scrub.step())
        steps += 1
    assert (steps, scrub.passes) == (1 + size // 2, 0)


def test_queues_are_compared_in_order(caplog: pytest.LogCaptureFixture) -> None:
    store = made()
    for queue_id in (1, 0, 2):
        at = store.append(message(queue_id, queue_id=queue_id)).commit_offset
        store._log.segments.write(at + 90, b"?")
    store.dispatch()
    _passes(_scrub(store, 1 << 30))
    lines = [line for line in caplog.messages if line.startswith("damaged record")]
    assert ["queue 0" in lines[0], "queue 1" in lines[1], "queue 2" in lines[2]] == [True, True, True]


def test_the_bytes_of_a_second_are_bounded() -> None:
    store = filled(200)
    scrub = _scrub(store, 4000)
    steps = _passes(scrub)
    seconds = steps * STEP_MS / 1000
    assert store.log_end / seconds <= 4000 * 1.1
    assert scrub.records == 200


@pytest.mark.parametrize("number", [0, 7, 99])
def test_a_damaged_record_is_reported_and_counted(number: int, caplog: pytest.LogCaptureFixture) -> None:
    store = filled(100)
    (unit,) = store._queues.find("T", 0).units(number, 1)  # type: ignore[union-attr]
    store._log.segments.write(unit.commit_offset + 90, b"?")
    scrub = _scrub(store, 1 << 30)
    with caplog.at_level("WARNING"):
        _passes(scrub, 2)
    assert store.damage.counts[SKIPPED] == 1
    (line,) = [each for each in caplog.messages if "damaged record" in each]
    assert f"commit offset {unit.commit_offset} (topic T, queue 0, offset {number})" in line
    assert [each.queue_offset for each in store.lost_records()] == [number]


def test_an_error_of_the_disk_is_reported_and_the_pass_goes_on(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    store = filled(10)
    scrub = _scrub(store, 1 << 30)

    def fail(*_: object) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(store._repair, "unit", fail)
    _passes(scrub)
    assert store.damage.counts == {SKIPPED: 10}
    assert caplog.messages[0] == (
        f"damaged record at {LOG}, commit offset 0 (topic T, queue 0, offset 0):"
        " [Errno 5] Input/output error: skipped"
    )


def test_an_idle_record_of_a_slave_is_repaired_from_its_master() -> None:
    async def scenario(pair: Pair) -> None:
        await pair.followed()
        for number in range(3):
            await pair.send(f"m{number}")
        await pair.followed()
        store = pair.slave.store
        (unit,) = store._queues.find(TOPIC, 0).units(1, 1)  # type: ignore[union-attr]
        pair.machines[SLAVE].disk.damage(LOG, unit.commit_offset + 90, b"?")
        await asyncio.sleep(FIRST_PASS_MS / 1000 + 2 * INTERVAL_S)
        assert store.scrub.passes == 1
        assert (store.damage.counts[SKIPPED], store.damage.counts[REPAIRED]) == (1, 1)

    play(scenario)


@pytest.mark.parametrize("enabled", [False, True])
def test_it_runs_only_if_it_is_enabled(enabled: bool) -> None:
    async def main() -> int:
        one = made(config=replace(CONFIG, scrub_enabled=enabled))
        await one.start()
        await asyncio.sleep(FIRST_PASS_MS / 1000 + 1)
        one.kill()
        return one.scrub.passes

    assert run_simulated(main(), SimulatedLoop()) == enabled


@pytest.mark.parametrize(("after_ms", "records"), [(59_999, 0), (60_001, 3)])
def test_the_first_pass_begins_a_minute_after_the_start(after_ms: int, records: int) -> None:
    async def main() -> int:
        one = filled(3)
        await one.start()
        await asyncio.sleep(after_ms / 1000)
        one.kill()
        return one.scrub.records

    assert run_simulated(main(), SimulatedLoop()) == records


# The order and the bounds of the steps.


class _Queue:
    """A queue of a store in which each record has 100 bytes, unless `sizes` says otherwise."""

    def __init__(self, topic: str, queue_id: int, end: int, first: int = 0) -> None:
        self.key = topic, queue_id
        self.first, self.end = first, end
        self.sizes: dict[int, int] = {}

    def units(self, offset: int, count: int) -> list[Unit]:
        chosen = range(offset, min(offset + count, self.end))
        return [Unit(1000 * number, self.sizes.get(number, 100), 0) for number in chosen]


class _Store:
    """The parts of a store that a scrub uses; it records which records are read ahead, and compared."""

    record_bytes_max = 1000

    def __init__(self, *queues: _Queue) -> None:
        self.queues = {queue.key: queue for queue in queues}
        self.compared: list[tuple[str, int, int]] = []
        self.ahead: list[tuple[int, int]] = []
        self.on_read_ahead: Callable[[], None] = lambda: None

    def __iter__(self) -> Iterator[_Queue]:
        return iter(self.queues.values())

    def find(self, topic: str, queue_id: int) -> _Queue | None:
        return self.queues.get((topic, queue_id))

    def read_record(self, commit_offset: int, size: int) -> None:
        self.ahead.append((commit_offset, size))
        self.on_read_ahead()

    def unit(self, queue: _Queue, offset: int) -> None:
        self.compared.append((*queue.key, offset))

    def scrub(self, bytes_per_s: int = 1 << 30) -> Scrub:
        config = replace(CONFIG, scrub_bytes_per_s=bytes_per_s, scrub_interval_ms=77)
        part: Any = self
        return Scrub(config, part, part, part, DamageReport(), inline)


def _steps(scrub: Scrub, count: int) -> list[int]:
    """Run so many steps; return how many records were compared after each."""
    compared = []
    for _ in range(count):
        result_of(scrub.step())
        compared.append(scrub.records)
    return compared


@pytest.mark.parametrize(
    ("bytes_per_s", "compared"),
    [
        (2000, [1, 2, 3, 4]),
        (2020, [2, 3, 4, 5]),
        (2019, [1, 2, 3, 4]),
        (1980, [1, 2, 3, 4]),
        (1000, [1, 1, 2, 2]),
        (980, [1, 1, 2, 2]),
        (999, [1, 1, 2, 2]),
        (4000, [2, 4, 6, 8]),
        (4020, [3, 5, 7, 9]),
        (1, [1, 1, 1, 1]),
    ],
)
def test_a_step_compares_records_while_bytes_of_its_50_ms_are_left(
    bytes_per_s: int, compared: list[int]
) -> None:
    scrub = _Store(_Queue("T", 0, 20)).scrub(bytes_per_s)
    assert _steps(scrub, 4) == compared


def test_bytes_that_a_step_does_not_use_are_not_saved() -> None:
    store = _Store(_Queue("T", 0, 1), _Queue("U", 0, 20))
    assert _steps(store.scrub(4000), 4) == [1, 1, 3, 5], "the second step leaves the first queue"


def test_a_step_compares_at_most_100_records() -> None:
    assert _steps(_Store(_Queue("T", 0, 150)).scrub(), 2) == [100, 150]


@pytest.mark.parametrize(("size", "compared"), [(1 << 30, [1, 11]), (-(1 << 30), [11, 20])])
def test_a_damaged_size_counts_as_at_most_the_largest_record(size: int, compared: list[int]) -> None:
    queue = _Queue("T", 0, 20)
    queue.sizes = {0: size}
    assert _steps(_Store(queue).scrub(20_000), 2) == compared


def test_a_pass_visits_all_queues_in_order_and_the_next_one_begins_again() -> None:
    store = _Store(_Queue("U", 0, 1), _Queue("T", 1, 2), _Queue("T", 0, 2, first=1))
    scrub = store.scrub()
    waits = [result_of(scrub.step()) for _ in range(6)]
    assert store.compared == [("T", 0, 1), ("T", 1, 0), ("T", 1, 1), ("U", 0, 0)]
    assert waits == [STEP_MS] * 5 + [77]
    assert (scrub.passes, scrub.records) == (1, 4)
    store.compared.clear()
    _passes(scrub, 2)
    assert store.compared == [("T", 0, 1), ("T", 1, 0), ("T", 1, 1), ("U", 0, 0)]


def test_an_empty_store_is_one_pass_for_each_step(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO"):
        assert result_of(_Store().scrub().step()) == 77
    assert caplog.messages == ["scrub: pass 1 is complete, 0 records since the start"]


def test_a_deleted_queue_is_left_out() -> None:
    store = _Store(_Queue("T", 0, 2), _Queue("U", 0, 2))
    scrub = store.scrub()
    result_of(scrub.step())
    del store.queues["T", 0]
    _passes(scrub)
    assert store.compared == [("T", 0, 0), ("T", 0, 1), ("U", 0, 0), ("U", 0, 1)]


def test_records_that_expire_meanwhile_are_not_compared() -> None:
    queue = _Queue("T", 0, 5)
    store = _Store(queue)

    def expire() -> None:
        queue.first, queue.end = 2, 4

    store.on_read_ahead = expire
    _passes(store.scrub())
    assert store.ahead == [(1000 * number, 100) for number in range(5)]
    assert store.compared == [("T", 0, 2), ("T", 0, 3)]


def test_an_error_while_reading_ahead_does_not_end_the_pass() -> None:
    store = _Store(_Queue("T", 0, 3))

    def fail() -> None:
        raise OSError(5, "Input/output error")

    store.on_read_ahead = fail
    _passes(store.scrub())
    assert store.compared == [("T", 0, 0), ("T", 0, 1), ("T", 0, 2)]
