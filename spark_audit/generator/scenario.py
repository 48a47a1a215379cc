"""The scenario that the generator writes: a small cluster, its ordinary faults, and injected anomalies.

Time consists of chunks of equal length with the same timetable. Messages arrive in bursts, most of them in
few queues. In the pauses of a chunk with faults, a group rebalances, a broker crashes, a consumer restarts,
or an offset is reset. All of these are harmless: they repeat deliveries and move offsets back for a reason,
and no check may report that as a violation. Producers' retries, lost answers, refusals and clock skew are
harmless, too. Anomalies have slots of their own, away from the pauses and from one another.
"""

import math
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

BROKERS: Final = ("broker-a", "broker-b", "broker-c", "broker-d")
"""The first two brokers crash."""
FLUSH_MODES: Final = ("SYNC_FLUSH", "ASYNC_FLUSH", "SYNC_FLUSH", "ASYNC_FLUSH")
TOPICS: Final = ("orders", "payments", "stock", "mail")
GROUPS: Final = ("billing", "shipping")
ORDERLY: Final = 1
"""The group that consumes in order. If overlaps are injected, its log has this fact and the ends of calls."""
CONSUMERS_A_GROUP: Final = 3
PRODUCERS: Final = tuple(f"producer-{n}" for n in range(4))
QUEUES_OF_TOPIC: Final = (4, 4, 4, 2)
QUEUES: Final = sum(QUEUES_OF_TOPIC)
"""The number of queues of all topics.

Each broker has one queue of each topic; of the last topic, only two brokers do. Queues are numbered through:
broker_of, topic_of and queue_id_of map such a number.
"""

_OTHERS: Final = (1, 2, 3, 4, 5, 6, 7, 4, 5, 8, 9, 10, 11, 12, 13)
ROUND: Final = np.stack([np.zeros(len(_OTHERS), dtype=np.int64), _OTHERS], axis=1).ravel()
"""The queues of consecutive messages, repeated: half of all messages go to one queue.

The n-th topic has about 1 / n ** 1.5 (Zipf) of the messages of the first: 60, 20, 13 and 7 %.
"""

SKEW_US: Final = 40_000
"""Maximum error of a clock; two clocks differ by less than the audit allows."""

FAULTS_EVERY: Final = 50
"""One in so many chunks, starting with the first, has events in its pauses; the others have plain pauses."""

BURSTS: Final = 10
"""Number of bursts in a chunk; messages in them are three times as dense as between them."""

CHUNK_US: Final = 20_000_000
PAUSE_US: Final = 1_000_000
EVENTS_MAX: Final = 10**12
CHUNK_MESSAGES_MAX: Final = 20_000

MESSAGES_MIN: Final = 360

EVENTS_A_MESSAGE: Final = 5.375
"""send, append, send_ack, two deliveries, and a flush and two commits for every eighth message."""

PAUSES: Final = {"rebalance": 0.1, "crash_sync": 0.4, "crash_async": 0.55, "restart": 0.82, "reset": 0.9}
"""The events in the pauses, and the fraction of a chunk's messages before each pause."""

ZONES: Final = ((0.13, 0.26), (0.43, 0.5), (0.58, 0.78))
"""Ranges for anomalies: away from pauses, and early enough that none of their messages is in flight."""

SLOT: Final = 3 * len(ROUND)
"""Messages per slot: an anomaly in the middle has neighbours in its queue before and after."""

CRASH_TAIL: Final = 6
"""Records that every crash truncates: appended, but neither flushed nor acknowledged."""

TAIL_PART: Final = 0.04
"""Fraction of the last chunk not yet delivered to the second group.

Half of it is not yet delivered to the first group either.
"""


class Outcome(IntEnum):
    """The outcome of a message."""

    NORMAL = 0
    RETRIED = 1  # stored, the answer lost, sent again to another queue: delivered twice
    RECOVERED = 2  # stored, the answer lost, not sent again
    NOT_STORED = 3  # the request lost
    REFUSED = 4  # refused once, then stored
    FLUSH_TIMEOUT = 5  # stored and answered FLUSH_DISK_TIMEOUT
    REDELIVERED = 6  # consumption failed once, redelivered through the retry topic
    SEND_ONLY = 7  # in flight when the log ends
    CUT_UNACKED = 8  # in the tail that a crash truncates, outcome unknown
    CUT_RETRIED = 9  # the same, then sent again to another queue
    CUT_ACKED = (
        10  # the same, but acknowledged before: legal on the asynchronous broker, injected on the other
    )
    LOST = 20
    DUPLICATE = 21
    DOUBLE_APPEND = 22
    PHANTOM = 23
    REORDERED = 24
    SKIPPED = 25
    OVERLAP = 26


