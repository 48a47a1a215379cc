"""The targets of the producer suite: our producer in simulated time, its mutants, and the reference."""

import asyncio
import random
import zlib
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any, Final, TypeVar

from mqproof.conformance.adapters import simulated_loops
from mqproof.conformance.adapters.producers.cluster import PlayedCluster
from mqproof.conformance.adapters.python_class import adapter
from mqproof.conformance.adapters.watched_network import WatchedNetwork
from mqproof.conformance.answers.known import UNIQUE_KEY
from mqproof.conformance.answers.request_and_answer import Wrong
from mqproof.conformance.answers.stored_record import properties_of
from mqproof.conformance.answers.watch import Watch
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
from mqproof.conformance.wire import chapters
from mqproof.impl.client.connection.session import Session
from mqproof.impl.client.model import Sent
from mqproof.impl.client.producing.producer import Producer, ProducerConfig
from mqproof.impl.remoting.headers import SendRequest
from mqproof.impl.remoting.message import Message
from mqproof.impl.runtime.clock import now_ms
from mqproof.impl.runtime.network import SimulatedNetwork
from mqproof.impl.runtime.runtime import simulated
from mqproof.impl.runtime.simulated_loop import SimulatedLoop
from mqproof.reference import queue_choice
from mqproof.report.model import Witness

T = TypeVar("T")

_TOPIC: Final = "topic"
_GROUP: Final = "producers"
_QUARTERS: Final = (1, 1023, 1024, 2000)
"""Lengths of bodies in units of four bytes: from 1024 units on a producer compresses them."""


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
        self._sent = 0
        self._run(self._open(setup))

    def route(self, brokers: tuple[str, ...]) -> None:
        self._cluster.route = brokers
        self._run(self._session.routes.refresh(_TOPIC))

    def send(self, fates: tuple[Fate, ...]) -> tuple[tuple[Attempt, ...], bool]:
        self._cluster.fates[:] = fates
        self._cluster.attempts.clear()
        self._cluster.requests.clear()
        self._sent += 1
        message = _message(self._sent)
        outcome = self._run(self._producer.send(message))
        self._watch.found(f"the attempts of send {self._sent}", _changed(message, self._cluster.requests))
        return tuple(self._cluster.attempts), isinstance(outcome, Sent)

    def wait(self, seconds: float) -> None:
        self._run(asyncio.sleep(seconds))

    @property
    def wrong_answers(self) -> tuple[Witness, ...]:
        """What is wrong in the requests of the producer."""
        return tuple(self._watch.wrong)

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
        self._watch = Watch(lambda: now_ms(runtime.clock), is_exact=True, judges_answers=False)
        watched = WatchedNetwork(runtime.network, self._watch, examined=True)
        self._session = Session([await self._cluster.start()], replace(runtime, network=watched))
        config = ProducerConfig(
            _GROUP,
            send_timeout_ms=round(SEND_S * 1000),
            retries=ATTEMPTS_MAX - 1,
            latency_fault_strategy=setup.strategy,
        )
        self._producer = Producer(self._session, config)
        await self._session.routes.refresh(_TOPIC)

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        assert self._loop is not None, "call open first"
        return simulated_loops.run(self._loop, work)


def _message(number: int) -> Message:
    """Return a message whose parts all differ from those of the message before."""
    body = f"{number:04}".encode() * _QUARTERS[number % len(_QUARTERS)]
    properties = {"TAGS": f"tag{number}", "KEYS": f"a{number} b{number}", "own property": f"= {number} ü"}
    return Message(_TOPIC, body, properties, flag=number)


def _changed(message: Message, attempts: Sequence[tuple[SendRequest, bytes]]) -> Iterator[Wrong]:
    """Yield what differs between a message and an attempt, or between two attempts."""
    keys = set()
    for header, body in attempts:
        properties = properties_of(header.properties or "")
        keys.add(properties.get(UNIQUE_KEY))
        own = {name: properties.get(name) for name in message.properties}
        whole = zlib.decompress(body) if header.sys_flag & 1 else body
        values = (
            ("group", _GROUP, header.producer_group),
            ("topic", message.topic, header.topic),
            ("flag", message.flag, header.flag),
            ("properties", dict(message.properties), own),
            ("body", message.body[:8], whole[:8]),
            ("length", len(message.body), len(whole)),
        )
        for name, expected, observed in values:
            if observed != expected:
                yield Wrong(chapters.SEND_REQUESTS, f"{name} {observed!r}, expected {expected!r}")
    if len(keys) > 1:
        yield Wrong(chapters.MESSAGE_IDS, f"the unique keys {keys}, expected the same in each attempt")


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
