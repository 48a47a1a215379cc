"""Our implementation as a target: the real name server, broker and client in this process, in simulated time.

Clock, disk and network are the simulated ones of impl/runtime. Therefore a run is determined by its seed, a
crash loses what a real crash may lose, and thousands of operations run in a second. When the broker stops,
all tasks that ran with it end too: each start has its own event loop, and only the disk and the time
continue.
"""

import asyncio
import errno
import logging
import random
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

from mqproof.conformance.adapters import simulated_loops
from mqproof.conformance.adapters.client import Client
from mqproof.conformance.suites.flush.target import Capability, Fault, Pulled, RestartFailedError, Sent, Setup
from mqproof.impl.broker.broker import Broker
from mqproof.impl.broker.config import BrokerConfig
from mqproof.impl.namesrv.config import NameServerConfig
from mqproof.impl.namesrv.server import NameServer
from mqproof.impl.runtime.event_log import EventLog
from mqproof.impl.runtime.network import SimulatedNetwork
from mqproof.impl.runtime.runtime import Runtime, SlowCalls
from mqproof.impl.runtime.simulated_disk import Image, SimulatedCrashError, SimulatedDisk, Step
from mqproof.impl.runtime.simulated_loop import EPOCH_US, SimulatedClock, SimulatedLoop
from mqproof.impl.store.config import FlushMode, StoreConfig
from mqproof.impl.store.errors import StoreError
from mqproof.spec.events import Event

T = TypeVar("T")

NODE: Final = "broker"
_STORE: Final = "store"
_SEGMENT_BYTES: Final = 1024
"""The size of a segment: small, so that a run fills several segments."""
_FLUSH_TIMEOUT_MS: Final = 6
_CHECKPOINT_MS: Final = 1500
_FLUSH_QUEUES_MS: Final = 10_000
"""The interval between two flushes of the queues: longer than that between two checkpoints.

Recovery then has a checkpoint to start from, and most checkpoints precede the flush of the queues.
"""
_FLUSH_MS_MAX: Final = 4.0
"""The maximum delay before and after an fsync: some flushes exceed _FLUSH_TIMEOUT_MS, most do not."""
_PAUSES_S: Final = (0.0, 0.0, 0.0, 0.002, 0.7, 4.0, 12.0)
"""The pauses between two steps.

They allow no service, a flush, some of the services, or all of them to run.
"""
_NEARLY_ALL_CHANCE: Final = 0.4
_NEAR_BYTES: Final = 40
_ABANDON_S: Final = (0.0, 0.0005, 0.002, 0.01)


_HEARD_S: Final = 0.001
_DELAY_S: Final = 0.2
_SLOW_MS_MAX: Final = 40 * _FLUSH_MS_MAX
_LOSSES: Final = frozenset({Fault.ISOLATE, Fault.LOSE_REQUESTS, Fault.LOSE_ANSWERS})
_BACK_US: Final = 60_000_000
_CUT_S: Final = (0.0, 0.001, 0.004)

_log = logging.getLogger("mqproof.impl")


