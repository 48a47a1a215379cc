"""Tests where offsets are stored: the file of a broadcast consumer, and the last commit of a queue."""

import asyncio
from collections.abc import Mapping

import pytest

from mqproof.impl.client.consuming.consumer_events import ConsumerEvents
from mqproof.impl.client.consuming.group_requests import GroupRequests
from mqproof.impl.client.consuming.offset_store import BrokerOffsets, FileOffsets, Offsets
from mqproof.impl.client.model import ClientError, MessageQueue
from mqproof.impl.runtime.disk import read_whole, write_durably
from mqproof.impl.runtime.event_log import EventLog
from mqproof.impl.runtime.network import SimulatedNetwork
from mqproof.impl.runtime.runtime import Runtime, simulated
from mqproof.impl.runtime.simulated_loop import ManualClock, SimulatedLoop, run_simulated
from mqproof.spec.events import Event

QUEUE, OTHER = MessageQueue("T", "b", 0), MessageQueue("T", "b", 1)
PATH = "/offsets/10.0.0.9@DEFAULT/G/offsets.json"


def store(runtime: Runtime) -> FileOffsets:
    return FileOffsets("/offsets", "10.0.0.9@DEFAULT", "G", runtime)


def test_offsets_in_a_file_survive_in_rocketmqs_format() -> None:
    loop = SimulatedLoop()
    runtime = simulated(loop, SimulatedNetwork())

    async def main() -> list[int | None]:
        await store(runtime).save({QUEUE: 7})
        await store(runtime).save({OTHER: 1})
        again = store(runtime)
        return [await again.load(QUEUE), await again.load(OTHER), await again.load(MessageQueue("U", "b", 0))]

    assert run_simulated(main(), loop) == [7, 1, None]
    assert read_whole(runtime.disk, PATH) == (
        b'{"offsetTable":{{"brokerName":"b","queueId":0,"topic":"T"}:7,'
        b'{"brokerName":"b","queueId":1,"topic":"T"}:1}}'
    )


def test_an_invalid_file_is_replaced_by_its_backup_and_two_invalid_files_are_an_error() -> None:
    loop = SimulatedLoop()
    runtime = simulated(loop, SimulatedNetwork())

    async def main() -> int | None:
        first = store(runtime)
        await first.save({QUEUE: 7})
        await first.save({QUEUE: 8})
        write_durably(runtime.disk, PATH, b'{"offsetTable":')
        found = await store(runtime).load(QUEUE)
        write_durably(runtime.disk, PATH + ".bak", b"[]")
        with pytest.raises(ClientError, match="neither it nor its backup"):
            await store(runtime).load(QUEUE)
        return found

    assert run_simulated(main(), loop) == 7


def test_the_next_save_repairs_a_failed_one() -> None:
    loop = SimulatedLoop()
    runtime = simulated(loop, SimulatedNetwork())

    async def main() -> int | None:
        offsets = store(runtime)
        disk = runtime.disk
        write = disk.replace

        def full(source: str, target: str) -> None:
            raise OSError("no space left")

        disk.replace = full  # type: ignore[method-assign]
        await offsets.save({QUEUE: 7})
        disk.replace = write  # type: ignore[method-assign]
        await offsets.save({QUEUE: 7})
        return await store(runtime).load(QUEUE)

    assert run_simulated(main(), loop) == 7


def test_concurrent_saves_leave_the_later_state() -> None:
    loop = SimulatedLoop()
    runtime = simulated(loop, SimulatedNetwork(), seed=3)

    async def main() -> int | None:
        offsets = store(runtime)
        await asyncio.gather(*(offsets.save({QUEUE: offset}) for offset in range(20)))
        return await store(runtime).load(QUEUE)

    assert run_simulated(main(), loop) == 19


def test_a_client_id_cannot_name_a_path_outside_the_directory() -> None:
    loop = SimulatedLoop()
    runtime = simulated(loop, SimulatedNetwork())

    async def main() -> None:
        await FileOffsets("/offsets", "../../etc/x@y", "G", runtime).save({QUEUE: 1})

    run_simulated(main(), loop)
    assert runtime.disk.names("/offsets") == ["..%2F..%2Fetc%2Fx@y"]


