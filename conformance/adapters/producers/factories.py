"""The targets of the producer suite: our producer in simulated time, its mutants, and the reference."""

import asyncio
import random
from collections.abc import Callable, Coroutine, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Final, TypeVar

from mqproof.conformance.adapters import simulated_loops
from mqproof.conformance.adapters.producers.cluster import PlayedCluster
from mqproof.conformance.adapters.python_class import adapter
from mqproof.conformance.engine.targets import (
    IMPL,
    MUTANT,
    PYTHON,
    REFERENCE,
    UnknownTargetError,
    mutant_named,
)
from mqproof.conformance.faults.expected_warnings import expected_warnings
from mqproof.conformance.mutants.mutant import Mutant
from mqproof.conformance.mutants.producers import MUTANTS
from mqproof.conformance.mutants.replacement import injected
from mqproof.conformance.suites.producers.oracle import ended_s, rest_s
from mqproof.conformance.suites.producers.target import (
    ATTEMPTS_MAX,
    BROKERS,
    SEND_S,
    Attempt,
    Fate,
    ProducerTarget,
    Setup,
)
from mqproof.impl.client.connection.session import Session
from mqproof.impl.client.model import Sent
from mqproof.impl.client.producing.producer import Producer, ProducerConfig
from mqproof.impl.remoting.message import Message
from mqproof.impl.runtime.network import SimulatedNetwork
from mqproof.impl.runtime.runtime import simulated
from mqproof.impl.runtime.simulated_loop import SimulatedLoop
from mqproof.reference import queue_choice

T = TypeVar("T")

_TOPIC: Final = "topic"


@contextmanager
def targets(name: str) -> Iterator[Callable[[], ProducerTarget]]:
    """Yield the factory of the target `reference`, `impl`, `mutant:NAME` or `python:MODULE:CLASS`.

    Raises:
        UnknownTargetError: the name is none of these.
    """
    if name == REFERENCE:
        yield ReferenceProducer
    elif name == IMPL:
        yield ImplProducer
    elif name.startswith(PYTHON):
        yield adapter(name, ProducerTarget)
    elif name.startswith(MUTANT):
        mutant = mutant_named(name, MUTANTS)
        yield lambda: ImplProducer(mutant)
    else:
        raise UnknownTargetError(
            f"{name!r} is not a producer, expected reference, impl, mutant:NAME or python:MODULE:CLASS"
        )


class ImplProducer:
    """Our producer, optionally with a defect while it is open."""

    capabilities: frozenset[Any] = frozenset()

    def __init__(self, mutant: Mutant | None = None) -> None:
        self.name = f"{MUTANT}{mutant.name}" if mutant else IMPL
        self._mutant = mutant
        self._loop: SimulatedLoop | None = None
        self._held = ExitStack()

    def open(self, setup: Setup) -> None:
        self._held.enter_context(expected_warnings("mqproof.impl"))
        if self._mutant is not None:
            self._held.enter_context(injected(self._mutant))
        self._loop = SimulatedLoop()
        self._run(self._open(setup))

    def route(self, brokers: tuple[str, ...]) -> None:
        self._cluster.route = brokers
        self._run(self._session.routes.refresh(_TOPIC))

    def send(self, fates: tuple[Fate, ...]) -> tuple[tuple[Attempt, ...], bool]:
        self._cluster.fates[:] = fates
        self._cluster.attempts.clear()
        outcome = self._run(self._producer.send(Message(_TOPIC, b"body")))
        return tuple(self._cluster.attempts), isinstance(outcome, Sent)

    def wait(self, seconds: float) -> None:
        self._run(asyncio.sleep(seconds))

    def close(self) -> None:
        if self._loop is None:
            return
        loop, self._loop = self._loop, None
        with self._held:
            simulated_loops.end(loop)

    async def _open(self, setup: Setup) -> None:
        assert self._loop is not None
        runtime = simulated(self._loop, SimulatedNetwork(), setup.brokers + 10 * setup.queues)
        self._cluster = PlayedCluster(runtime, BROKERS[: setup.brokers], setup.queues)
        self._session = Session([await self._cluster.start()], runtime)
        config = ProducerConfig(
            "producers",
            send_timeout_ms=round(SEND_S * 1000),
            retries=ATTEMPTS_MAX - 1,
            latency_fault_strategy=setup.strategy,
        )
        self._producer = Producer(self._session, config)
        await self._session.routes.refresh(_TOPIC)

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        assert self._loop is not None, "call open first"
        return simulated_loops.run(self._loop, work)


class ReferenceProducer:
    """The reference itself. If the suite does not explain its answers, the suite has a defect."""

    name = REFERENCE
    capabilities: frozenset[Any] = frozenset()

    def __init__(self, seed: int = 0) -> None:
        self._chance = random.Random(seed)

    def open(self, setup: Setup) -> None:
        self._setup = setup
        self._route = BROKERS[: setup.brokers]
        self._turn = self._chance.randrange(queue_choice.wrap(setup.brokers, setup.queues))
        self._rested_until_s: dict[str, float] = {}
        self._now_s = 0.0

    def route(self, brokers: tuple[str, ...]) -> None:
        self._route = brokers

    def send(self, fates: tuple[Fate, ...]) -> tuple[tuple[Attempt, ...], bool]:
        began_s, attempts, last = self._now_s, list[Attempt](), None
        for fate in fates:
            attempts.append(self._attempt(last, fate, began_s))
            last = attempts[-1].broker
            if fate is not Fate.BUSY:
                break
        return tuple(attempts), attempts[-1].fate in (Fate.OK, Fate.SLOW)

    def wait(self, seconds: float) -> None:
        self._now_s += seconds

    def close(self) -> None:
        pass

    def _attempt(self, last: str | None, fate: Fate, began_s: float) -> Attempt:
        queues = self._setup.queues
        resting = {broker for broker, until_s in self._rested_until_s.items() if until_s > self._now_s}
        candidates = queue_choice.eligible(self._route, resting, self._setup.strategy)
        wanted = queue_choice.wanted(candidates, last)
        position = self._turn + queue_choice.passed(self._route, queues, self._turn, wanted)
        self._turn = (position + 1) % queue_choice.wrap(self._setup.brokers, queues)
        place = position % (len(self._route) * queues)
        broker = queue_choice.broker_at(self._route, queues, place)
        attempt = Attempt(broker, place % queues, self._now_s, fate)
        self._now_s = ended_s(attempt, began_s)
        self._rested_until_s[broker] = self._now_s + rest_s(fate)
        return attempt
