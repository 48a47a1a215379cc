"""Random runs of one store with random crashes, on simulated time and disk, determined by the seed.

Several producers put messages while the services flush. The process, the system or the power fails at some
point, an fsync may fail, the clock may jump, and the store is opened again. `simulate` returns the
violations.
"""

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from mqproof.impl.remoting.message import Message
from mqproof.impl.runtime.event_log import EventLog
from mqproof.impl.runtime.network import SimulatedNetwork
from mqproof.impl.runtime.runtime import Runtime, SlowCalls
from mqproof.impl.runtime.simulated_disk import SimulatedDisk, Step
from mqproof.impl.runtime.simulated_loop import SimulatedClock, SimulatedLoop, run_simulated
from mqproof.impl.store.config import FlushMode, StoreConfig
from mqproof.impl.store.errors import StoreError
from mqproof.impl.store.files import record
from mqproof.impl.store.files.checkpoint import DISTRUST, read_checkpoint
from mqproof.impl.store.message_store import MessageStore
from mqproof.impl.store.results import GetStatus, PutResult, PutStatus
from mqproof.spec.events import Event, Kind
from tests.impl.store.site import check_index

QUEUES = 3
LIVES = 4
CONFIG = StoreConfig(
    commit_log_segment_bytes=512,
    consume_queue_segment_bytes=60,
    index_slots=3,
    index_entries=8,
    sync_flush_timeout_ms=20,
    flush_log_interval_ms=30,
    flush_log_least_bytes=200,
    flush_log_thorough_interval_ms=90,
    flush_queues_interval_ms=20,
    checkpoint_interval_ms=60,
)


@dataclass
class World:
    """The state that survives the store: disk, clock, and observations."""

    chance: random.Random
    config: StoreConfig
    disk: SimulatedDisk
    clock: SimulatedClock
    events: list[Event] = field(default_factory=list)
    log: list[Event] = field(default_factory=list)
    """Append events of the records that are in the log, as far as known."""
    durable_end: int = 0
    """Commit offset that no crash may fall below."""
    acked: set[str] = field(default_factory=set)
    """Answered PUT_OK, as far as the flush mode promises them: under ASYNC_FLUSH until the system crashes."""
    readable: list[int] = field(default_factory=lambda: [0] * QUEUES)
    """Queue ends that a consumer saw."""
    sent: int = 0
    wrong: list[str] = field(default_factory=list)

    def check(self, holds: bool, complaint: str) -> None:
        if not holds:
            self.wrong.append(complaint)


def simulate(seed: int, mode: FlushMode) -> list[str]:
    """Run a store through several restarts.

    Returns the violations as text; empty when all invariants held.
    """
    loop = SimulatedLoop()
    chance = random.Random(f"{mode} {seed}")
    world = World(chance, replace(CONFIG, flush_mode=mode), SimulatedDisk(), SimulatedClock(loop))

    async def lives() -> None:
        for _ in range(LIVES):
            await _life(world)
            if world.wrong:
                return
        await _open(world)

    run_simulated(lives(), loop)
    return world.wrong


async def _open(world: World) -> MessageStore | None:
    log = EventLog(world.events.append, "broker", world.clock, len(world.events))
    offload = SlowCalls(world.chance, delay_ms_max=world.chance.choice((1.0, 30.0)))
    runtime = Runtime(world.clock, world.disk, SimulatedNetwork(), world.chance, offload)
    store = MessageStore("store", world.config, runtime, log)
    try:
        recovery = store.load()
    except StoreError as error:
        world.wrong.append(f"the store does not open: {error}")
        return None
    _check_recovered(world, store, recovery.recovered_end)
    await store.start()
    return store


def _check_recovered(world: World, store: MessageStore, end: int) -> None:
    """Check FLUSH-1 to FLUSH-6, as far as a reader can see them."""
    kept = [event for event in world.log if (event.commit_offset or 0) < end]
    world.check(end >= world.durable_end, f"the log ends at {end}, durable was {world.durable_end}")
    ids = {event.msg_id for event in kept}
    world.check(ids >= world.acked, f"acknowledged but lost: {sorted(world.acked - ids)}")
    for queue_id in range(QUEUES):
        expected = [event.msg_id for event in kept if event.queue_id == queue_id]
        found = list(_read(world, store, queue_id))
        world.check(found == expected, f"queue {queue_id} has {found}, the log {expected}")
        world.check(
            world.config.flush_mode is FlushMode.ASYNC_FLUSH or len(found) >= world.readable[queue_id],
            f"queue {queue_id} ends at {len(found)}, a consumer had seen {world.readable[queue_id]}",
        )
    count = read_checkpoint(world.disk, "store/checkpoint").queue_count
    world.check(count != DISTRUST, "no queue file was lost, and yet all queues were made up again")
    try:
        check_index(store)
    except AssertionError as error:
        world.wrong.append(f"the index is not what the log says: {error}")
    world.log = kept
    world.durable_end = end  # a recovered log counts as flushed
    world.check(store.log_flushed == end, f"flushed is {store.log_flushed}, recovered was {end}")