class FakeCalls(GroupRequests):
    """A broker with one offset, or an error."""

    def __init__(self, known: int | ClientError | None) -> None:
        self.known = known
        self.commits: list[int] = []
        self.reported: list[tuple[int, bool]] = []
        """The requested commits, accepted or not: the offset, and whether it may only go forward."""

    async def committed(self, queue: MessageQueue) -> int | None:  # noqa: ARG002  # as GroupRequests has it
        if isinstance(self.known, ClientError):
            raise self.known
        return self.known

    async def commit(self, queue: MessageQueue, offset: int, *, only_forward: bool = False) -> None:  # noqa: ARG002
        self.reported.append((offset, only_forward))
        if isinstance(self.known, ClientError):
            raise self.known
        self.commits.append(offset)


@pytest.mark.parametrize(
    ("known", "commits"), [(None, [5]), (4, [5]), (5, []), (9, []), (ClientError("away"), [])]
)
def test_deliv_5_offset_monotone_the_last_commit_of_an_owner_does_not_undo_the_next_owners(
    known: int | ClientError | None, commits: list[int]
) -> None:
    """DELIV-5 OffsetMonotone: GroupShipped's late commit."""
    calls = FakeCalls(known)
    run_simulated(BrokerOffsets(calls, ConsumerEvents(None, "G", "c")).release(QUEUE, 5))
    assert calls.commits == commits
    assert calls.reported == [(offset, True) for offset in commits]


def test_deliv_5_offset_monotone_only_a_reset_lowers_an_offset_and_is_sent_until_confirmed() -> None:
    """DELIV-5 OffsetMonotone: GroupShipped's late commit, by a member that still reads the queue."""
    calls = FakeCalls(None)
    offsets = BrokerOffsets(calls, ConsumerEvents(None, "G", "c"))

    async def main() -> None:
        await offsets.save({QUEUE: 5})
        calls.known = ClientError("away")
        await offsets.save({QUEUE: 2}, reset=True)
        await offsets.save({QUEUE: 3})
        calls.known = None
        await offsets.save({QUEUE: 4, OTHER: 1})
        await offsets.save({QUEUE: 6})

    run_simulated(main())
    assert calls.reported == [(5, True), (2, False), (3, False), (4, False), (1, True), (6, True)]


class Recorder:
    """A store that records the calls that it receives."""

    def __init__(self) -> None:
        self.reported: list[object] = []

    async def load(self, queue: MessageQueue) -> int | None:  # noqa: ARG002  # an OffsetStore's signature
        return None

    async def save(self, offsets: Mapping[MessageQueue, int], *, reset: bool = False) -> None:
        self.reported.append((dict(offsets), reset))

    async def release(self, queue: MessageQueue, offset: int) -> None:
        self.reported.append((queue, offset))


def test_deliv_5_offset_monotone_consuming_only_raises_the_offset() -> None:
    """DELIV-5 OffsetMonotone: batches that finish out of order do not lower the offset."""
    kept = Recorder()
    offsets = Offsets(kept)

    async def main() -> None:
        offsets.advance(QUEUE, 5)
        offsets.advance(QUEUE, 3)
        await offsets.save()
        await offsets.reset(QUEUE, 2)
        await offsets.release(QUEUE)
        await offsets.release(QUEUE)
        await offsets.save()

    run_simulated(main())
    assert kept.reported == [({QUEUE: 5}, False), ({QUEUE: 2}, True), (QUEUE, 2)]


class FailingStore:
    """A store of an application whose database is away for some calls."""

    def __init__(self) -> None:
        self.is_away = True
        self.saved: list[tuple[dict[MessageQueue, int], bool]] = []

    async def load(self, queue: MessageQueue) -> int | None:
        raise RuntimeError(f"no database for {queue}")

    async def save(self, offsets: Mapping[MessageQueue, int], *, reset: bool = False) -> None:
        if self.is_away:
            raise RuntimeError("no database")
        self.saved.append((dict(offsets), reset))

    async def release(self, queue: MessageQueue, offset: int) -> None:
        raise RuntimeError(f"no database for {queue} at {offset}")


def test_a_store_that_fails_ends_no_consumer_and_gets_the_offsets_later() -> None:
    async def main() -> None:
        store = FailingStore()
        offsets = Offsets(store)
        with pytest.raises(ClientError, match="the offset store failed: RuntimeError: no database"):
            await offsets.load(QUEUE)
        offsets.advance(OTHER, 9)
        await offsets.reset(QUEUE, 3)
        await offsets.save()
        store.is_away = False
        await offsets.save()
        assert store.saved == [({QUEUE: 3}, True), ({OTHER: 9, QUEUE: 3}, False)]
        await offsets.release(QUEUE)
        assert offsets.get(QUEUE) is None

    asyncio.run(main())


