"""Mutants that the inspections of our client detect."""

from bisect import bisect_left
from collections.abc import Generator, Mapping
from typing import Any, Final

from mqproof.conformance.mutants.mutant import by_name, unexplained
from mqproof.impl.client.consuming.group_requests import GroupRequests
from mqproof.impl.client.consuming.process_queue import ProcessQueue
from mqproof.impl.client.messages import compression
from mqproof.impl.client.model import MessageQueue
from mqproof.impl.client.producing.producer import Producer
from mqproof.impl.client.producing.queue_choice import LatencyLevels
from mqproof.impl.client.producing.thread_sends import ThreadSends
from mqproof.impl.remoting import java_json
from mqproof.impl.remoting.bodies import TopicRoute
from mqproof.impl.runtime.disk import write_durably
from mqproof.spec.events import Kind

_CLIENT: Final = "mqproof.impl.client"
_inflating, _overdue, _emit = compression.inflating, ProcessQueue.overdue, Producer._emit


async def _to_any_replica(calls: GroupRequests, queue: MessageQueue) -> Any:
    return await calls._any_replica(queue)


def _without_backup(store: Any, data: bytes) -> None:
    write_durably(store._runtime.disk, store._path, data)


def _accepted(*_: object) -> None:
    """Accept any value."""


async def _nothing(*_: object) -> None:
    """Do nothing."""


def _unread(_topic: str, body: bytes) -> Any:
    return java_json.read(TopicRoute, body)


def _without_status(producer: Producer, kind: Kind, *about: Any, **named: Any) -> None:
    payload, queue, attempt, *rest = about
    _emit(producer, kind, payload, queue, attempt, None, *rest[1:], **named)


def _not_doubted(*_: object) -> None:
    """Request no route."""


def _above_the_threshold(levels: LatencyLevels, took_ms: float) -> int:
    reached = bisect_left(levels.thresholds_ms, took_ms)
    return levels.rests_ms[reached - 1] if reached else 0


def _all_at_once(held: ProcessQueue, since_s: float, most: int) -> Any:
    return _overdue(held, since_s, 10 * most)


def _of_any_size(body: bytes, sys_flag: int, _bytes_max: int) -> Generator[int, None, bytes | None]:
    return _inflating(body, sys_flag, 1 << 40)


def _a_new_one(sends: ThreadSends) -> Any:
    return sends._new()


def _as_they_are(settings: Any) -> Any:
    return settings


INSPECTIONS: Final[Mapping[str, str]] = {
    "sends-without-status": "events of the client",
    "addresses-not-read": "routes at their limits",
    "routes-never-doubted": "failing requests of the client",
    "committed-at-any-replica": "commits of the client",
    "offsets-without-a-backup": "members that broadcast",
    "slots-not-resized": "rounds of the client",
    "not-greeted-after-a-reconnect": "sessions of the client",
    "penalty-above-the-threshold": "edges of the producer",
    "searched-by-any-time": "pulls of the client",
    "all-overdue-at-once": "messages that a consumer holds",
    "inflated-to-any-size": "sizes that a consumer holds",
    "a-connection-for-each-send": "connections of threads",
    "environment-not-read": "settings of the client",
}
"""The inspection that detects each mutant."""

MUTANTS: Final = by_name(
    unexplained(
        "sends-without-status", "the event of an attempt does not say how it ended",
        f"{_CLIENT}.producing.producer:Producer._emit", _without_status,
    ),
    unexplained(
        "addresses-not-read", "a route whose addresses are none is accepted",
        f"{_CLIENT}.connection.routes:_read_route", _unread,
    ),
    unexplained(
        "routes-never-doubted", "a route is not requested again when its broker does not answer",
        f"{_CLIENT}.connection.routes:Routes.doubt", _not_doubted,
    ),
    unexplained(
        "committed-at-any-replica", "without a master, a consumer commits and locks at a slave",
        f"{_CLIENT}.consuming.group_requests:GroupRequests._master", _to_any_replica,
    ),
    unexplained(
        "offsets-without-a-backup", "the file with the offsets of a member that broadcasts has no backup",
        f"{_CLIENT}.consuming.offset_store:FileOffsets._write", _without_backup,
    ),
    unexplained(
        "slots-not-resized", "an orderly consumer keeps its first number of concurrent calls",
        f"{_CLIENT}.consuming.slots:Slots.resize", _nothing,
    ),
    unexplained(
        "not-greeted-after-a-reconnect", "a broker gets no heartbeat on a new connection",
        f"{_CLIENT}.connection.session:Session._beat_if_connected", _nothing,
    ),
    unexplained(
        "penalty-above-the-threshold", "an attempt that takes exactly a threshold has the penalty below it",
        f"{_CLIENT}.producing.queue_choice:LatencyLevels.rest_ms", _above_the_threshold,
    ),
    unexplained(
        "searched-by-any-time", "a consumer searches its queues by a time that is not a number",
        f"{_CLIENT}.consuming.pull_consumer:require_time_ms", _accepted,
    ),
    unexplained(
        "all-overdue-at-once", "more than 16 overdue messages of a queue are sent back at once",
        f"{_CLIENT}.consuming.process_queue:ProcessQueue.overdue", _all_at_once,
    ),
    unexplained(
        "inflated-to-any-size", "a body has any size when it is decompressed",
        f"{_CLIENT}.connection.records:inflating", _of_any_size,
    ),
    unexplained(
        "a-connection-for-each-send", "each send of a thread opens a connection",
        f"{_CLIENT}.producing.thread_sends:ThreadSends._take", _a_new_one,
    ),
    unexplained(
        "environment-not-read", "a client does not read NAMESRV_ADDR",
        f"{_CLIENT}.connection.client_settings:ClientSettings.or_environment", _as_they_are,
    ),
)  # fmt: skip
"""The mutants by name."""
