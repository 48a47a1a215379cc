"""The traffic of topics and groups, and which groups have consumed a message."""

from dataclasses import dataclass

from mqproof.impl.admin.admin import Admin, read_body
from mqproof.impl.admin.groups import NoOffsetsError, connection, progress
from mqproof.impl.admin.topics import groups_of, topic_names
from mqproof.impl.client.model import MessageQueue, NoRouteError, RefusalError
from mqproof.impl.remoting.bodies import BrokerStats, ConsumerConnection
from mqproof.impl.remoting.codes import RequestCode
from mqproof.impl.remoting.headers import StatsRequest
from mqproof.impl.remoting.message import StoredMessage
from mqproof.impl.runtime.network import Address


@dataclass(frozen=True, slots=True)
class Traffic:
    """Messages of a topic, or of a group in it."""

    topic: str
    group: str
    """The group that consumes them; empty if the topic has none."""
    behind: int
    """The messages that the group has not consumed."""
    in_tps: float
    out_tps: float
    day_in: int
    day_out: int

    @property
    def is_active(self) -> bool:
        return bool(self.day_in or self.day_out)


async def traffic_of(admin: Admin, topic: str) -> list[Traffic]:
    """Return the traffic of a topic, one entry for each group, or one without a group."""
    day_in, in_tps = await _counted(admin, topic, "TOPIC_PUT_NUMS", topic)
    found = []
    for group in await groups_of(admin, topic):
        try:
            behind = (await progress(admin, group, topic)).behind
        except (NoOffsetsError, NoRouteError, RefusalError):
            behind = 0
        day_out, out_tps = await _counted(admin, topic, "GROUP_GET_NUMS", f"{topic}@{group}")
        found.append(Traffic(topic, group, behind, in_tps, out_tps, day_in, day_out))
    return found or [Traffic(topic, "", 0, in_tps, 0.0, day_in, 0)]


async def all_traffic(admin: Admin) -> list[Traffic]:
    """Return the traffic of every topic that has a route. Retry and dead letter topics are left out."""
    found = []
    for topic in await topic_names(admin):
        if not topic.startswith("%"):
            try:
                found += await traffic_of(admin, topic)
            except NoRouteError:  # it was deleted in between
                continue
    return found


async def _counted(admin: Admin, topic: str, name: str, key: str) -> tuple[int, float]:
    """Return the sum of a counter over a day, and its rate in the last minute, at all brokers of a topic.

    A broker that has counted nothing refuses the request.
    """
    day, tps = 0, 0.0
    for broker in (await admin.masters_of(topic)).values():
        try:
            answer = await admin.ask(broker, RequestCode.VIEW_BROKER_STATS_DATA, StatsRequest(name, key))
        except RefusalError:
            continue
        stats = read_body(BrokerStats, answer)
        day += stats.stats_day.sum
        tps += stats.stats_minute.tps
    return day, tps


async def message_track(admin: Admin, stored: StoredMessage) -> list[tuple[str, str]]:
    """Return, for each group that consumes the message's topic, whether it has consumed it.

    The states have mqadmin's names: CONSUMED, NOT_CONSUME_YET, NOT_ONLINE, PULL, CONSUME_BROADCASTING. The
    state is UNKNOWN if the group has no offset in the message's queue.
    """
    topic = stored.message.topic
    try:
        groups = await groups_of(admin, topic)
    except (NoRouteError, RefusalError):
        return []  # a message of the broker itself, for example
    return [(group, await _state(admin, stored, group)) for group in groups]


async def _state(admin: Admin, stored: StoredMessage, group: str) -> str:
    try:
        members = await connection(admin, group)
    except NoRouteError:
        members = None
    if members is None:
        return "NOT_ONLINE"
    if members.message_model == "BROADCASTING":
        return "CONSUME_BROADCASTING"
    return await _consumed(admin, stored, group, members)


async def _consumed(admin: Admin, stored: StoredMessage, group: str, members: ConsumerConnection) -> str:
    message = stored.message
    try:
        queues = (await progress(admin, group, message.topic)).queues
    except NoOffsetsError:
        queues = {}
    names = set(await admin.names_at([_address(stored)]))
    for queue, found in queues.items():
        if queue.broker_name in names and queue == MessageQueue(
            message.topic, queue.broker_name, message.queue_id
        ):
            if found.consumer_offset > stored.queue_offset:
                return "CONSUMED"
            return "PULL" if members.consume_type == "CONSUME_ACTIVELY" else "NOT_CONSUME_YET"
    return "UNKNOWN"


def _address(stored: StoredMessage) -> Address:
    host, port = stored.message.store_host
    return Address(host, port)
