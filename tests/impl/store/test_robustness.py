"""Tests a store whose environment fails: one line reports it, and no guarantee is broken.

Source: docs/reference/protocol/storing.md, "Disk errors" and "Commit log";
docs/reference/protocol/recovery.md, "Expiry".
"""

import asyncio
import errno
import itertools
import os
from collections.abc import Callable
from dataclasses import replace

import pytest

from mqproof.impl.remoting.message import Message
from mqproof.impl.runtime.disk import Lock
from mqproof.impl.runtime.immediate import result_of
from mqproof.impl.runtime.network import SimulatedNetwork
from mqproof.impl.runtime.runtime import simulated
from mqproof.impl.runtime.simulated_disk import SimulatedDisk, Step
from mqproof.impl.runtime.simulated_loop import SimulatedLoop, run_simulated
from mqproof.impl.store.config import FlushMode
from mqproof.impl.store.delay import SCHEDULE_TOPIC
from mqproof.impl.store.errors import StoreError
from mqproof.impl.store.files.record import RecordError, decode
from mqproof.impl.store.message_store import MessageStore
from mqproof.impl.store.results import PutResult, PutStatus
from tests.impl.store.site import SMALL, Site, bodies, check_index, message


def _fails(code: int, kind: str, part: str) -> Callable[[Step], None]:
    def hook(step: Step) -> None:
        if step.kind == kind and part in step.path:
            raise OSError(code, os.strerror(code), step.path)

    return hook


@pytest.mark.parametrize("kind", ["write", "create"])
@pytest.mark.parametrize("part", ["commitlog", "consumequeue", "index"])
@pytest.mark.parametrize("mode", list(FlushMode))
def test_a_full_disk_makes_the_store_read_only_until_a_restart_with_space(
    kind: str, part: str, mode: FlushMode, caplog: pytest.LogCaptureFixture
) -> None:
    site = Site(replace(SMALL, flush_mode=mode))
    site.open()
    site.append("before")
    site.flush()
    site.simulated_disk.on_step = _fails(errno.ENOSPC, kind, part)
    stored = ["before"]
    for number in range(20):
        appended = _try_append(site, f"m{number}")
        stored += [f"m{number}"] * appended
        result_of(site.store.flush_log())
        if site.store.failure:
            break
    assert "No space left on device" in site.store.failure
    (line,) = caplog.messages
    assert line.startswith(site.store.failure)
    assert line.endswith("until it is restarted: free space on the disk, and restart it")
    refused = result_of(site.store.put(message("no")))
    assert (refused.status, refused.reason) == (PutStatus.SERVICE_NOT_AVAILABLE, site.store.failure)
    site.simulated_disk.on_step = None
    site.reopen_after_process_crash()
    assert bodies(site.store) == stored
    check_index(site.store)
    assert site.append("after")[0].queue_offset == len(stored)


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
@pytest.mark.parametrize("kind", ["create", "write", "sync"])
def test_a_checkpoint_without_space_is_written_once_there_is_space(
    code: int, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    site = Site(SMALL)
    site.open()
    for number in range(3):
        site.append(f"m{number}")
        site.flush()
        site.simulated_disk.on_step = _fails(code, kind, "checkpoint") if number < 2 else None
        result_of(site.store.flush_queues())
        result_of(site.store.write_checkpoint())
        assert (site.store.failure, site.store.writable) == ("", True)
    (line,) = caplog.messages
    assert line.startswith("the checkpoint is not written, and this is tried again: ")
    site.reopen_after_power_loss()
    assert bodies(site.store) == ["m0", "m1", "m2"]
    check_index(site.store)


def test_an_exit_without_space_for_the_checkpoint_is_not_clean() -> None:
    site = Site(SMALL)
    site.open()
    site.append("m")
    site.simulated_disk.on_step = _fails(errno.ENOSPC, "create", "checkpoint")
    result_of(site.store.stop())
    site.simulated_disk.on_step = None
    assert site.disk.exists("store/abort")
    site.open()
    assert bodies(site.store) == ["m"]
    check_index(site.store)


def _try_append(site: Site, name: str) -> bool:
    try:
        site.store.append(message(name))
    except OSError as error:
        site.store._fail(error)  # what `put` does
        return False
    site.store.dispatch()
    return True


@pytest.mark.parametrize("mode", list(FlushMode))
def test_no_answer_depends_on_a_failed_fsync_and_nothing_is_accepted_after_it(mode: FlushMode) -> None:
    """Fail each fsync of a store in turn (log, queue, index, checkpoint, directory), with each way to put."""
    kinds = set()
    for number in range(1000):
        path = _life_with_failing_fsync(mode, number)
        if path is None:
            break
        kinds |= {part for part in ("commitlog", "consumequeue", "index", "checkpoint") if part in path}
    assert path is None, "the last run has no failed fsync"
    assert kinds == {"commitlog", "consumequeue", "index", "checkpoint"}


def _life_with_failing_fsync(mode: FlushMode, number: int) -> str | None:
    """Run a store whose fsync number `number` fails, and check its answers and its recovered messages.

    Return the file of that fsync; None if the run made fewer.
    """
    site = Site(replace(SMALL, flush_mode=mode, checkpoint_interval_ms=20, flush_queues_interval_ms=10))
    loop = SimulatedLoop()
    failed: list[str] = []
    syncs = itertools.count()

    def hook(step: Step) -> None:
        if step.kind.startswith("sync") and next(syncs) == number:
            failed.append(step.path)
            raise OSError(errno.EIO, os.strerror(errno.EIO), step.path)

    async def life() -> tuple[set[str], bool]:
        disk = site.simulated_disk
        store = MessageStore("store", site.config, simulated(loop, SimulatedNetwork(), number, disk))
        store.load()
        await store.start()
        disk.on_step = hook
        safe: set[str] = set()
        for turn in range(6):
            before = bool(failed)
            soon: list[PutResult] = []
            store.put_soon([message(f"s{turn}")], soon.extend)
            alone = await store.put(message(f"p{turn}"))
            batch = await store.put_batch([message(f"b{turn}", 1), message(f"c{turn}", 1)])
            await asyncio.sleep(0.008)
            answers = {f"s{turn}": soon[0], f"p{turn}": alone, f"b{turn}": batch[0], f"c{turn}": batch[1]}
            ok = {name for name, result in answers.items() if result.status is PutStatus.PUT_OK}
            assert not (before and ok), f"{ok} after the fsync of {failed} failed"
            safe |= ok
        await store.stop()
        return safe, bool(store.failure)

    safe, has_failed = run_simulated(life(), loop)
    assert has_failed == bool(failed)
    is_clean = not site.disk.exists("store/abort")
    assert is_clean or failed
    if mode is FlushMode.SYNC_FLUSH or is_clean:
        site.simulated_disk.on_step = None
        site.reopen_after_power_loss()
        assert safe <= {*bodies(site.store), *bodies(site.store, 1)}, f"lost after {failed}"
    return failed[0] if failed else None


class _ReadOnly(SimulatedDisk):
    def lock(self, path: str) -> Lock:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), path)


