"""Mutants of our producer, used to judge the suite. Each replaces one rule by a wrong one.

Behaviours of QueueChoice detect those of the queue choice too. They also detect two that a suite with one
send at a time does not (`STEPPED`).
"""

import itertools
from collections.abc import Callable, Sequence
from typing import Any, Final

from mqproof.conformance.mutants.mutant import Mutant, by_name
from mqproof.impl.client.messages.payload import PayloadBuilder
from mqproof.impl.client.model import MessageQueue
from mqproof.impl.client.producing.producer import Producer
from mqproof.impl.client.producing.queue_choice import QueueChoice
from mqproof.impl.remoting.headers import SendRequest
from mqproof.impl.remoting.message import UNIQUE_KEY, decode_properties, encode_properties

Queues = Sequence[MessageQueue]

_choose, _answered, _failed = QueueChoice.choose, QueueChoice.answered, QueueChoice.failed
_is_rested = QueueChoice._is_rested
_target, _build = Producer._target, PayloadBuilder.__init__
_numbers = itertools.count()


def _last_broker_too(choice: QueueChoice, queues: Queues, _last: str | None, now_s: float) -> MessageQueue:
    return _choose(choice, queues, None, now_s)


def _another_queue_will_do(
    choice: QueueChoice, queues: Queues, last: str | None, now_s: float
) -> MessageQueue:
    """Sends a retry to the next queue, possibly of the same broker."""
    queue = queues[choice._turn % len(queues)]
    if last is not None and not choice._is_rested(queue.broker_name, now_s):
        choice._turn += 1
        return queue
    return _choose(choice, queues, last, now_s)


def _retry_forgets_rests(choice: QueueChoice, queues: Queues, last: str | None, now_s: float) -> MessageQueue:
    if last is None:
        return _choose(choice, queues, last, now_s)
    rested, choice._rested_until_s = choice._rested_until_s, {}
    try:
        return _choose(choice, queues, last, now_s)
    finally:
        choice._rested_until_s = rested


def _never_in_turn(choice: QueueChoice, queues: Queues, last: str | None, now_s: float) -> MessageQueue:
    turn = choice._turn
    queue = _choose(choice, queues, last, now_s)
    choice._turn = turn
    return queue


def _every_other(choice: QueueChoice, queues: Queues, last: str | None, now_s: float) -> MessageQueue:
    queue = _choose(choice, queues, last, now_s)
    choice._turn += 1
    return queue


def _first_avoided(choice: QueueChoice, queues: Queues, last: str | None, now_s: float) -> MessageQueue:
    """Avoids the broker of the send's first attempt, instead of the broker that failed last."""
    if last is None:
        choice.first = None  # type: ignore[attr-defined]
    queue = _choose(choice, queues, getattr(choice, "first", None), now_s)
    if getattr(choice, "first", None) is None:
        choice.first = queue.broker_name  # type: ignore[attr-defined]
    return queue


def _failure_is_nothing(_choice: QueueChoice, _broker: str, _now_s: float) -> None:
    pass


def _slowness_is_nothing(choice: QueueChoice, broker: str, took_s: float, now_s: float) -> None:
    _answered(choice, broker, took_s if took_s >= 5 else 0.0, now_s)


def _rested_half_as_long(choice: QueueChoice, broker: str, now_s: float) -> bool:
    until_s = choice._rested_until_s.get(broker, now_s)
    return until_s - 5 > now_s


def _rested_longer(choice: QueueChoice, broker: str, took_s: float, now_s: float) -> None:
    _answered(choice, broker, took_s, now_s)
    if choice._rested_until_s.get(broker, now_s) > now_s:
        choice._rested_until_s[broker] += 3


def _compressed_late(builder: Any, runtime: Any, body_bytes_max: int, compress_from_bytes: int) -> None:
    _build(builder, runtime, body_bytes_max, compress_from_bytes + 1)


