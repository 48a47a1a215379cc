"""Tests every possible disk image of small stores, and a crash at every step of recovery itself.

Goal: whatever a crash leaves, recovery yields a prefix of the appended records that has all durable ones. It
rebuilds the same queues, even when recovery itself is interrupted. Method: exhaustive where the images can be
counted, drawn at random where they cannot.
"""

import random
from dataclasses import replace
from itertools import islice

import pytest

from mqproof.impl.runtime.immediate import result_of
from mqproof.impl.runtime.simulated_disk import SimulatedCrashError, SimulatedDisk, Step
from mqproof.impl.store.config import FlushMode
from mqproof.impl.store.dispatch import Appended
from tests.impl.store.site import SMALL, Site, bodies, check_index, stored_messages

STEPS_MAX = 500


def _site(mode: FlushMode = FlushMode.ASYNC_FLUSH) -> Site:
    site = Site(replace(SMALL, flush_mode=mode))
    site.open()
    return site


def _check_recovered(site: Site, appended: list[Appended], durable_end: int) -> int:
    """Check that the store is a prefix of the appended records with all durable ones. Returns its length."""
    found = {
        stored.commit_offset: stored
        for queue_id in {each.queue_id for each in appended}
        for stored in stored_messages(site.store, queue_id)
    }
    prefix = [each for each in appended if each.end <= site.recovery.recovered_end]
    assert sorted(found) == [each.commit_offset for each in prefix], (
        "exactly the records of the log can be read"
    )
    for each in prefix:
        stored = found[each.commit_offset]
        assert stored.message_id == each.message_id
        assert (stored.message.queue_id, stored.queue_offset) == (each.queue_id, each.queue_offset)
    assert site.recovery.recovered_end >= durable_end, "every durable record is there"
    if site.config.index_enabled:
        check_index(site.store)
    return len(prefix)


def _crashed(site: Site, disk: SimulatedDisk) -> Site:
    crashed = Site(site.config, disk)
    crashed.clock.advance_ms(1000)
    return crashed


def test_every_crash_image_of_two_unsynced_records_and_their_entries_is_recovered() -> None:
    site = Site(replace(SMALL, index_enabled=False))  # otherwise the number of images would be multiplied
    site.open()
    appended = site.append("d")
    site.flush()
    durable_end = site.store.log_flushed
    appended += site.append("a")
    disk = site.simulated_disk
    assert disk.image_count() < 3000
    lengths = set()
    for image in disk.images():
        crashed = _crashed(site, disk.copy())
        crashed.simulated_disk.crash_os(image)
        crashed.open()
        lengths.add(_check_recovered(crashed, appended, durable_end))
    assert lengths == {1, 2}


@pytest.mark.parametrize(
    "stride", [13, pytest.param(1, marks=pytest.mark.deep("all images take 15 CPU seconds"))]
)
def test_crash_images_of_an_unsynced_index_are_recovered(stride: int) -> None:
    """Use two keys of durable records, the second one in a new file."""
    site = _site()
    appended = site.append("a", "b", "c")
    site.flush()
    appended += site.append("d", "e")
    result_of(site.store.flush_log())
    result_of(site.store.flush_queues())
    disk = site.simulated_disk
    assert 3000 < disk.image_count() < 15_000
    for image in islice(disk.images(), 0, None, stride):
        crashed = _crashed(site, disk.copy())
        crashed.simulated_disk.crash_os(image)
        crashed.open()
        _check_recovered(crashed, appended, site.store.log_flushed)


@pytest.mark.parametrize("mode", list(FlushMode))
@pytest.mark.parametrize("flush", ["none", "log", "queues", "all"])
def test_drawn_crash_images_of_many_records_over_several_segments_are_recovered(
    mode: FlushMode, flush: str
) -> None:
    site = _site(mode)
    appended = site.append("a", "b", "c") + site.append("d", "e", queue_id=1)
    site.flush()
    durable_end = site.store.log_flushed
    for number in range(10):
        appended += site.append(f"n{number}", queue_id=number % 3)
    if flush in ("log", "all"):
        result_of(site.store.flush_log())
        durable_end = site.store.log_flushed
    if flush in ("queues", "all"):
        result_of(site.store.flush_queues())
    lengths = set()
    for seed in range(60):
        crashed = _crashed(site, site.simulated_disk.copy())
        crashed.simulated_disk.crash_os(random.Random(seed))
        crashed.open()
        lengths.add(_check_recovered(crashed, appended, durable_end))
    assert (len(lengths) == 1) == (flush in ("log", "all"))


def _interrupt(site: Site, steps: int) -> bool:
    """Open the store, but crash after that many steps. Returns whether it was opened."""
    disk = site.simulated_disk
    last = disk.steps + steps

    def crash(step: Step) -> None:
        if disk.steps > last:
            raise SimulatedCrashError

    disk.on_step = crash
    try:
        site.open()
    except SimulatedCrashError:
        return False
    finally:
        disk.on_step = None
    return True


@pytest.mark.parametrize("seed", range(6))
def test_a_crash_at_every_step_of_recovery_changes_nothing(seed: int) -> None:
    site = _site()
    appended = site.append("a", "b", "c") + site.append("d", "e", queue_id=1)
    site.flush()
    durable_end = site.store.log_flushed
    for number in range(8):
        appended += site.append(f"n{number}", queue_id=number % 3)
    site.simulated_disk.crash_os(random.Random(seed))
    whole = _crashed(site, site.simulated_disk.copy())
    whole.open()
    _check_recovered(whole, appended, durable_end)
    for steps in range(STEPS_MAX):
        for second_seed in range(4):
            again = _crashed(site, site.simulated_disk.copy())
            opened = _interrupt(again, steps)
            again.simulated_disk.crash_os(random.Random(second_seed))
            again.open()
            _check_recovered(again, appended, durable_end)
            assert again.recovery.recovered_end == whole.recovery.recovered_end or not opened
            assert [bodies(again.store, queue_id) for queue_id in range(3)] == [
                bodies(whole.store, queue_id) for queue_id in range(3)
            ]
        if opened:
            return
    raise AssertionError("recovery does not end")


@pytest.mark.parametrize("seed", range(4))
def test_a_crash_at_every_step_of_a_clean_exit_loses_nothing(seed: int) -> None:
    site = _site()
    appended = [each for number in range(6) for each in site.append(f"m{number}", queue_id=number % 2)]
    template = site.simulated_disk
    for steps in range(STEPS_MAX):
        again = _crashed(site, template.copy())
        again.simulated_disk.crash_process()
        again.open()
        appended_again = [*appended, *again.append("last")]
        disk = again.simulated_disk
        last = disk.steps + steps

        def crash(step: Step, disk: SimulatedDisk = disk, last: int = last) -> None:
            if disk.steps > last:
                raise SimulatedCrashError

        disk.on_step = crash
        try:
            again.close()
            closed = True
        except SimulatedCrashError:
            closed = False
        disk.on_step = None
        durable_end = again.store.log_flushed
        if seed:
            disk.crash_os(random.Random(seed))
        else:
            disk.lose_power()
        again.open()
        _check_recovered(again, appended_again, durable_end)
        if closed:
            assert not again.recovery.abnormal
            return
    raise AssertionError("the clean exit does not end")