def test_a_queue_that_is_released_while_resets_are_stored_is_left_out() -> None:
    class Slow(FailingStore):
        async def save(self, offsets: Mapping[MessageQueue, int], *, reset: bool = False) -> None:
            await asyncio.sleep(1)
            await super().save(offsets, reset=reset)

    async def main() -> None:
        store = Slow()
        offsets = Offsets(store)
        for queue in (QUEUE, OTHER):
            await offsets.reset(queue, 3)
        store.is_away = False
        saving = asyncio.create_task(offsets.save())
        await asyncio.sleep(0.5)
        for queue in (QUEUE, OTHER):
            await offsets.release(queue)
        await saving
        assert len(store.saved) == 1
        assert store.saved[0] in [({queue: 3}, True) for queue in (QUEUE, OTHER)]

    run_simulated(main())


def test_where_a_queue_begins_is_stored_at_once_and_again_if_that_fails() -> None:
    class Flaky(FileOffsets):
        fails = True

        async def save(self, offsets: Mapping[MessageQueue, int], *, reset: bool = False) -> None:
            if self.fails:
                raise RuntimeError("injected")
            await super().save(offsets, reset=reset)

    loop = SimulatedLoop()
    runtime = simulated(loop, SimulatedNetwork())

    async def main() -> list[int | None]:
        sound = Offsets(store(runtime))
        await sound.begin(QUEUE, 7)
        first = await store(runtime).load(QUEUE)
        flaky = Flaky("/offsets", "10.0.0.9@DEFAULT", "G", runtime)
        offsets = Offsets(flaky)
        await offsets.begin(OTHER, 3)
        second = await store(runtime).load(OTHER)
        flaky.fails = False
        await offsets.save()
        return [first, second, await store(runtime).load(OTHER)]

    assert run_simulated(main(), loop) == [7, None, 3]


def test_an_offset_that_is_not_stored_is_logged_and_only_confirmed_ones_are_events(
    caplog: pytest.LogCaptureFixture,
) -> None:
    calls, events = FakeCalls(ClientError("busy")), list[Event]()
    log = EventLog(events.append, "c", ManualClock())

    async def main() -> None:
        store = BrokerOffsets(calls, ConsumerEvents(log, "G", "c"))
        await store.save({QUEUE: 5}, reset=True)
        await store.release(QUEUE, 5)
        calls.known = None
        await store.save({QUEUE: 6})  # no reset any more: another member may be ahead
        calls.known = ClientError("busy")
        await store.save({QUEUE: 3}, reset=True)
        calls.known = None
        await store.save({QUEUE: 4})
        await store.save({QUEUE: 5})

    run_simulated(main())
    assert calls.reported == [(5, False), (6, True), (3, False), (4, False), (5, True)]
    assert [(event.queue_offset, event.attrs.get("reset")) for event in events] == [
        (6, None), (4, "true"), (5, None),
    ]  # fmt: skip
    failed = "an offset is not stored: busy"
    assert caplog.messages == [failed, "the last offset is not stored: busy", failed]


def test_an_offset_advances_but_never_goes_back_by_itself() -> None:
    offsets = Offsets(Recorder())
    assert offsets.get(QUEUE) is None
    for offset, expected in ((0, 0), (5, 5), (4, 5), (6, 6)):
        offsets.advance(QUEUE, offset)
        assert offsets.get(QUEUE) == expected
    offsets.set(QUEUE, 2)
    assert offsets.get(QUEUE) == 2


def test_a_file_is_written_only_when_an_offset_changed_and_an_error_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    loop = SimulatedLoop()
    offsets, writes = store(simulated(loop, SimulatedNetwork())), list[bytes]()
    failures: list[OSError] = []

    def write(data: bytes) -> None:
        writes.append(data)
        if failures:
            raise failures[0]

    async def main() -> None:
        offsets._write = write  # type: ignore[method-assign]
        await offsets.save({QUEUE: 1})
        await offsets.save({QUEUE: 1})
        assert len(writes) == 1
        failures.append(OSError("full"))
        await offsets.save({QUEUE: 2})
        await offsets.save({QUEUE: 2})
        assert len(writes) == 3
        failures.clear()
        await offsets.release(QUEUE, 2)
        assert len(writes) == 4
        assert await offsets.load(QUEUE) == 2

    run_simulated(main(), loop)
    assert caplog.messages == [f"offsets cannot be written to disk: {PATH}: full"] * 2