def test_a_directory_that_cannot_be_written_is_one_clear_error() -> None:
    with pytest.raises(StoreError, match=r"store: .*Read-only file system.*store/lock"):
        Site(disk=_ReadOnly()).open()


@pytest.mark.parametrize("part", ["abort", "commitlog", "checkpoint"])
def test_a_disk_that_fails_at_the_start_is_one_clear_error_and_changes_nothing(part: str) -> None:
    site = Site()
    site.open()
    site.append("a", "b")
    site.simulated_disk.crash_process()
    reported = []
    for kind in ("create", "write", "sync", "replace"):
        site.simulated_disk.on_step = _fails(errno.EIO, kind, part)
        try:
            site.open()
        except StoreError as error:
            reported.append(str(error))
        site.simulated_disk.on_step = None
        site.simulated_disk.crash_process()
    site.open()
    assert bodies(site.store) == ["a", "b"]
    assert all("Input/output error" in line and "\n" not in line for line in reported)
    assert reported or part == "checkpoint", "an opening writes no checkpoint"


@pytest.mark.parametrize("topic", ["..", ".", "a/b", "../T", "/etc", "a\0b", "", "T\n", "schön"])
def test_a_topic_can_only_be_a_name_within_the_directory(topic: str) -> None:
    site = Site()
    store = site.open()
    before = site.disk.names("store")
    result = result_of(store.put(Message(topic, b"x")))
    assert result.status is PutStatus.MESSAGE_ILLEGAL
    assert site.disk.names("store") == before
    assert store.log_end == 0


@pytest.mark.parametrize("topic", ["..", "a/b", "."])
def test_a_record_whose_topic_is_a_path_is_invalid(topic: str) -> None:
    site = Site()
    store = site.open()
    (appended,) = site.append("x", topic="T" * len(topic))
    data = bytearray(store.record_at(appended.commit_offset) or b"")
    at = data.index(b"T" * len(topic))
    data[at : at + len(topic)] = topic.encode()
    with pytest.raises(RecordError, match="cannot be the name"):
        decode(bytes(data), appended.commit_offset)


def test_the_schedule_topic_may_hold_undeliverable_messages() -> None:
    """The entries of undeliverable messages are written like any others; delivery skips them."""
    site = Site()
    store = site.open()
    store.append(Message(SCHEDULE_TOPIC, b"x", {"DELAY": "x", "REAL_TOPIC": "../T", "REAL_QID": "0"}))
    store.dispatch()
    assert store.max_offset(SCHEDULE_TOPIC, 0) == 1


def test_a_clock_that_steps_back_changes_neither_the_order_nor_the_recovery() -> None:
    site = Site()
    site.open()
    times = []
    for step_ms in (0, -3_600_000, 5_000, -86_400_000, 1, 90_000_000):
        site.clock.advance_ms(step_ms)
        times += [each.store_timestamp_ms for each in site.append("a", "b")]
        site.flush()
    assert times == sorted(times)
    site.reopen_after_power_loss()
    assert len(bodies(site.store)) == 12
    assert result_of(site.store.clean(manually=True)) == 0