ANOMALIES: Final[dict[str, str]] = {
    "lost": "acknowledged and stored, delivered to no group (DELIV-1)",
    "duplicate": "delivered to one group a second time, without a cause (DELIV-3)",
    "double_append": "stored at two offsets by one attempt, both delivered (DELIV-3)",
    "phantom": "stored and delivered, never sent (DELIV-2)",
    "reordered": "delivered to one group after the next message of its queue (DELIV-4)",
    "skipped": "skipped by one group, delivered to the other (DELIV-4 and DELIV-1)",
    "overlap": "still being processed when its orderly group receives the next message but one (DELIV-13)",
    "offset_regression": "a group's committed offset goes back (DELIV-5)",
    "flush_lost": "acknowledged under SYNC_FLUSH, then cut off by a crash (FLUSH-1 and DELIV-1)",
}
"""Maps the name of an anomaly to its description and the invariants that it violates."""

_SLOTTED: Final = {
    "lost": Outcome.LOST,
    "duplicate": Outcome.DUPLICATE,
    "double_append": Outcome.DOUBLE_APPEND,
    "phantom": Outcome.PHANTOM,
    "reordered": Outcome.REORDERED,
    "skipped": Outcome.SKIPPED,
    "overlap": Outcome.OVERLAP,
}

_HARMLESS: Final = (
    Outcome.RETRIED, Outcome.RECOVERED, Outcome.NOT_STORED, Outcome.REFUSED, Outcome.FLUSH_TIMEOUT,
    Outcome.REDELIVERED,
)  # fmt: skip
_HARMLESS_PART: Final = {True: 0.002, False: 0.0001}
"""Fraction of a chunk's messages with each of these outcomes.

The first value is for chunks with faults, which have at least one message of each; the second is for others.
"""


class ScenarioError(ValueError):
    """The requested log is not possible; the message says what is."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Number of injected anomalies in each chunk."""

    messages: int
    """Number of messages in every chunk."""
    chunks: int
    injected: dict[str, Ints]
    """Maps an anomaly to its count in each chunk."""

    @property
    def messages_total(self) -> int:
        return self.messages * self.chunks


def has_faults(chunk: int) -> bool:
    return chunk % FAULTS_EVERY == 0


def queue_of(messages: Ints) -> Ints:
    """Return the queue of each message, by its position in the chunk."""
    queues: Ints = ROUND[messages % len(ROUND)]
    return queues


def producer_of(messages: Ints) -> Ints:
    return messages % len(PRODUCERS)


def broker_of(queues: Ints) -> Ints:
    return queues % len(BROKERS)


def topic_of(queues: Ints) -> Ints:
    return queues // len(BROKERS)


def queue_id_of(queues: Ints) -> Ints:
    """Return queue ids: 0 for two topics, 1 for the others, so that a queue id is ambiguous by itself."""
    return topic_of(queues) % 2


def elsewhere(queues: Ints) -> Ints:
    """Return the same topic's queue at the next broker that has one."""
    topics = topic_of(queues)
    first = topics * len(BROKERS)
    found: Ints = first + (queues - first + 1) % np.array(QUEUES_OF_TOPIC)[topics]
    return found


def slots(messages: int) -> Ints:
    """Return the first message of every slot of a chunk."""
    starts = [
        np.arange(_whole_round(low * messages), int(high * messages) - SLOT, SLOT, dtype=np.int64)
        for low, high in ZONES
    ]
    return np.concatenate(starts)