class ImplTarget:
    """Our broker in its own simulated world. `events` collects the broker's event log."""

    capabilities = frozenset(Capability)

    def __init__(self, name: str = "impl") -> None:
        self.name = name
        self.events: list[Event] = []
        self._loop: SimulatedLoop | None = None
        self._fault: Fault | None = None

    def open(self, setup: Setup) -> None:
        # Errors caused by the injected faults are expected, and logging them would take longer than the run.
        _log.setLevel(logging.CRITICAL + 1)
        self._setup = setup
        self._chance = random.Random(setup.seed)
        self._disk = SimulatedDisk()
        self._now_us = EPOCH_US
        self._store = StoreConfig(
            flush_mode=FlushMode(setup.flush_mode),
            commit_log_segment_bytes=_SEGMENT_BYTES,
            consume_queue_segment_bytes=20 * 16,
            index_slots=16,
            index_entries=64,
            sync_flush_timeout_ms=_FLUSH_TIMEOUT_MS,
            checkpoint_interval_ms=_CHECKPOINT_MS,
            flush_queues_interval_ms=_FLUSH_QUEUES_MS,
        )
        self.events.clear()
        self.restart()

    def send(self, topic: str, queue_id: int, msg_id: str, body: bytes) -> Sent:  # noqa: ARG002
        return self._step(self._client.send(queue_id, msg_id, body))

    def abandon(self, topic: str, queue_id: int, msg_id: str, body: bytes) -> None:  # noqa: ARG002
        assert self._loop is not None
        self._abandoned.append(self._loop.create_task(self._client.send(queue_id, msg_id, body)))
        self._run(asyncio.sleep(self._chance.choice(_ABANDON_S)))

    def pull(self, topic: str, queue_id: int, offset: int, max_count: int) -> Pulled:  # noqa: ARG002
        return self._step(self._client.pull(queue_id, offset, max_count))

    def commit_offset(self, topic: str, queue_id: int, offset: int) -> bool:  # noqa: ARG002
        return self._step(self._client.commit(queue_id, offset))

    def query_offset(self, topic: str, queue_id: int) -> int:  # noqa: ARG002
        return self._step(self._client.committed(queue_id))

    def min_offset(self, topic: str, queue_id: int) -> int:  # noqa: ARG002
        return self._step(self._client.min_offset(queue_id))

    def max_offset(self, topic: str, queue_id: int) -> int:  # noqa: ARG002
        return self._step(self._client.max_offset(queue_id))

    def kill(self) -> None:
        self._end()

    def crash_os(self, seed: int) -> None:
        self._end()
        self._disk.crash_os(_image(self._disk, random.Random(seed)))

    def lose_power(self) -> None:
        self._end()
        self._disk.lose_power()

    def shutdown(self) -> None:
        self._run(self._broker.stop())
        self._end()

    def restart(self) -> None:
        self._loop = SimulatedLoop()
        self._abandoned: list[asyncio.Task[Sent]] = []
        self._clock = SimulatedClock(self._loop, self._now_us)
        # Each start draws from its own generator, so that abandoned draws do not shift later ones.
        chance = random.Random(self._chance.getrandbits(64))
        self._network = SimulatedNetwork()
        self._syncs = SlowCalls(chance, _FLUSH_MS_MAX)
        runtime = Runtime(self._clock, self._disk, self._network, chance, self._syncs)
        try:
            self._run(self._start(runtime))
        except StoreError as error:
            raise RestartFailedError(str(error)) from None

    def fail_syncs(self) -> None:
        self._disk.on_step = _refuse_sync

    def disturb(self, fault: Fault) -> None:
        assert self._loop is not None
        self._fault = fault
        match fault:
            case Fault.FREEZE:
                self._loop.stop_process(NODE)
            case Fault.ISOLATE:
                self._network.silence(self._address)
            case Fault.LOSE_REQUESTS:
                self._network.deafen(self._address)
            case Fault.LOSE_ANSWERS:
                self._network.mute(self._address)
            case Fault.CUT:
                self._loop.call_later(self._chance.choice(_CUT_S), self._network.cut, self._address)
            case Fault.DELAY:
                self._network.delay_s = _DELAY_S
            case Fault.SLOW_DISK:
                self._syncs.delay_ms_max = _SLOW_MS_MAX
            case Fault.FULL_DISK:
                self._disk.on_step = _refuse_file
            case Fault.CLOCK_BACK:
                self._clock.skew_us -= _BACK_US

    def calm(self) -> None:
        assert self._loop is not None
        self._loop.continue_process(NODE)
        self._network.heal(self._address)
        if self._fault in _LOSSES:
            self._run(self._hang_up())
        if self._fault is Fault.CLOCK_BACK:
            self._clock.skew_us += _BACK_US
        self._fault = None
        self._network.delay_s = 0.0
        self._syncs.delay_ms_max = _FLUSH_MS_MAX
        self._disk.on_step = None

    async def _hang_up(self) -> None:
        """Cut the connections to the broker, and wait until the broker has closed its ends."""
        self._network.cut(self._address)
        await asyncio.sleep(_HEARD_S)

    def close(self) -> None:
        if self._loop is not None:
            self._end()
        _log.setLevel(logging.NOTSET)

    async def _start(self, runtime: Runtime) -> None:
        assert self._loop is not None
        name_server = await NameServer(NameServerConfig(), runtime).start()
        config = BrokerConfig(name_servers=(name_server,), store_directory=_STORE, store=self._store)
        self._log = EventLog(self.events.append, NODE, self._clock, len(self.events))
        self._broker = Broker(config, runtime, self._log)
        starting = self._loop.create_task(self._broker.start(), context=self._loop.context_of(NODE))
        self._address = await starting
        self._client = Client(name_server, runtime, self._setup.topic, self._setup.group)
        await self._client.start()

    def _step(self, work: Coroutine[Any, Any, T]) -> T:
        return self._run(self._whole(work, self._chance.choice(_PAUSES_S)))

    async def _whole(self, work: Coroutine[Any, Any, T], pause_s: float) -> T:
        result = await work
        await asyncio.gather(*self._abandoned)
        self._abandoned.clear()
        await asyncio.sleep(pause_s)
        return result

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        assert self._loop is not None
        return simulated_loops.run(self._loop, work)

    def _end(self) -> None:
        """Stop everything that runs, without any further change to the disk."""
        if self._loop is None:
            return
        self._now_us = self._clock.now_us()
        self._disk.crash_process()
        self._disk.on_step = _dead
        self._loop.continue_process(NODE)
        simulated_loops.end(self._loop)
        self._loop, self._disk.on_step = None, None


def _image(disk: SimulatedDisk, chance: random.Random) -> Image:
    """Draw the data that survives a crash.

    Any state is possible, but often nearly everything is kept: checks are weakest at the end of a record.
    """
    if chance.random() < _NEARLY_ALL_CHANCE:
        most = disk.unsynced()
        kept = {file: max(0, size - chance.randint(1, _NEAR_BYTES)) for file, size in most.contents.items()}
        return Image(most.names, kept)
    return disk.draw_image(chance)


def _refuse_sync(step: Step) -> None:
    if step.kind == "sync":
        raise OSError(errno.EIO, "the disk does not sync", step.path)


def _refuse_file(step: Step) -> None:
    if step.kind == "create":
        raise OSError(errno.ENOSPC, "the disk is full", step.path)


def _dead(step: Step) -> None:
    raise SimulatedCrashError(f"{step.kind} of {step.path} by a process that has ended")
