"""Kills a broker under load repeatedly: every message answered SEND_OK must be stored in the end.

It is a black-box test: messages are sent and read over the network. Each cycle sends for a while, kills the
process meanwhile, and restarts it; at the end all queues are read.
"""

import asyncio
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from mqproof.conformance.bench import load
from mqproof.conformance.bench.broker import Broker
from mqproof.conformance.bench.load import Messages, Sent

OUTSTANDING = 64
_ALIVE_SECONDS = (0.02, 0.3)


@dataclass(frozen=True, slots=True)
class Outcome:
    cycles: int
    sent: int
    acked: int
    stored: int
    recovery_seconds: tuple[float, ...]
    """Duration of each start after a kill."""
    violations: tuple[str, ...]
    """Each violation begins with the id of the invariant."""


def run(
    broker: Broker, cycles: int, seed: int, on_cycle: Callable[[int, float], None] = lambda _n, _s: None
) -> Outcome:
    """Kill a running broker `cycles` times, restarting it each time.

    The times of the kills follow from the seed.

    Raises:
        LoadError: a send was refused.
        BenchError: the broker did not start again.
    """
    chance = random.Random(seed)
    messages = Messages(("cycles",), queues=4, size=256)
    sent = Sent()
    seconds: list[float] = []
    asyncio.run(load.create_topics(broker.address, messages))
    for number in range(1, cycles + 1):
        asyncio.run(_until_killed(broker, messages, sent, chance.uniform(*_ALIVE_SECONDS)))
        seconds.append(broker.start())
        on_cycle(number, seconds[-1])
    queues = [asyncio.run(load.read_queue(broker.address, messages, q)) for q in range(messages.queues)]
    stored = sum(map(len, queues))
    found = tuple(_violations(messages, sent, queues))
    return Outcome(cycles, sent.count, len(sent.acked), stored, tuple(seconds), found)


async def _until_killed(broker: Broker, messages: Messages, sent: Sent, after_seconds: float) -> None:
    asyncio.get_running_loop().call_later(after_seconds, broker.kill)
    await load.send_until_lost(broker.address, messages, OUTSTANDING, sent)


def _violations(messages: Messages, sent: Sent, queues: list[list[tuple[int, bytes]]]) -> Iterator[str]:
    whole = {load.body_of(number, messages.size): number for number in range(sent.count)}
    stored: set[int] = set()
    for queue, entries in enumerate(queues):
        offsets = [offset for offset, _ in entries]
        if offsets != list(range(len(entries))):
            yield f"FLUSH-4 QueueOffsetsDense: queue {queue} has other offsets than 0 to {len(entries) - 1}"
        numbers = [whole.get(body) for _, body in entries]
        if None in numbers:
            place = numbers.index(None)
            yield f"FLUSH-5 RecoveredPrefix: queue {queue} has at {place} a body that was never sent"
        known = [number for number in numbers if number is not None]
        if any(number % messages.queues != queue for number in known):
            yield f"FLUSH-3 QueuePointsIntoLog: queue {queue} has a message of another queue"
        if known != sorted(set(known)):
            yield f"DELIV-4 QueueOrder: queue {queue} is not in the order of the sends"
        stored.update(known)
    for number in sorted(sent.acked - stored):
        yield f"FLUSH-2 AsyncAckedSurvivesProcessCrash: message {number} was answered SEND_OK and is lost"