def _read(world: World, store: MessageStore, queue_id: int) -> list[str]:
    """Return the message ids of a queue. Each record must be complete, of this queue and at its offset."""
    found: list[str] = []
    while (result := store.get("T", queue_id, len(found))).status is GetStatus.FOUND:
        for data in result.records:
            try:
                stored = record.decode(data)
            except record.RecordError as error:
                world.wrong.append(f"queue {queue_id} offset {len(found)}: {error}")
                return found
            place = (stored.message.queue_id, stored.queue_offset)
            world.check(place == (queue_id, len(found)), f"{place} found at {(queue_id, len(found))}")
            world.check(stored.message == _message(stored.message_id, queue_id), f"{stored} was altered")
            found.append(stored.message_id)
    return found


def _message(name: str, queue_id: int) -> Message:
    return Message("T", name.encode() * 3, {"UNIQ_KEY": name}, queue_id)


async def _life(world: World) -> None:
    store = await _open(world)
    if store is None:
        return
    first_event = len(world.events)
    if world.chance.random() < 0.15:
        world.disk.on_step = _failing_syncs(world.chance)
    producers = [asyncio.create_task(_produce(world, store)) for _ in range(world.chance.randint(1, 4))]
    await asyncio.sleep(world.chance.choice((0.0, 0.001, 0.01, 0.05, 0.2, 10.0)))
    clean = world.chance.random() < 0.2
    if clean:
        await store.stop()
    crash = world.chance.choice(("process", "os", "os", "power"))
    _note_what_was_promised(world, store, first_event)
    store.kill()
    for producer in producers:
        producer.cancel()
    await asyncio.gather(*producers, return_exceptions=True)
    world.disk.on_step = None
    if crash == "process":
        world.disk.crash_process()
    else:
        if crash == "os":
            world.disk.crash_os(world.chance)
        else:
            world.disk.lose_power()
        if world.config.flush_mode is FlushMode.ASYNC_FLUSH and not (clean and not store.failure):
            world.acked.clear()
    if world.chance.random() < 0.3:
        world.clock.skew_us += world.chance.choice((-20_000_000, -3_600_000_000, 5_000_000))


def _note_what_was_promised(world: World, store: MessageStore, first_event: int) -> None:
    """Record, at the time of the crash, the appended, the flushed and the visible messages."""
    for event in world.events[first_event:]:
        if event.kind is Kind.APPEND:
            world.log.append(event)
        elif event.kind is Kind.FLUSH and event.attrs["file"] == "log":
            world.durable_end = max(world.durable_end, event.commit_offset or 0)
    world.readable = [store.max_offset("T", queue_id) for queue_id in range(QUEUES)]


async def _produce(world: World, store: MessageStore) -> None:
    for _ in range(world.chance.randint(1, 12)):
        name = f"m{world.sent:03d}"
        world.sent += 1
        result = await _put(world, store, _message(name, world.chance.randrange(QUEUES)))
        if result.status is PutStatus.PUT_OK:
            world.acked.add(name)
        await asyncio.sleep(world.chance.choice((0.0, 0.0, 0.002, 0.02, 4.0)))


async def _put(world: World, store: MessageStore, message: Message) -> PutResult:
    """Put one message, alone or with others in the same turn of the event loop."""
    if world.chance.random() < 0.3:
        return await store.put(message)
    result: asyncio.Future[PutResult] = asyncio.get_running_loop().create_future()

    def done(results: list[PutResult]) -> None:
        if not result.cancelled():
            result.set_result(results[0])

    store.put_soon([message], done)
    return await result


def _failing_syncs(chance: random.Random) -> Callable[[Step], None]:
    def hook(step: Step) -> None:
        if step.kind == "sync" and chance.random() < 0.3:
            raise OSError(5, "Input/output error", step.path)

    return hook
