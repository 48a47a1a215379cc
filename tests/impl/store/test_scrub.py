"""Tests the scrub: it finds the damage of records that no client reads, within a bound on its speed.

Source: docs/reference/protocol/storing.md, "Damaged files".
"""

import asyncio
from dataclasses import replace

import pytest

from mqproof.conformance.hosts.simulated import SLAVE
from mqproof.conformance.subjects.pair import TOPIC, Pair, play
from mqproof.impl.replication.record_repair import INTERVAL_S
from mqproof.impl.runtime.immediate import result_of
from mqproof.impl.runtime.runtime import inline
from mqproof.impl.runtime.simulated_loop import SimulatedLoop, run_simulated
from mqproof.impl.store.damage import DamageKind, Outcome
from mqproof.impl.store.message_store import MessageStore
from mqproof.impl.store.scrub import FIRST_PASS_MS, STEP_MS, Scrub
from tests.impl.replication.site import CONFIG, filled
from tests.impl.replication.site import store as made

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
    return steps


def test_a_pass_compares_every_record_once() -> None:
    store = filled(250)
    scrub = _scrub(store, 1 << 30)
    assert result_of(scrub.step()) == STEP_MS
    _passes(scrub)
    assert scrub.records == 250
    assert len(store.damage) == 0
    _passes(scrub, 2)
    assert scrub.records == 500


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


def test_an_error_of_the_disk_is_reported_and_the_pass_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    store = filled(10)
    scrub = _scrub(store, 1 << 30)

    def fail(*_: object) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(store._repair, "unit", fail)
    _passes(scrub)
    assert store.damage.counts == {SKIPPED: 10}


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