def _no_flag(**fields: Any) -> SendRequest:
    return SendRequest(**{**fields, "flag": 0})


def _other_key(**fields: Any) -> SendRequest:
    properties = decode_properties(fields["properties"])
    properties[UNIQUE_KEY] = f"{next(_numbers):032X}"
    return SendRequest(**{**fields, "properties": encode_properties(properties)})


async def _chosen_in_turn(
    producer: Producer, topic: str, last: str | None, queue: MessageQueue | None, *more: Any
) -> MessageQueue:
    if queue is not None:
        producer._choice._turn += 1
    return await _target(producer, topic, last, queue, *more)


def _latest_rest_only(choice: QueueChoice, broker: str, took_s: float, now_s: float) -> None:
    """Forgets the rests of other brokers at the end of each attempt, as if attempts never overlapped."""
    choice._rested_until_s.clear()
    _answered(choice, broker, took_s, now_s)


def _mutant(name: str, defect: str, breaks: str, where: str, wrong: Callable[..., Any]) -> Mutant:
    where = f"mqproof.impl.client.producing.queue_choice:QueueChoice.{where}"
    return Mutant(name, defect, breaks, where, wrong)


MUTANTS: Final = by_name(
    _mutant(
        "last-broker-tried-again", "a retry may go to any broker, also to the last one",
        "ROUTE-5", "choose",
        _last_broker_too,
    ),
    _mutant(
        "another-queue-will-do", "a retry avoids the last queue, not its broker", "ROUTE-5", "choose",
        _another_queue_will_do,
    ),
    _mutant(
        "first-broker-avoided", "a second retry avoids the first broker, not the last one", "ROUTE-5",
        "choose", _first_avoided,
    ),
    _mutant(
        "failures-not-rested", "a broker that failed is not avoided", "ROUTE-6", "failed",
        _failure_is_nothing,
    ),
    _mutant(
        "slowness-not-rested", "a broker that was slow is not avoided", "ROUTE-6", "answered",
        _slowness_is_nothing,
    ),
    _mutant(
        "rested-too-short", "a broker is avoided for 5 s less than required", "ROUTE-6", "_is_rested",
        _rested_half_as_long,
    ),
    _mutant(
        "retry-forgets-rests", "a retry may go to brokers that must be avoided", "ROUTE-6", "choose",
        _retry_forgets_rests,
    ),
    Mutant(
        "compressed-late", "a body of 4096 bytes is not compressed", "SPEC-1",
        "mqproof.impl.client.messages.payload:PayloadBuilder.__init__", _compressed_late,
    ),
    Mutant(
        "flag-not-sent", "the flag of a message is not sent", "SPEC-1",
        "mqproof.impl.client.producing.producer:SendRequest", _no_flag,
    ),
    Mutant(
        "key-of-each-attempt", "each attempt has a unique key of its own", "SPEC-1",
        "mqproof.impl.client.producing.producer:SendRequest", _other_key,
    ),
    _mutant("no-round-robin", "every send starts at the same queue", "SPEC-1", "choose", _never_in_turn),
    _mutant("every-other-queue", "the round robin omits every other queue", "SPEC-1", "choose",
            _every_other),
    _mutant(
        "rested-too-long", "a broker is avoided for 3 s longer than required", "SPEC-1", "answered",
        _rested_longer,
    ),
)  # fmt: skip
"""The mutants by name."""

STEPPED: Final = by_name(
    Mutant(
        "chosen-queue-in-turn", "a send to a queue that the application chose advances the round robin",
        "SPEC-1", "mqproof.impl.client.producing.producer:Producer._target", _chosen_in_turn,
    ),
    Mutant(
        "latest-rest-alone", "the end of an attempt ends the unavailability of other brokers", "SPEC-1",
        "mqproof.impl.client.producing.queue_choice:QueueChoice.answered", _latest_rest_only,
    ),
)  # fmt: skip
"""The mutants by name; a stepped producer detects them (`queue_choosing_producer`)."""