def make_plan(messages_total: int, anomalies: dict[str, int], random: np.random.Generator) -> Plan:
    """Spread the anomalies over the chunks.

    Raises:
        ScenarioError: an unknown anomaly, a negative count, or more than the log has room for.
    """
    for name, count in anomalies.items():
        if name not in ANOMALIES:
            raise ScenarioError(f"anomaly {name!r}: expected one of {', '.join(ANOMALIES)}")
        if count < 0:
            raise ScenarioError(f"anomaly {name}: count {count}, expected 0 or more")
    if messages_total < MESSAGES_MIN:
        raise ScenarioError(f"too few events, the scenario needs {_events_of(MESSAGES_MIN)} or more")
    if messages_total > EVENTS_MAX / EVENTS_A_MESSAGE:
        raise ScenarioError(f"too many events, expected {EVENTS_MAX} at most")
    chunks = -(-messages_total // CHUNK_MESSAGES_MAX)
    messages = -(-messages_total // chunks)
    named = (*_SLOTTED, "offset_regression")
    requested = sum(anomalies.get(name, 0) for name in named), anomalies.get("flush_lost", 0)
    room, tail_room = _room(messages, chunks)
    for what, count, of in (
        (f"{requested[0]} anomalies", requested[0], room),
        (f"anomaly flush_lost: {requested[1]}", requested[1], tail_room),
    ):
        if count > of:
            raise ScenarioError(
                f"{what} requested, a log of this size has room for {of}: "
                f"request {_events_for(*requested)} events"
            )
    slotted = [name for name in named for _ in range(anomalies.get(name, 0))]
    flush_lost, faulty_chunks = requested[1], _faulty_chunks(chunks)
    chunk_of = random.permutation(room)[: len(slotted)] % chunks
    injected = {name: np.zeros(chunks, dtype=np.int64) for name in ANOMALIES}
    for name, chunk in zip(slotted, chunk_of, strict=True):
        injected[name][chunk] += 1
    crashes = np.arange(flush_lost) % faulty_chunks * FAULTS_EVERY
    injected["flush_lost"] += np.bincount(crashes, minlength=chunks)
    return Plan(messages, chunks, injected)


def _room(messages: int, chunks: int) -> tuple[int, int]:
    """Return how many slot anomalies and how many flush_lost fit into chunks of this size."""
    # Between the first zone and the crash, at least every second message goes to the crashing broker.
    tail = int((PAUSES["crash_sync"] - ZONES[0][1] - 0.02) * messages) // 2 - CRASH_TAIL
    return len(slots(messages)) * chunks, tail * _faulty_chunks(chunks)


def _faulty_chunks(chunks: int) -> int:
    return -(-chunks // FAULTS_EVERY)


def _events_for(slotted: int, flush_lost: int) -> int:
    """Return a number of events, close to the minimum, with room for these anomalies."""
    in_slots, in_tail = _room(CHUNK_MESSAGES_MAX, 1)
    # If the largest chunks have no room, smaller ones have none either.
    chunks = max(1, -(-slotted // in_slots), (-(-flush_lost // in_tail) - 1) * FAULTS_EVERY + 1)
    smallest = max(MESSAGES_MIN, CHUNK_MESSAGES_MAX * (chunks - 1) // chunks + 1)
    for messages in range(smallest, CHUNK_MESSAGES_MAX):
        room, tail_room = _room(messages, chunks)
        if room >= slotted and tail_room >= flush_lost:
            return _events_of(messages * chunks)
    return _events_of(CHUNK_MESSAGES_MAX * chunks)


def _events_of(messages: int) -> int:
    return math.ceil(messages * EVENTS_A_MESSAGE)


@dataclass(frozen=True, slots=True)
class Outcomes:
    outcome: Ints
    regressions: Ints
    """Slots (given by their first message) with an offset_regression."""


def draw_outcomes(plan: Plan, chunk: int, random: np.random.Generator) -> Outcomes:
    """Draw the outcome of each message of a chunk."""
    n = plan.messages
    outcome = np.zeros(n, dtype=np.int64)
    order = random.permutation(slots(n))
    taken = np.zeros(n, dtype=np.bool_)
    at = 0
    for name, injected in _SLOTTED.items():
        chosen = order[at : at + plan.injected[name][chunk]]
        at += len(chosen)
        # The middle round of the slot, in a random queue.
        outcome[chosen + len(ROUND) + random.integers(0, len(ROUND), len(chosen))] = injected
        _take(taken, chosen)
    regressions = order[at : at + plan.injected["offset_regression"][chunk]]
    _take(taken, regressions)
    for broker, name in enumerate(("crash_sync", "crash_async") if has_faults(chunk) else ()):
        acked = int(plan.injected["flush_lost"][chunk]) if broker == 0 else 2
        tail = crash_tail(n, broker, int(PAUSES[name] * n), CRASH_TAIL + acked)
        outcome[tail[:acked]] = Outcome.CUT_ACKED
        outcome[tail[acked:]] = np.where(
            np.arange(len(tail) - acked) % 2 == 0, Outcome.CUT_UNACKED, Outcome.CUT_RETRIED
        )
    if chunk == plan.chunks - 1:
        outcome[n - max(2, int(TAIL_PART * n / 8)) :] = Outcome.SEND_ONLY
    free = np.flatnonzero((outcome == Outcome.NORMAL) & ~taken)
    # Not in the first rounds, so that each queue begins with normal messages.
    free = random.permutation(free[free >= 2 * len(ROUND)])
    at = 0
    for harmless in _HARMLESS:
        count = max(int(has_faults(chunk)), round(_HARMLESS_PART[has_faults(chunk)] * n))
        outcome[free[at : at + count]] = harmless
        at += count
    return Outcomes(outcome, regressions)


def crash_tail(messages: int, broker: int, crash_at: int, count: int) -> Ints:
    """Return the last `count` messages that go to the broker before message `crash_at`, in order."""
    all_before = np.arange(crash_at, dtype=np.int64)
    return all_before[broker_of(queue_of(all_before)) == broker][-count:] if messages else all_before


def _take(taken: Bools, starts: Ints) -> None:
    for start in starts:
        taken[start : start + SLOT] = True


def _whole_round(message: float) -> int:
    return -(-int(message) // len(ROUND)) * len(ROUND)
